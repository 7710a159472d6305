import pytest

from keras_gmlp.comparison.workers import Workers
from keras_gmlp.runs.run import train_run
from keras_gmlp.training import precision


@pytest.fixture(autouse=True)
def one_precision(monkeypatch):
    """Spares a child process that measures."""
    monkeypatch.setattr(precision, "choose_in_child", lambda *_: "float32")


@pytest.fixture
def train_here(monkeypatch):
    """Sweeps train in this process."""

    def train(workers):
        for run in workers.waiting:
            train_run(run.settings, export=False, verbose=0)

    monkeypatch.setattr(Workers, "train", train)
