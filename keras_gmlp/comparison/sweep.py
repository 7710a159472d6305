"""Many runs, some at a time, each trained by a process of its own."""

import os
import subprocess
import time

from keras_gmlp.utils.errors import why_ended
from keras_gmlp.utils.progress import StatusLine


class Sweep:
    """Trains what is neither complete nor failed, each run in a process of its own.

    Args:
        commands: of each `comparison.Run` the command that trains it, a list of arguments. It is
            to end when its standard input does.
        epochs: of each run.
        jobs: runs at once; they share the cores.
    """

    def __init__(self, commands, epochs, jobs=1):
        self.commands = commands
        self.epochs = epochs
        self.jobs = jobs
        self.waiting = [run for run in commands if not run.complete and not run.failed]
        self.working = {}  # run: (process, cores)
        cores = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
        size = max(1, len(cores) // jobs)
        self.free = [cores[i * size : (i + 1) * size] for i in range(jobs)]
        self.line = StatusLine()

    def work(self):
        """Returns when no run is left; a run that fails is marked so."""
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

    def _start(self, run, cores):
        """Starts a run on some of the cores."""
        run.directory.mkdir(parents=True, exist_ok=True)
        environment = dict(os.environ)
        if self.jobs > 1:  # on a GPU; of its own JAX takes three quarters of it for one process
            environment.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
        everywhere = None
        if cores and self.jobs > 1:
            environment["OMP_NUM_THREADS"] = str(len(cores))
            everywhere = os.sched_getaffinity(0)
            os.sched_setaffinity(0, cores)  # the child inherits it
        try:
            with open(run.directory / "log.txt", "w") as log:
                process = subprocess.Popen(
                    self.commands[run],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.DEVNULL,
                    stderr=log,
                    env=environment,
                )
        finally:
            if everywhere:
                os.sched_setaffinity(0, everywhere)
        self.working[run] = (process, cores)

    def _collect(self):
        """Takes in the runs that ended."""
        for run, (process, cores) in list(self.working.items()):
            if process.poll() is None:
                continue
            process.stdin.close()
            del self.working[run]
            self.free.append(cores)
            if process.returncode == 0:
                (run.directory / "log.txt").unlink(missing_ok=True)
                self.line.say(f"{run.name}: complete ({self._state()})")
                continue
            reason = why_ended(
                process.returncode, (run.directory / "log.txt").read_text(errors="replace")
            )
            run.fail(reason)
            self.line.say(f"{run.name}: failed ({reason})")

    def _done(self):
        """Epochs done, weighted by the size of their training set."""
        return sum(run.fraction * len(run.history()) for run in self.commands)

    def _show(self):
        """One line for the whole sweep."""
        at_work = [f"{run.name} {len(run.history())}/{self.epochs}" for run in self.working]
        self.line.show(f"{self._state()} | {', '.join(at_work)}")

    def _state(self):
        """How many runs are done, and about how long the others will take."""
        complete = sum(run.complete for run in self.commands)
        failed = sum(run.failed for run in self.commands)
        left = sum(
            run.fraction * (self.epochs - len(run.history()))
            for run in (*self.waiting, *self.working)
        )
        rate = (self._done() - self.done_before) / max(time.monotonic() - self.began, 0.1)
        text = f"{complete}/{len(self.commands)} runs" + (f", {failed} failed" if failed else "")
        return text + (f", left {_clock(left / rate)}" if rate > 0 and left else "")


def _clock(seconds):
    minutes = round(seconds / 60)
    return f"{minutes // 60} h {minutes % 60:02} min" if minutes >= 60 else f"{minutes} min"
