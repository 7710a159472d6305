"""A process that loads one runtime and measures it on request; `client.Worker` starts it.

Requests and answers are lines of JSON. The first request has the settings for `runtimes.load` and
`first`, the size of the first call; the answer follows that call and has the logits of the first
image, the same in all processes. Each later request asks for a
burst: `size`, `calls`, and a number of `untimed` calls before them. An answer with `error` is the
last one.
"""

import json
import os
import sys
import time
from pathlib import Path

from keras_gmlp.benchmark.runtimes import load
from keras_gmlp.utils.errors import first_line


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
    product = settings["runtime"].startswith("product")
    logits = None if product else answer[0].tolist()
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
