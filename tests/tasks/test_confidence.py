"""Temperature and energy, by hand and against a search that shares no code."""

import math

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import log_softmax, logsumexp

from keras_gmlp.tasks.confidence import (
    Confidence,
    energies,
    fit_temperature,
    fit_threshold,
    read_confidence,
)

pytestmark = pytest.mark.once


@pytest.mark.parametrize(("right", "share"), [(8, 9 / 10), (7, 7 / 8), (5, 5 / 8)])
def test_temperature_of_two_classes_by_hand(right, share):
    """All logits differ by 3. Eight right images of eight count as nine of ten."""
    logits = np.tile([3.0, 0.0], (8, 1))
    labels = [0] * right + [1] * (8 - right)
    expected = 3 / math.log(share / (1 - share))
    assert fit_temperature(logits, labels) == pytest.approx(expected, rel=1e-4)
    found = Confidence(expected).probabilities(logits)
    np.testing.assert_allclose(found[:, 0], share)


def test_temperature_is_that_of_another_search():
    rng = np.random.default_rng(0)
    logits = rng.normal(0, 5, (400, 7))
    labels = np.array([rng.choice(7, p=np.exp(log_softmax(row / 2.5))) for row in logits])

    def loss(log_temperature):
        return -np.mean(log_softmax(logits / np.exp(log_temperature), 1)[range(400), labels])

    expected = np.exp(minimize(loss, 0.0, method="Nelder-Mead", options={"xatol": 1e-8}).x[0])
    found = fit_temperature(logits, labels)
    assert found == pytest.approx(expected, rel=1e-4)
    assert found == pytest.approx(2.5, rel=0.1)


@pytest.mark.parametrize(("reject", "rejected"), [(0.0, 0), (0.05, 1), (0.1, 2), (0.14, 2)])
def test_threshold_rejects_at_most_the_share(reject, rejected):
    logits = np.random.default_rng(0).normal(0, 3, (20, 5))
    expected = -logsumexp(logits / 2, axis=1)
    np.testing.assert_allclose(energies(logits, 2), expected)
    unknown = ~Confidence(2, fit_threshold(logits, 2, reject)).is_known(logits)
    assert set(np.flatnonzero(unknown)) == set(np.argsort(expected)[20 - rejected :])
    assert unknown.sum() == rejected


def test_energy_of_large_logits_is_finite():
    assert energies([1e4, 0.0]) == -1e4
    assert Confidence().is_known([1e4, 0.0]) is None


def test_card_without_entries_changes_nothing():
    assert read_confidence({}) == Confidence(1.0, None)
    card = {"temperature": 2, "energy_threshold": -3.5}
    assert read_confidence(card) == Confidence(2, -3.5)
    assert read_confidence({**card, "output": "probabilities"}) == Confidence()
