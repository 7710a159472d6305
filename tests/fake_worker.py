"""A model and made-up workers for the tests of the benchmark."""

from pathlib import Path

from keras_gmlp.benchmark.files import Model
from keras_gmlp.benchmark.runtimes import Candidate
from keras_gmlp.benchmark.worker import CandidateError

MODEL = Model("a", Path("a.keras"), (8, 8, 3), 10, 1000, 2_000_000, None)


def candidate(name, threads=1, sizes=(1, 4), **settings):
    return Candidate(name, threads, {"name": name, **settings}, sizes)


class FakeWorker:
    """Answers at once, and notes in `asked` who was asked for what."""

    cold_start = 1.5
    logits = None
    pid = 0

    def __init__(self, candidate, asked, fails_after=None, megabytes=10):
        self.candidate, self.asked = candidate, asked
        self.fails_after, self.megabytes = fails_after, megabytes
        self.answers = 0
        self.closed = False

    def ask(self, request):
        if self.answers == self.fails_after:
            raise CandidateError("out of luck")
        self.answers += 1
        self.asked.append((self.candidate.name, request["size"], request["calls"]))
        seconds = [0.05 * request["size"]] * request["calls"]
        return {"seconds": seconds, "cores": 1.0, "peak_megabytes": self.megabytes}

    def close(self):
        self.closed = True
