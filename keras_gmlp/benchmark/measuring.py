"""Measures runtimes in turns: all run at once, and each round takes one burst of each.

So a disturbance affects all of them equally. If memory is too small for all, they are measured in
groups, each with the matrix products, which show what the machine can do.
"""

import contextlib
import dataclasses
import math
import statistics
import time

from keras_gmlp.benchmark.machine_load import available_memory, others_share, snapshot
from keras_gmlp.benchmark.runtimes import Candidate
from keras_gmlp.benchmark.worker import CandidateError

PAUSE = 0.02  # seconds between bursts, because threads of the last one may still spin
RESERVE = 0.5e9  # bytes of memory left to other programs
MOST_CALLS = 200  # per burst


@dataclasses.dataclass
class Result:
    """The measurements of a candidate, and its worker while that runs."""

    candidate: Candidate
    cold_start: float | None = None  # seconds from the start of the process to the first answer
    logits: list | None = None  # of the first image; none for a matrix product
    peaks: dict = dataclasses.field(default_factory=dict)  # megabytes of memory, by size
    bursts: dict = dataclasses.field(default_factory=dict)  # lists of `worker.burst`, by size
    error: str | None = None  # why it failed, on one line
    worker: object = None
    calls: dict = dataclasses.field(default_factory=dict)  # per burst, by size

    def seconds(self, size):
        """Returns the seconds of all calls at a size."""
        return [second for burst in self.bursts[size] for second in burst["seconds"]]

    @contextlib.contextmanager
    def failing(self):
        """Records a failure as the result and continues without the candidate."""
        try:
            yield
        except CandidateError as error:
            self.error = str(error)
            self.close()

    def close(self):
        if self.worker:
            self.worker.close()
        self.worker = None


def measure(
    candidates, rounds, burst_seconds, start, progress=lambda text: None, available=available_memory
):
    """Measures all candidates that start; returns their results, and the share of others' load."""
    results = [Result(candidate, error=candidate.missing) for candidate in candidates]
    products = [result for result in results if result.candidate.runtime.is_product]
    waiting = [result for result in results if result not in products and not result.error]
    spans = []
    while True:
        group, largest = [], 0
        try:
            for result in [*products, *waiting]:
                # There must be memory for another worker as large as the largest.
                free = available() if len(group) > len(products) else None
                if free is not None and free <= 1.2e6 * largest + RESERVE:
                    break
                group.append(result)
                title, place = result.candidate.title, results.index(result) + 1
                progress(f"starting {title} ({place} of {len(results)})")
                _start(result, start, burst_seconds)
                largest = max(largest, *(peak or 0 for peak in result.peaks.values()), 0)
            waiting = waiting[len(group) - len(products) :]
            spans.append(_run_rounds(group, rounds, len(waiting), progress))
        finally:
            for result in group:
                result.close()
        if not waiting:
            return results, others_share(spans)


def _start(result, start, burst_seconds):
    """Starts a candidate, compiles each size and counts the calls of a burst."""
    with result.failing():
        result.worker = start(result.candidate)
        result.cold_start, result.logits = result.worker.cold_start, result.worker.logits
        for size in result.candidate.sizes:
            calls = 1
            for untimed in (1, 0):
                answer = result.worker.ask({"size": size, "calls": calls, "untimed": untimed})
                calls = round(burst_seconds / statistics.median(answer["seconds"]))
                calls = min(MOST_CALLS, max(1, calls))
            result.calls[size], result.peaks[size] = calls, answer["peak_megabytes"]


def _run_rounds(group, rounds, later, progress):
    """Runs all rounds; returns the snapshots before and after. `later` candidates follow."""

    def take_snapshot():
        return snapshot([result.worker.pid for result in group if result.worker])

    before, began = take_snapshot(), time.monotonic()
    for number in range(rounds):
        text = f"round {number + 1} of {rounds}"
        if number:
            seconds = (time.monotonic() - began) / number * (rounds - number)
            text += f", left {math.ceil(seconds)} s"
        progress(text + (f", then {later} more candidates" if later else ""))
        # All candidates at their first size, then all at their second, ...
        for turn in range(max((len(r.candidate.sizes) for r in group), default=0)):
            for result in group:
                if not result.worker or turn >= len(result.candidate.sizes):
                    continue
                size = result.candidate.sizes[turn]
                calls = result.calls[size]
                time.sleep(PAUSE)
                with result.failing():
                    # A call that is as long as a burst does not need warm caches.
                    burst = {"size": size, "calls": calls, "untimed": int(calls > 1)}
                    answer = result.worker.ask(burst)
                    result.bursts.setdefault(size, []).append(answer)
    return before, take_snapshot()
