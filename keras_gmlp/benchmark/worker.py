"""A process that loads one runtime and measures it on request, and what starts and asks it.

Requests and answers are lines of JSON. The first request has the settings for `runtimes.load` and
`first`, the size of the first call; the answer follows that call and has the logits of the first
image, the same in all processes. Each later request asks for a burst: `size`, `calls`, and a number
of `untimed` calls before them. An answer with `error` is the last one.
"""

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

from keras_gmlp.benchmark.runtimes import RUNTIMES, load, variables
from keras_gmlp.utils.errors import first_line, why_ended

TIMEOUT = 900  # seconds to wait for an answer before the candidate fails


class CandidateError(RuntimeError):
    """Raised when a candidate cannot be started or measured. One line."""


class Worker:
    """A candidate in a separate process; its log and compiled code lie in a scratch folder."""

    def __init__(self, candidate, scratch):
        self.log = Path(scratch) / f"{candidate.name}-{candidate.threads}.log"
        cache = Path(scratch) / f"{candidate.name}-{candidate.threads}.compiled"
        environment = {**os.environ, **variables(candidate.threads, candidate.name)}
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
        if line:
            answer = json.loads(line)
        elif late.is_set():
            answer = {"error": f"no answer within {TIMEOUT} seconds"}
        else:
            reason = why_ended(self.process.wait(), self.log.read_text(errors="replace"))
            answer = {"error": reason[:200]}
        if "error" in answer:
            raise CandidateError(answer["error"])
        return answer

    def close(self):
        """Ends the worker and any compiler that it has started."""
        if self.process.poll() is None and hasattr(os, "killpg"):
            os.killpg(self.pid, signal.SIGKILL)
        self.process.kill()
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout):
            with contextlib.suppress(OSError):  # the pipe broke with a line in its buffer
                stream.close()


def main():
    # What libraries print goes to stderr, not between the answers.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    try:
        for answer in work(map(json.loads, sys.stdin)):
            print(json.dumps(answer), file=answers, flush=True)
    except Exception as error:  # runtimes raise errors of every kind
        print(json.dumps({"error": first_line(error)}), file=answers, flush=True)
        return 1
    return 0


def work(requests):
    """Yields the answers to the requests; the first request has the settings."""
    settings = next(requests)
    prepare, first = load(settings), settings["first"]
    calls = {first: prepare(first)}
    answer = calls[first]()
    logits = None if RUNTIMES[settings["name"]].is_product else answer[0].tolist()
    yield {"peak_megabytes": peak_megabytes(), "logits": logits}
    for request in requests:
        size = request["size"]
        if size not in calls:
            calls[size] = prepare(size)
        yield burst(calls[size], request["calls"], request["untimed"])


def burst(call, repeats, untimed):
    """Times repeated calls."""
    for _ in range(untimed):
        call()
    seconds, cpu, began = [], time.process_time(), time.perf_counter()
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - start)
    cores = (time.process_time() - cpu) / (time.perf_counter() - began)
    return {"seconds": seconds, "cores": cores, "peak_megabytes": peak_megabytes()}


def peak_megabytes():
    """Returns the peak resident memory of this process, or `None` if unknown."""
    status = Path("/proc/self/status")
    if status.exists():  # getrusage would count the parent's memory at the start of this process
        for line in status.read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024 / 1e6
    try:
        import resource
    except ImportError:  # not on this system
        return None
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e6


if __name__ == "__main__":
    sys.exit(main())
