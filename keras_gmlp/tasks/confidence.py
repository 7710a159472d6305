"""How far to trust a classifier: a temperature for its probabilities, a bound on its energy.

A temperature divides the logits, so that probabilities are as high as predictions are often right
(Guo et al., 2017, https://arxiv.org/abs/1706.04599). The energy of an image, -logsumexp of these
logits, is high for pictures of other classes (Liu et al., 2020, https://arxiv.org/abs/2010.03759).
Neither changes the predicted class. Fitting requires SciPy, the rest NumPy only.
"""

import dataclasses
import math

import numpy as np

from keras_gmlp.utils.labels import show_labels

TEMPERATURE, THRESHOLD = "temperature", "energy_threshold"  # entries of a card

RANGES = {TEMPERATURE: (0.01, 100), THRESHOLD: (-1e30, 1e30)}  # in which no result overflows


def fit_temperature(logits, labels):
    """Returns the temperature with the highest likelihood of the labels."""
    from scipy.optimize import minimize_scalar

    logits = np.asarray(logits, "float64")
    samples, classes = logits.shape
    true = np.take_along_axis(logits, np.asarray(labels)[:, None], axis=-1)[:, 0]
    expected = true.mean()
    if np.all(true == logits.max(axis=-1)):
        others = (logits.sum(axis=-1) - true) / (classes - 1)
        expected = np.mean(((samples + 1) * true + others) / (samples + 2))

    def loss(log_temperature):
        temperature = math.exp(log_temperature)
        return np.mean(-energies(logits, temperature)) - expected / temperature

    found = minimize_scalar(loss, bounds=np.log(RANGES[TEMPERATURE]), method="bounded")
    return math.exp(found.x)


def fit_threshold(logits, temperature, reject):
    """Returns the energy above which at most a share of the images lies.

    It lies between the energies of two images, since another file of the model rounds them
    differently.
    """
    found = energies(logits, temperature)
    highest = np.quantile(found, 1 - reject, method="inverted_cdf")
    above = found[found > highest]
    return float((highest + above.min()) / 2 if len(above) else highest + 0.001)


def energies(logits, temperature=1.0):
    """Returns -logsumexp(logits / temperature) of each row: `(..., classes)` to float64 `(...)`."""
    # The energy of the paper divided by the temperature, so it has the same order.
    highest, exponentials = _exponentials(logits, temperature)
    return -highest[..., 0] - np.log(exponentials.sum(axis=-1))


def _exponentials(logits, temperature):
    """Returns the highest scaled logit of each row, and exp of the differences from it."""
    logits = np.asarray(logits, "float64") / temperature
    highest = logits.max(axis=-1, keepdims=True)
    return highest, np.exp(logits - highest)


@dataclasses.dataclass(frozen=True)
class Confidence:
    """What follows from logits: probabilities, what is rejected, and which labels apply."""

    temperature: float = 1.0  # what the logits are divided by
    # The highest energy of an image that is taken for one of the classes, if it is calibrated.
    energy_threshold: float | None = None
    # The least probability of each label that applies, if a model gives any number of labels.
    thresholds: tuple[float, ...] | None = None

    def probabilities(self, logits):
        """Returns float64 probabilities `(..., classes)` of logits, independent with thresholds."""
        if self.thresholds is not None:
            return 0.5 + 0.5 * np.tanh(np.asarray(logits, "float64") / 2)  # never overflows
        _, exponentials = _exponentials(logits, self.temperature)
        return exponentials / exponentials.sum(axis=-1, keepdims=True)

    def is_known(self, logits):
        """Returns whether each image shows one of the classes, or `None` if not calibrated."""
        if self.energy_threshold is None:
            return None
        return energies(logits, self.temperature) <= self.energy_threshold

    def rank(self, logits, labels, top):
        """Returns the most probable classes for the logits of a sample; see `Classifier.answer`."""
        if top is not None and top < 1:
            raise ValueError(f"top must be at least 1; received {top}.")
        scores, names = self.probabilities(logits).tolist(), show_labels(labels)
        order = np.argsort(-logits, kind="stable")[:top].tolist()
        rows = [{"label": names[i], "score": scores[i], "index": i} for i in order]
        known = self.is_known(logits)
        for row in rows:
            if self.thresholds is not None:
                row["applies"] = row["score"] >= self.thresholds[row["index"]]
            elif known is not None:
                row["known"] = bool(known)
        return rows


def read_confidence(card, several=0):
    """Returns the `Confidence` in a card; `several` is how many labels must have a threshold."""
    if card.get("output") == "probabilities":
        card = {}  # the file applies them
    entries = {name: card[name] for name in RANGES if card.get(name) is not None}
    for name, value in entries.items():
        low, high = RANGES[name]
        if type(value) not in (int, float) or not low <= value <= high:  # NaN is in no range
            raise ValueError(
                f"its {name} is {str(value)[:40]!r}; expected a number from {low:g} to {high:g}. "
                "Export the model again, or calibrate it."
            )
    thresholds = card.get("thresholds")
    if isinstance(thresholds, list):
        entries["thresholds"] = tuple(
            float(t) for t in thresholds if type(t) in (int, float) and 0 <= t <= 1
        )
    if several and len(entries.get("thresholds", ())) != several:
        raise ValueError(
            f"its card has no threshold from 0 to 1 for each of its {several} labels. Copy or "
            "export it again."
        )
    return Confidence(**entries)
