"""A sweep: presets x seeds x shares of the training set, each run trained by its own process."""

import dataclasses
import os
import subprocess
import sys
import time

import keras

from keras_gmlp.comparison.results import plan_runs
from keras_gmlp.data.datasets import canonical_name
from keras_gmlp.data.images.packed import is_packed
from keras_gmlp.models.presets import lookup
from keras_gmlp.utils.environment import visible_gpus
from keras_gmlp.utils.errors import why_ended
from keras_gmlp.utils.progress import StatusLine


@dataclasses.dataclass(frozen=True)
class _Place:
    """What a run computes on: some cores, and a GPU or `None` for no choice."""

    cores: list
    gpu: str | None


class Sweep:
    """Trains one model for each combination of preset, seed and share of the training set.

    Each run is a folder of its own. Complete and failed runs are not trained again, so that a
    sweep that was stopped resumes. Killing this process ends its runs.

    Args:
        presets: Keys of `keras_gmlp.PRESETS`.
        settings: `RunSettings` that all runs share. Preset, seed, fraction and directory are
            replaced in each run.
        directory: Folder that holds the folders of the runs.
        seeds: Seeds of weights, order and augmentation.
        fractions: Shares of the training samples, in (0, 1].
        jobs: Number of runs at the same time; they share the cores. Several NVIDIA GPUs are dealt
            out among them, so that each run uses one.
        backend: Keras backend of the runs; `None` for that of this process.

    Raises:
        ValueError: If the settings cannot work, or `jobs` exceeds the cores.

    Example:
        sweep = Sweep(["gmlp_n4_32", "vit_n4_32"], RunSettings(data="cifar10"), "runs/sweep")
        sweep.work()
        write_results(sweep.runs, "runs/results.csv")
    """

    def __init__(
        self,
        presets,
        settings,
        directory,
        *,
        seeds=(0,),
        fractions=(1.0,),
        jobs=1,
        backend=None,
    ):
        presets, seeds, fractions = (list(dict.fromkeys(v)) for v in (presets, seeds, fractions))
        runs = plan_runs(presets, seeds, fractions, directory)
        self.settings = {run: _settings_of(run, settings) for run in runs}
        for each in self.settings.values():
            each.check()
        cores = _available_cores()
        if not 1 <= jobs <= len(cores):
            raise ValueError(f"jobs must be from 1 to the {len(cores)} cores; received {jobs}.")
        self.epochs = settings.make_recipe().epochs
        self.jobs = jobs
        self.backend = backend or keras.backend.backend()
        size = len(cores) // jobs
        gpus = visible_gpus() if jobs > 1 else []
        self.free = [
            _Place(cores[i * size : (i + 1) * size], gpus[i % len(gpus)] if gpus else None)
            for i in range(jobs)
        ]
        self.waiting, self.working = [], {}  # working: from each run to (process, place)
        self.line = StatusLine()

    @property
    def runs(self):
        """The runs, a list of `SweepRun`."""
        return list(self.settings)

    def check_recorded(self):
        """Raises a `ValueError` if a run was started with other settings."""
        for run, settings in self.settings.items():
            differing = run.differences(self._recorded(settings)) if run.begun else []
            if differing:
                raise ValueError(
                    f"{run.directory} holds a run with other settings ({'; '.join(differing)}). "
                    "Give the same settings, or choose another directory."
                )

    def work(self):
        """Trains all runs that are neither complete nor failed; marks those that fail.

        Raises:
            ValueError: If a run was started with other settings.
        """
        self.check_recorded()
        self.waiting = [run for run in self.runs if not run.complete and not run.failed]
        self.began, self.done_before = time.monotonic(), self._done()
        try:
            while self.waiting or self.working:
                while self.waiting and self.free:
                    self._start(self.waiting.pop(0), self.free.pop())
                self._collect()
                self._show()
                time.sleep(0.5)
        finally:
            for process, _ in self.working.values():
                process.terminate()
                process.wait()
            self.line.clear()

    def _recorded(self, settings):
        """Returns what a run's `recipe.json` says, with backend and image size at the top level."""
        recorded = {**settings.make_recipe().settings(), **settings.record()}
        recorded |= {"data": canonical_name(settings.data.name), "backend": self.backend}
        if settings.data.image_size:
            recorded["image_size"] = list(settings.data.size)
        elif not settings.model.weights:
            recorded["image_size"] = list(lookup(settings.model.preset)[1]["input_shape"][:2])
        if settings.data.fit:
            recorded["fit"] = settings.data.fit
        elif not settings.model.weights and not is_packed(recorded["data"]):
            recorded["fit"] = "crop"
        return recorded

    def _start(self, run, place):
        """Starts a run on some of the cores and a GPU."""
        run.directory.mkdir(parents=True, exist_ok=True)
        environment = {**os.environ, "KERAS_BACKEND": self.backend}
        if self.jobs > 1:  # on a GPU; by default JAX reserves three quarters of it for one process
            environment.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
        if place.gpu is not None:
            environment["CUDA_VISIBLE_DEVICES"] = place.gpu
        everywhere = None
        if self.jobs > 1 and hasattr(os, "sched_getaffinity"):
            environment["OMP_NUM_THREADS"] = str(len(place.cores))
            everywhere = os.sched_getaffinity(0)
            os.sched_setaffinity(0, place.cores)  # the child inherits it
        try:
            with open(run.directory / "log.txt", "w") as log:
                process = subprocess.Popen(
                    train_command(self.settings[run]),
                    stdin=subprocess.PIPE,
                    stdout=subprocess.DEVNULL,
                    stderr=log,
                    env=environment,
                )
        finally:
            if everywhere:
                os.sched_setaffinity(0, everywhere)
        self.working[run] = (process, place)

    def _collect(self):
        """Records the runs that ended."""
        for run, (process, place) in list(self.working.items()):
            if process.poll() is None:
                continue
            process.stdin.close()
            del self.working[run]
            self.free.append(place)
            log = run.directory / "log.txt"
            if process.returncode == 0:
                log.unlink(missing_ok=True)
                self.line.say(f"{run.name}: complete ({self._state()})")
                continue
            reason = why_ended(process.returncode, log.read_text(errors="replace"))
            run.fail(reason)
            self.line.say(f"{run.name}: failed ({reason})")

    def _done(self):
        """Returns the epochs done, weighted by the size of their training set."""
        return sum(run.fraction * len(run.history()) for run in self.runs)

    def _show(self):
        """Shows the state of the whole sweep on one line."""
        working = [f"{run.name} {len(run.history())}/{self.epochs}" for run in self.working]
        self.line.show(f"{self._state()} | {', '.join(working)}")

    def _state(self):
        """Returns how many runs are done and about how long the others will take."""
        complete = sum(run.complete for run in self.runs)
        failed = sum(run.failed for run in self.runs)
        left = sum(
            run.fraction * (self.epochs - len(run.history()))
            for run in (*self.waiting, *self.working)
        )
        rate = (self._done() - self.done_before) / max(time.monotonic() - self.began, 0.1)
        text = f"{complete}/{len(self.runs)} runs" + (f", {failed} failed" if failed else "")
        return text + (f", left {_clock(left / rate)}" if rate > 0 and left else "")


def train_command(settings):
    """Returns the command that trains a run and ends when its standard input closes."""
    return [sys.executable, "-m", "keras_gmlp.runs", settings.to_json()]


def _settings_of(run, shared):
    return dataclasses.replace(
        shared,
        model=dataclasses.replace(shared.model, preset=run.preset),
        data=dataclasses.replace(shared.data, fraction=run.fraction),
        changes={**shared.changes, "seed": run.seed},
        directory=str(run.directory),
    )


def _available_cores():
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return list(range(os.cpu_count()))


def _clock(seconds):
    minutes = round(seconds / 60)
    return f"{minutes // 60} h {minutes % 60:02} min" if minutes >= 60 else f"{minutes} min"
