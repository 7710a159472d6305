"""A choice measures its epochs by the processor's clock, and what follows fits into the time."""

import math
from types import SimpleNamespace

import pytest

from keras_gmlp.runs import budget
from keras_gmlp.runs.budget import Budget

pytestmark = pytest.mark.once


@pytest.fixture
def clock(monkeypatch):
    """Seconds that the process has used, in a list."""
    now = [30.0]
    monkeypatch.setattr(budget, "time", SimpleNamespace(process_time=lambda: now[0]))
    return now


def train(limits, clock, seconds):
    """Returns after how many epochs of these lengths a candidate ends."""
    limits.set_model(SimpleNamespace(stop_training=False))
    for epoch, length in enumerate(seconds):
        limits.on_epoch_begin(epoch)
        clock[0] += length
        limits.on_epoch_end(epoch)
        if limits.model.stop_training:
            return epoch + 1
    return len(seconds)


def test_time_of_a_core_for_a_number_of_images(clock):
    rest = budget.AFTER
    assert Budget(100, 0.8).end == Budget(500, 0.8).end == 120 - rest
    assert Budget(1200, 0.8).end == pytest.approx(360 - rest)
    clock[0] = 5000.0  # a process that did other things before
    assert Budget(500, 0.8).end == 5000 - budget.BEFORE + 120 - rest


def test_a_fast_machine_is_not_held_up(clock):
    limits = Budget(500, 0.8)
    assert limits.epochs_left() == math.inf  # nothing is known
    assert train(limits, clock, [10, 1, 1, 1]) == 4
    limits.measure(18.0, 4)
    left = limits.end - clock[0] - 14.0
    assert limits.epochs_left() == math.floor(left * 0.8)
    assert limits.epochs_left(left) == 0


def test_a_slow_machine_ends_a_candidate_while_there_is_time_for_the_run(clock):
    limits = Budget(500, 0.8)
    epochs = train(limits, clock, [20, 12, 12, 12, 12, 12, 12, 12])
    assert epochs == 3
    assert clock[0] + limits.epochs_left() * 12 / 0.8 <= limits.end
    assert limits.epochs_left() >= 1
