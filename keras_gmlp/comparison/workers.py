"""Trains the runs of a plan, each in a process of its own, several at the same time."""

import json
import os
import re
import subprocess
import sys
import time

from keras_gmlp.utils.errors import why_ended
from keras_gmlp.utils.progress import ProgressBar


class Workers:
    """Processes that share the cores."""

    def __init__(self, runs, jobs, backend):
        self.runs, self.backend = runs, backend
        cores = available_cores()
        size = len(cores) // jobs
        self.side_by_side = jobs > 1
        self.free = [cores[i * size : (i + 1) * size] for i in range(jobs)]
        places = {os.path.realpath(run.directory): run for run in runs}
        # Of the runs that start from another one of these.
        self.sources = {r: places.get(os.path.realpath(r.source)) for r in runs if r.source}
        self.waiting = [run for run in runs if not run.complete]
        self.working = {}  # from each run to (process, cores)
        self.line = ProgressBar()

    def train(self):
        """Trains the runs that wait; marks those that fail."""
        try:
            while self.waiting or self.working:
                while self.free and (run := self._take()):
                    self._start(run, self.free.pop())
                if not self.working:  # those that are left start from each other
                    self.waiting.clear()
                self._collect()
                working = [f"{run.name} {len(run.history())}/{run.epochs}" for run in self.working]
                self.line.write(f"{self._state()} | {', '.join(working)}")
                time.sleep(0.5)
        finally:
            for process, _ in self.working.values():
                process.terminate()
                process.wait()
            self.line.clear()

    def _take(self):
        """Takes the next run whose weights are trained, or `None`; drops those of failed runs."""
        for run in list(self.waiting):
            source = self.sources.get(run)
            if source is None or source.complete:
                self.waiting.remove(run)
                return run
            if source.failure:
                self.waiting.remove(run)
                self.line.print_line(f"{run.name}: not trained, because {source.name} failed")
        return None

    def _start(self, run, cores):
        """Starts a run on some of the cores."""
        run.failure = ""
        run.directory.mkdir(parents=True, exist_ok=True)
        environment = {**os.environ, "KERAS_BACKEND": self.backend}
        if self.side_by_side:  # by default JAX reserves three quarters of a GPU for one process
            environment.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
        everywhere = None
        if self.side_by_side and hasattr(os, "sched_getaffinity"):
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
        self.working[run] = (process, cores)
        self.line.print_line(f"{run.name}: begins")

    def _collect(self):
        """Records the runs that ended."""
        for run, (process, cores) in list(self.working.items()):
            if process.poll() is None:
                continue
            process.stdin.close()
            del self.working[run]
            self.free.append(cores)
            log = run.directory / "log.txt"
            said = log.read_text(errors="replace") if log.exists() else ""
            for warning in re.findall("DataWarning: (.*)", said):
                self.line.print_line(f"{run.name}: warning: {warning}")
            if run.complete:
                log.unlink(missing_ok=True)
            elif process.returncode:
                run.failure = why_ended(process.returncode, said)
            self.line.print_line(f"{run.name}: {run.status} ({self._state()})")

    def _state(self):
        """Returns how many runs are done."""
        failed = sum(bool(run.failure) for run in self.runs)
        text = f"{sum(run.complete for run in self.runs)}/{len(self.runs)} runs"
        return f"{text}, {failed} failed" if failed else text


def train_command(settings):
    """Returns the command that trains a run and ends when its standard input closes."""
    return [sys.executable, "-m", "keras_gmlp.runs", json.dumps(settings.to_dict())]


def available_cores():
    """Returns the numbers of the cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return list(range(os.cpu_count()))
