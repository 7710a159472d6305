"""A sweep: presets x seeds x shares of the training set, each run trained by its own process."""

import dataclasses
import functools
import os
import subprocess
import sys
import time
from pathlib import Path

from keras_gmlp.comparison.plan import Plan
from keras_gmlp.data.datasets import canonical_name
from keras_gmlp.data.images.packed import is_packed
from keras_gmlp.models.presets import lookup
from keras_gmlp.utils.environment import visible_gpus
from keras_gmlp.utils.errors import why_ended
from keras_gmlp.utils.progress import StatusLine


class Sweep(Plan):
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
        self, presets, settings, directory, *, seeds=(0,), fractions=(1.0,), jobs=1, backend=None
    ):
        super().__init__(plan_runs(presets, settings, directory, seeds, fractions))
        cores = _available_cores()
        if not 1 <= jobs <= len(cores):
            raise ValueError(f"jobs must be from 1 to the {len(cores)} cores; received {jobs}.")
        self.epochs = settings.make_recipe().epochs
        self.jobs = jobs
        self._backend = backend
        size = len(cores) // jobs
        gpus = visible_gpus() if jobs > 1 else []
        self.free = [  # cores and a GPU, or None for no choice
            (cores[i * size : (i + 1) * size], gpus[i % len(gpus)] if gpus else None)
            for i in range(jobs)
        ]
        self.waiting, self.working = [], {}  # working: from each run to (process, place)
        self.line = StatusLine()

    @functools.cached_property
    def backend(self):
        """Keras backend of the runs."""
        import keras  # here, so that a program refuses wrong options before

        return self._backend or keras.backend.backend()

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
                working = [f"{run.name} {len(run.history())}/{self.epochs}" for run in self.working]
                self.line.show(f"{self._state()} | {', '.join(working)}")
                time.sleep(0.5)
        finally:
            for process, _ in self.working.values():
                process.terminate()
                process.wait()
            self.line.clear()

    def describe(self, settings):
        """Returns what `recipe.json` says of a run, with backend and image size."""
        recorded = {**super().describe(settings), "backend": self.backend}
        recorded["data"] = canonical_name(settings.data.name)
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
        cores, gpu = place
        run.directory.mkdir(parents=True, exist_ok=True)
        environment = {**os.environ, "KERAS_BACKEND": self.backend}
        if self.jobs > 1:  # on a GPU; by default JAX reserves three quarters of it for one process
            environment.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
        if gpu is not None:
            environment["CUDA_VISIBLE_DEVICES"] = gpu
        everywhere = None
        if self.jobs > 1 and hasattr(os, "sched_getaffinity"):
            environment["OMP_NUM_THREADS"] = str(len(cores))
            everywhere = os.sched_getaffinity(0)
            os.sched_setaffinity(0, cores)  # the child inherits it
        try:
            with open(run.directory / "log.txt", "w") as log:
                pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.DEVNULL, "stderr": log}
                command = train_command(run.settings)
                process = subprocess.Popen(command, env=environment, **pipes)
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

    def _state(self):
        """Returns how many runs are done and about how long the others will take."""
        failed = sum(run.failed for run in self.runs)
        text = f"{len(self.complete)}/{len(self.runs)} runs"
        text += f", {failed} failed" if failed else ""
        going_on = (*self.waiting, *self.working)
        left = sum(run.fraction * (self.epochs - len(run.history())) for run in going_on)
        rate = (self._done() - self.done_before) / max(time.monotonic() - self.began, 0.1)
        if rate <= 0 or not left:
            return text
        hours, minutes = divmod(round(left / rate / 60), 60)
        return f"{text}, left " + (f"{hours} h {minutes:02} min" if hours else f"{minutes} min")


def plan_runs(presets, shared, directory, seeds=(0,), fractions=(1.0,)):
    """Returns the settings of all runs, the first seed and the whole training set first."""
    presets, seeds, fractions = map(dict.fromkeys, (presets, seeds, fractions))
    return [
        dataclasses.replace(
            shared,
            model=dataclasses.replace(shared.model, preset=preset),
            data=dataclasses.replace(shared.data, fraction=fraction),
            changes={**shared.changes, "seed": seed},
            directory=str(Path(directory) / run_name(preset, seed, fraction)),
        )
        for seed in seeds
        for fraction in sorted(fractions, reverse=True)
        for preset in presets
    ]


def run_name(preset, seed, fraction):
    """Returns the name of a run's folder."""
    return f"{preset}{'' if fraction == 1 else f'-{fraction:g}'}-seed{seed}"


def train_command(settings):
    """Returns the command that trains a run and ends when its standard input closes."""
    return [sys.executable, "-m", "keras_gmlp.runs", settings.to_json()]


def _available_cores():
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return list(range(os.cpu_count()))
