"""Measures candidates in turns: all run at once, and each round takes one burst of each.

So a disturbance affects all of them equally. If memory is too small for all, they are measured in
groups, each with the matrix products, which show what the machine can do.
"""

import contextlib
import dataclasses
import math
import statistics
import time

from keras_gmlp.benchmark.candidates import Candidate
from keras_gmlp.benchmark.client import CandidateError
from keras_gmlp.benchmark.machine_load import available_memory, others_share, snapshot

PAUSE = 0.02  # seconds between bursts, because threads of the last one may still spin

RESERVE = 0.5e9  # bytes of memory left to other programs

MOST_CALLS = 200  # per burst


@dataclasses.dataclass
class Result:
    """The measurements of a candidate."""

    candidate: Candidate
    cold_start: float | None = None  # seconds from the start of the process to the first answer
    logits: list | None = None  # of the first image; none for a matrix product
    peaks: dict = dataclasses.field(default_factory=dict)  # megabytes of memory, by size
    bursts: dict = dataclasses.field(default_factory=dict)  # lists of `worker.burst`, by size
    error: str | None = None  # why it failed, on one line

    def seconds(self, size):
        """Returns the seconds of all calls at a size."""
        return [second for burst in self.bursts[size] for second in burst["seconds"]]


@dataclasses.dataclass(frozen=True)
class Schedule:
    """How long to measure: each round has one burst per candidate and size, of one call or more."""

    rounds: int = 10
    burst_seconds: float = 0.3


def measure(candidates, schedule, start, progress=lambda text: None, available=available_memory):
    """Measures all candidates that start."""
    results = {c: Result(c, error=c.missing) for c in candidates}
    waiting = [c for c in candidates if not c.reference and not c.missing]
    references = [candidate for candidate in candidates if candidate.reference]
    spans = []
    while True:
        group = Group(results, schedule, start, progress)
        try:
            group.fill(references)
            waiting = group.fill(waiting, available)
            spans.append(group.run(len(waiting)))
        finally:
            group.close()
        if not waiting:
            return list(results.values()), others_share(spans)


class Group:
    """Workers that run at the same time."""

    def __init__(self, results, schedule, start, progress):
        self.results = results
        self.schedule = schedule
        self.start = start
        self.progress = progress
        self.workers = {}  # by candidate
        self.calls = {}  # per burst, by (candidate, size)
        self.largest = 0.0  # bytes, peak memory of the largest worker

    def fill(self, candidates, available=lambda: None):
        """Starts and warms up candidates while memory is left; returns the others."""
        for number, candidate in enumerate(candidates):
            if number and not self._fits(available()):
                return candidates[number:]
            place = list(self.results).index(candidate) + 1
            self.progress(f"starting {candidate.title} ({place} of {len(self.results)})")
            with self._failing(candidate):
                self.workers[candidate] = self.start(candidate)
                self.results[candidate].cold_start = self.workers[candidate].cold_start
                self.results[candidate].logits = self.workers[candidate].logits
                self._warm_up(candidate)
        return []

    def run(self, later=0):
        """Runs all rounds; returns the snapshots before and after. `later` candidates follow."""
        before = snapshot(self._pids())
        began = time.monotonic()
        for number in range(self.schedule.rounds):
            text = f"round {number + 1} of {self.schedule.rounds}"
            if number:
                seconds = (time.monotonic() - began) / number * (self.schedule.rounds - number)
                text += f", left {math.ceil(seconds)} s"
            self.progress(text + (f", then {later} more candidates" if later else ""))
            self._round()
        return before, snapshot(self._pids())

    def close(self):
        for worker in self.workers.values():
            worker.close()
        self.workers.clear()

    def _fits(self, available):
        """Whether there is memory for another worker as large as the largest."""
        return available is None or available > 1.2 * self.largest + RESERVE

    def _round(self):
        """Measures one burst per candidate at its first size, then at its second, ..."""
        turns = max((len(candidate.sizes) for candidate in self.workers), default=0)
        for turn in range(turns):
            for candidate in list(self.workers):
                if turn < len(candidate.sizes):
                    self._burst(candidate, candidate.sizes[turn])

    def _burst(self, candidate, size):
        with self._failing(candidate):
            time.sleep(PAUSE)
            calls = self.calls[candidate, size]
            # A call that is as long as a burst does not need warm caches.
            answer = self._ask(candidate, size, calls, untimed=int(calls > 1))
            self.results[candidate].bursts.setdefault(size, []).append(answer)

    def _warm_up(self, candidate):
        """Compiles each size and counts the calls of a burst."""
        for size in candidate.sizes:
            calls = 1
            for untimed in (1, 0):
                answer = self._ask(candidate, size, calls, untimed)
                seconds = statistics.median(answer["seconds"])
                calls = round(self.schedule.burst_seconds / seconds)
                calls = min(MOST_CALLS, max(1, calls))
            self.calls[candidate, size] = calls
            self.results[candidate].peaks[size] = answer["peak_megabytes"]

    def _ask(self, candidate, size, calls, untimed):
        request = {"size": size, "calls": calls, "untimed": untimed}
        answer = self.workers[candidate].ask(request)
        self.largest = max(self.largest, 1e6 * (answer["peak_megabytes"] or 0))
        return answer

    @contextlib.contextmanager
    def _failing(self, candidate):
        """Records a failure as the result and continues without the candidate."""
        try:
            yield
        except CandidateError as error:
            self.results[candidate].error = str(error)
            worker = self.workers.pop(candidate, None)
            if worker:
                worker.close()

    def _pids(self):
        return [worker.pid for worker in self.workers.values()]
