"""Calibrates a run, and its exports alike, on images or texts that it was not trained on."""

import os
from pathlib import Path

import numpy as np

from keras_gmlp.data.images.folder import open_other
from keras_gmlp.data.run_folder import Run
from keras_gmlp.evaluation.labelled import LabelledImages
from keras_gmlp.inference.card_update import read_cards, update_card
from keras_gmlp.tasks.confidence import (
    TEMPERATURE,
    THRESHOLD,
    Confidence,
    energies,
    fit_temperature,
    fit_threshold,
)
from keras_gmlp.tasks.image_classification import read_logits
from keras_gmlp.tasks.registry import find_task
from keras_gmlp.tasks.scores import (
    calibration_error,
    round_score,
    round_scores,
)
from keras_gmlp.training.model_card import write_model_card
from keras_gmlp.utils.environment import require
from keras_gmlp.utils.errors import printable
from keras_gmlp.utils.files import directory_lock, write_json
from keras_gmlp.utils.sources import KINDS, find_model
from keras_gmlp.weights.loading import load


def calibrate_run(
    directory: str | Path,
    data: str | Path | None = None,
    split: str | None = None,
    reject: float | None = 0.05,
) -> dict:
    """Fits temperature and energy threshold, and writes them into all models of a run.

    The values go into the card of each model file, and with what was measured into metrics.json
    under `"calibration"` and into the model card. Repeating a call changes nothing. Files that
    compute probabilities themselves get the temperature when they are exported again.

    Args:
        directory: Folder of a complete run, or the name of an included model; a classifier of
            images or of texts.
        data: A folder of class folders, labelled texts, or a data set by name. Defaults to the
            run's.
        split: `"validation"`, `"test"` or `"all"`. Defaults to the validation images, or held-out
            texts, of the run's data, and to all of other data.
        reject: Share of the inputs of known classes that may be rejected, in [0, 1]; `None` for no
            threshold.

    Returns:
        A dict that JSON can hold: `data`, `split`, `images` or `texts` (their number),
        `temperature`, `calibration_error_before` and `calibration_error` (with the temperature, on
        the same inputs); with a threshold also `energy_threshold`, `reject` and `rejected`, a
        share. If the data have a folder `_other/`, also `other_images` (their number), `auroc`,
        with which the energy separates them from the images of known classes, and with a threshold
        `other_rejected`, a share.

    Raises:
        ValueError: If the run has no validation images, or held-out texts, and no other data are
            given, the model is not a classifier, the data cannot be read, no class is known to the
            model, a file of the run has no card, or another process uses the folder. One line.
        ImportError: If scikit-learn or, for an `.onnx` file, onnx is not installed. One line.
    """
    require("sklearn", "calibration", "demo")
    directory, _ = find_model(directory, ("run",))
    with directory_lock(directory):
        cards = read_cards(directory)
        run, model = Run(directory), load(find_model(directory, ("keras", *KINDS))[0])
        metrics = run.metrics  # here, so that a damaged file is an error before a change
        task = find_task(model.task)
        if task.method != "classify" or task.several:
            raise ValueError(
                f"{run.path}: {task.kind}; calibration requires a classifier of one label for each "
                "sample."
            )
        read = _read_texts if task.domain == "texts" else _read_images
        described, logits, labels, others = read(model, run, data, split)
        result = described | _fit(logits, labels, others, reject)
        entries = {name: result.get(name) for name in (TEMPERATURE, THRESHOLD)}
        for path, card in cards.items():
            if card.get("output") != "probabilities":
                update_card(path, entries)
        if metrics:
            write_json(directory / "metrics.json", {**metrics, "calibration": result})
            write_model_card(directory)
    return result


def find_outdated(directory):
    """Returns the names of files that compute probabilities, perhaps with another temperature."""
    directory, _ = find_model(directory, ("run",))
    cards = read_cards(directory)
    current = next(iter(cards.values())).get(TEMPERATURE)  # of model.keras
    stale = {p for p, c in cards.items() if c.get("output") and c.get(TEMPERATURE) != current}
    return [path.name for path in cards if path.is_dir() or path in stale]


def _refuse_trained(name, own, split):
    if own and split in ("train", "all"):
        raise ValueError(
            f"{printable(name)}: the run was trained on some of these data; give --split "
            "validation or test, or other data with --data."
        )


def _read_images(classifier, run, data, split):
    """Returns what the images are, their logits and classes, and logits of other pictures."""
    name, own, division = run.data(data, split)
    _refuse_trained(name, own, split)
    split = split or ("validation" if own else "all")
    images = LabelledImages(name, split, **division)
    task = find_task(classifier.task)
    samples, _ = task.load_samples([classifier], images)
    scorer = task.make_scorer(classifier, *samples)
    found = read_logits(classifier, images, scorer.used, f"reading {split} images")
    logits, labels = map(np.concatenate, zip(*((a, b) for a, _, b, _ in found), strict=True))
    described = {"data": images.name, "split": split, "images": len(labels)}
    folder = Path(os.path.expanduser(images.name))
    other, others = open_other(folder, classifier.image_shape, **classifier.preparation), None
    if other:
        others = np.concatenate([*map(classifier.logits, other.stream())])
    return described, logits.astype("float64"), scorer.places[labels], others


def _read_texts(model, run, data, split):
    """Returns for texts what `_read_images` does."""
    source, own = run.texts(data, split)
    _refuse_trained(source.name, own, split)
    if own and split in (None, "validation"):
        marked = "validation" in (source.roles or ())
        validation = marked or run.settings.get("validation")
        if not (validation or run.settings.get("hold_out")):
            raise ValueError(
                f"{run.path}: held no texts out; give others with --data FILE, --split test, or "
                "train it again with --validation 0.1."
            )
        # Held-out texts replace the test texts.
        split = "validation" if validation else "test"
    task = find_task(model.task)
    samples, chosen = task.load_samples([model], source, split)
    texts, scorer = samples[0], task.make_scorer(model, *samples)
    logits = task.read_logits(model, texts)
    described = {"data": source.name, "split": chosen["split"], "texts": len(texts)}
    return described, logits.astype("float64"), scorer.places[texts.labels], None


def _fit(logits, labels, others, reject):
    """Fits temperature and threshold; returns these entries of the result of `calibrate_run`."""
    temperature = fit_temperature(logits, labels)
    correct = logits.argmax(axis=-1) == labels
    result, errors = {TEMPERATURE: temperature}, {}
    for name, divisor in (("calibration_error_before", 1.0), ("calibration_error", temperature)):
        probabilities = Confidence(divisor).probabilities(logits).max(axis=-1)
        errors[name] = calibration_error(probabilities, correct)
    result |= round_scores(errors)
    if reject is not None:
        threshold = fit_threshold(logits, temperature, reject)
        confidence = Confidence(temperature, threshold)
        rejected = round_score(np.mean(~confidence.is_known(logits)))
        result |= {THRESHOLD: threshold, "reject": reject, "rejected": rejected}
    if others is None:
        return result
    from sklearn.metrics import roc_auc_score

    scores = energies(np.concatenate([logits, others]), temperature)
    is_other = np.arange(len(scores)) >= len(logits)
    result |= {"other_images": len(others), "auroc": round_score(roc_auc_score(is_other, scores))}
    if reject is not None:
        result["other_rejected"] = round_score(np.mean(~confidence.is_known(others)))
    return result
