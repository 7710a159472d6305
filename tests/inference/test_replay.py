"""Recordings of PyTorch functions; `tests/models/test_backends.py` records every family."""

import torch

from keras_gmlp.inference.replay import Replayed

IMAGES = torch.rand(4, 3, 2, generator=torch.Generator().manual_seed(0))


class Counted:
    """Counts the calls of a function."""

    def __init__(self, function):
        self.function, self.calls = function, 0

    def __call__(self, batch):
        self.calls += 1
        return self.function(batch)


def after_recording(function):
    """Returns the `Replayed` after the call that records, and the counter of calls."""
    counted = Counted(function)
    replayed = Replayed(counted)
    for _ in range(2):
        assert torch.equal(replayed(IMAGES), function(IMAGES))
    return replayed, counted


def test_recording_computes_every_batch_and_follows_the_weights():
    weight = torch.nn.Parameter(torch.rand(2, 2))

    def function(batch):
        x = torch.relu(batch.to(torch.float32) - 0.5) @ weight  # a cast without effect
        left, right = torch.split(x, 1, dim=-1)
        x = torch.cat([left, 2 * right], dim=-1).mT
        x += 1
        return x.add_(x.mean(-1, keepdim=True)).reshape(-1, 6)

    replayed, counted = after_recording(function)
    calls = counted.calls
    for images in (IMAGES, IMAGES[:1], IMAGES[:0]):
        found = replayed(images)
        assert torch.equal(found, function(images))
        assert not found.requires_grad
    with torch.no_grad():
        weight.mul_(3)
    assert torch.equal(replayed(IMAGES), function(IMAGES))
    assert counted.calls == calls


def test_first_call_does_not_record():
    counted = Counted(torch.relu)
    Replayed(counted)(IMAGES)
    assert counted.calls == 1


def test_function_that_a_recording_would_change_is_called():
    for function in (
        lambda batch: batch.reshape(len(batch), -1),  # the size becomes a constant
        lambda batch: batch * float(batch.max()),  # a value becomes a constant
        lambda batch: torch.from_numpy(2 * batch.numpy()),  # computed elsewhere
    ):
        replayed, counted = after_recording(function)
        calls = counted.calls
        assert torch.equal(replayed(IMAGES), function(IMAGES))
        assert counted.calls == calls + 1
