"""The near end of a worker: starts it, asks it, ends it."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

from keras_gmlp.benchmark.runtimes import variables
from keras_gmlp.utils.errors import why_ended

PROGRAM = ("-m", "keras_gmlp.benchmark.worker")

PATIENCE = 900  # seconds without an answer after which a candidate is given up


class CandidateError(RuntimeError):
    """A candidate could not be started or measured; one line that says why."""


class Worker:
    """A candidate in a process of its own. It ends when this process does.

    Args:
        candidate: a `Candidate`.
        scratch: Folder for its log and its compiled code.
        program: Arguments for Python that run `worker.main`.

    Raises:
        CandidateError: If the candidate cannot be loaded or run.
    """

    def __init__(self, candidate, scratch, program=PROGRAM):
        self.log = Path(scratch) / f"{candidate.name}-{candidate.threads}.log"
        cache = Path(scratch) / f"{candidate.name}-{candidate.threads}.compiled"
        environment = {**os.environ, **variables(candidate.threads, candidate.backend)}
        environment["TORCHINDUCTOR_CACHE_DIR"] = str(cache)  # a cold start compiles
        began = time.perf_counter()
        with self.log.open("w") as log:
            self.process = subprocess.Popen(
                [sys.executable, *map(str, program)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                env=environment,
                text=True,
                start_new_session=True,  # Ctrl-C is this process's affair, which ends it
            )
        self.pid = self.process.pid
        try:
            first = {"threads": candidate.threads, "first": candidate.sizes[0]}
            self.ask({**candidate.order, **first})
        except BaseException:
            self.close()
            raise
        self.cold_start = time.perf_counter() - began

    def ask(self, request):
        """The answer to a request; raises a `CandidateError`."""
        late = threading.Event()

        def give_up():
            late.set()  # first: the end of its output tells that it was killed
            self.process.kill()

        timer = threading.Timer(PATIENCE, give_up)
        timer.start()
        try:
            with contextlib.suppress(BrokenPipeError):
                self.process.stdin.write(json.dumps(request) + "\n")
                self.process.stdin.flush()
            line = self.process.stdout.readline()
        finally:
            timer.cancel()
        answer = json.loads(line) if line else {"error": self._reason(late.is_set())}
        if "error" in answer:
            raise CandidateError(answer["error"])
        return answer

    def _reason(self, late):
        """Why there is no answer."""
        code = self.process.wait()
        if late:
            return f"no answer within {PATIENCE} seconds"
        return why_ended(code, self.log.read_text(errors="replace"))[:200]

    def close(self):
        """Ends it, and a compiler that it may have started."""
        if self.process.poll() is None and hasattr(os, "killpg"):
            os.killpg(self.pid, signal.SIGKILL)
        self.process.kill()
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout):
            with contextlib.suppress(OSError):  # a pipe that broke with a line in it
                stream.close()
