"""Measures candidates beside one another: all alive, one burst of each in turn, round after round.

So a disturbance meets all of them alike. Where memory does not hold all, they are measured in
groups, each with the matrix products that tell what the machine can do.
"""

import contextlib
import dataclasses
import math
import statistics
import time

from keras_gmlp.benchmark.candidates import Candidate
from keras_gmlp.benchmark.client import CandidateError
from keras_gmlp.benchmark.machine_load import available_memory, others_share, snapshot

PAUSE = 0.02  # seconds between bursts: threads of the last one may spin for a while

RESERVE = 0.5e9  # bytes of memory left to others

MOST_CALLS = 200  # in a burst


@dataclasses.dataclass
class Result:
    """What was found of a candidate.

    Attributes:
        candidate: the `Candidate`.
        cold_start: seconds from the start of its process to the first answer.
        peaks: by size, the most megabytes of memory that it had up to then, smaller sizes first.
        bursts: by size, what `worker.burst` returned in each round.
        error: one line, where it failed.
    """

    candidate: Candidate
    cold_start: float | None = None
    peaks: dict = dataclasses.field(default_factory=dict)
    bursts: dict = dataclasses.field(default_factory=dict)
    error: str | None = None

    def seconds(self, size):
        """Of all calls at a size."""
        return [second for burst in self.bursts[size] for second in burst["seconds"]]


@dataclasses.dataclass(frozen=True)
class Schedule:
    """How long to measure.

    Attributes:
        rounds: of one burst of each candidate at each size.
        burst_seconds: a burst is as many calls as take about so long, at least one.
    """

    rounds: int = 10
    burst_seconds: float = 0.3


def measure(candidates, plan, start, progress=lambda text: None, available=available_memory):
    """Measures all candidates that start.

    Args:
        candidates: `Candidate`s; the references among them are in every group.
        plan: a `Plan`.
        start: function of a candidate to its `Worker`, which raises a `CandidateError`.
        progress: called with a short text as the work goes on.
        available: function of nothing to the bytes of memory that are left, or to `None`:
            unknown.

    Returns:
        `(results, others)`: a `Result` of each candidate, in their order, and the share of the
        machine's CPU time that other processes took meanwhile, `None` where it is unknown.
    """
    results = {c: Result(c, error=c.missing) for c in candidates}
    waiting = [c for c in candidates if not c.reference and not c.missing]
    references = [candidate for candidate in candidates if candidate.reference]
    spans = []
    while True:
        group = Group(results, plan, start, progress)
        try:
            group.fill(references)
            waiting = group.fill(waiting, available)
            spans.append(group.run(len(waiting)))
        finally:
            group.close()
        if not waiting:
            return list(results.values()), others_share(spans)


class Group:
    """Workers that are alive together."""

    def __init__(self, results, plan, start, progress):
        self.results = results
        self.plan = plan
        self.start = start
        self.progress = progress
        self.workers = {}  # candidate: worker
        self.calls = {}  # (candidate, size): in a burst
        self.largest = 0.0  # peak memory of one worker, bytes

    def fill(self, candidates, available=lambda: None):
        """Starts and warms up candidates as long as memory is left; returns those left.

        One is started in any case, or there would be no end.
        """
        for number, candidate in enumerate(candidates):
            if number and not self._fits(available()):
                return candidates[number:]
            place = list(self.results).index(candidate) + 1
            self.progress(f"starting {candidate.title} ({place} of {len(self.results)})")
            with self._failing(candidate):
                self.workers[candidate] = self.start(candidate)
                self.results[candidate].cold_start = self.workers[candidate].cold_start
                self._warm_up(candidate)
        return []

    def run(self, later=0):
        """All rounds; returns the pair of snapshots around them. `later` candidates follow."""
        before = snapshot(self._pids())
        began = time.monotonic()
        for number in range(self.plan.rounds):
            text = f"round {number + 1} of {self.plan.rounds}"
            if number:
                seconds = (time.monotonic() - began) / number * (self.plan.rounds - number)
                text += f", left {math.ceil(seconds)} s"
            self.progress(text + (f", then {later} more candidates" if later else ""))
            self._round()
        return before, snapshot(self._pids())

    def close(self):
        for worker in self.workers.values():
            worker.close()
        self.workers.clear()

    def _fits(self, available):
        """Whether another like the largest would find its memory."""
        return available is None or available > 1.2 * self.largest + RESERVE

    def _round(self):
        """One burst of each candidate at its first size, then of each at its second, ..."""
        turns = max((len(candidate.sizes) for candidate in self.workers), default=0)
        for turn in range(turns):
            for candidate in list(self.workers):
                if turn < len(candidate.sizes):
                    self._burst(candidate, candidate.sizes[turn])

    def _burst(self, candidate, size):
        with self._failing(candidate):
            time.sleep(PAUSE)
            calls = self.calls[candidate, size]
            # Calls so long that one is a burst do not need warm caches.
            answer = self._ask(candidate, size, calls, untimed=int(calls > 1))
            self.results[candidate].bursts.setdefault(size, []).append(answer)

    def _warm_up(self, candidate):
        """Compiles what compiles, and finds out how many calls make a burst."""
        for size in candidate.sizes:
            calls = 1
            for untimed in (1, 0):
                answer = self._ask(candidate, size, calls, untimed)
                seconds = statistics.median(answer["seconds"])
                calls = round(self.plan.burst_seconds / seconds)
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
        """Makes of a failure a result, and goes on without the candidate."""
        try:
            yield
        except CandidateError as error:
            self.results[candidate].error = str(error)
            worker = self.workers.pop(candidate, None)
            if worker:
                worker.close()

    def _pids(self):
        return [worker.pid for worker in self.workers.values()]
