"""Starts a worker process, asks it to measure, and ends it."""

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

TIMEOUT = 900  # seconds to wait for an answer before the candidate fails


class CandidateError(RuntimeError):
    """Raised when a candidate cannot be started or measured. One line."""


class Worker:
    """A candidate in a separate process; its log and compiled code lie in a scratch folder."""

    def __init__(self, candidate, scratch):
        self.log = Path(scratch) / f"{candidate.name}-{candidate.threads}.log"
        cache = Path(scratch) / f"{candidate.name}-{candidate.threads}.compiled"
        environment = {**os.environ, **variables(candidate.threads, candidate.backend)}
        environment["TORCHINDUCTOR_CACHE_DIR"] = str(cache)  # a cold start compiles
        began = time.perf_counter()
        with self.log.open("w") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "keras_gmlp.benchmark.worker"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                env=environment,
                text=True,
                start_new_session=True,  # on Ctrl-C this process ends the worker
            )
        self.pid = self.process.pid
        try:
            first = {"threads": candidate.threads, "first": candidate.sizes[0]}
            self.logits = self.ask({**candidate.settings, **first})["logits"]
        except BaseException:
            self.close()
            raise
        self.cold_start = time.perf_counter() - began

    def ask(self, request):
        """Returns the answer to a request, or raises a `CandidateError`."""
        late = threading.Event()

        def give_up():
            late.set()  # before the kill, which ends the read below
            self.process.kill()

        timer = threading.Timer(TIMEOUT, give_up)
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
        code = self.process.wait()
        if late:
            return f"no answer within {TIMEOUT} seconds"
        return why_ended(code, self.log.read_text(errors="replace"))[:200]

    def close(self):
        """Ends the worker and any compiler that it has started."""
        if self.process.poll() is None and hasattr(os, "killpg"):
            os.killpg(self.pid, signal.SIGKILL)
        self.process.kill()
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout):
            with contextlib.suppress(OSError):  # the pipe broke with a line in its buffer
                stream.close()
