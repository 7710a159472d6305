"""A process that holds one runtime and measures it when told to: `process.Worker`'s far end.

It speaks in lines of JSON. First it is given the order (see `runtimes.load`) with
`first`, the size of the first call; it answers once that call has been made. Then each line asks
for a burst: `size`, `calls`, and `untimed` calls before them. An answer with `error` is the last.
"""

import json
import os
import sys
import time
from pathlib import Path

from keras_gmlp.benchmark.runtimes import load
from keras_gmlp.utils.errors import first_line


def main():
    # What libraries print goes to stderr, past the answers.
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
    """Yields the answers to the requests, of which the first is the order."""
    order = next(requests)
    prepare = load(order)
    calls = {order["first"]: prepare(order["first"])}
    calls[order["first"]]()
    yield {"peak_megabytes": peak_megabytes()}
    for request in requests:
        size = request["size"]
        if size not in calls:
            calls[size] = prepare(size)
        yield burst(calls[size], request["calls"], request["untimed"])


def burst(call, repeats, untimed):
    """Times repeated calls.

    Returns:
        A dict with `seconds` of each call, `cores` that the process used on average, and
        `peak_megabytes` of memory so far.
    """
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
    """The largest resident memory of this process, or `None` where the system does not tell."""
    status = Path("/proc/self/status")
    if status.exists():  # getrusage would count what the parent had when it started this process
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
