"""Calibrates a run, and its exports alike, on images or texts that it was not trained on."""

import os
from pathlib import Path

import numpy as np

from keras_gmlp.data.images.folder import OTHER, open_other
from keras_gmlp.data.images.label_sets import refuse_several
from keras_gmlp.data.run_folder import Run
from keras_gmlp.evaluation.images import no_known_class, read_logits
from keras_gmlp.evaluation.labelled import BATCH, LabelledImages
from keras_gmlp.inference import images as inference
from keras_gmlp.inference import text as texts_inference
from keras_gmlp.inference.card_update import find_models, read_any_card, update_card
from keras_gmlp.tasks.confidence import (
    TEMPERATURE,
    THRESHOLD,
    Confidence,
    energies,
    fit_temperature,
    fit_threshold,
)
from keras_gmlp.tasks.registry import find_task
from keras_gmlp.tasks.scores import (
    ClassScorer,
    calibration_error,
    match_classes,
    round_score,
    round_scores,
)
from keras_gmlp.training.model_card import write_model_card
from keras_gmlp.utils.card import read_card
from keras_gmlp.utils.environment import require
from keras_gmlp.utils.errors import printable
from keras_gmlp.utils.files import directory_lock, write_json
from keras_gmlp.utils.sources import find_model


def calibrate_run(directory, data=None, split=None, reject=0.05, data_dir=None):
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
        reject: Share of the inputs of known classes that may be rejected, in [0, 1); `None` for no
            threshold.
        data_dir: The folder of TFDS; see `data.load`.

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
    if reject is not None and not 0 <= reject < 1:
        raise ValueError(f"reject must be in [0, 1); received {reject}.")
    require("sklearn", "calibration", "demo")
    directory, _ = find_model(directory, ("run",))
    files = find_models(directory)
    with directory_lock(directory):
        cards = {path: read_any_card(path) for path in files}
        task = find_task(cards[files[0]].get("task"))
        metrics = Run(directory).metrics
        measure = _measure_texts if task.domain == "texts" else _measure_images
        result = measure(directory, data, split, data_dir, reject)
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
    if not (directory / "model.keras").exists():  # of a text model only the .tflite may be there
        return []
    current = read_card(directory / "model.keras").get(TEMPERATURE)
    outdated = ["saved_model"] if (directory / "saved_model").exists() else []
    for path in directory.glob("model*.tflite"):
        card = read_card(path)
        if card.get("output") == "probabilities" and card.get(TEMPERATURE) != current:
            outdated.append(path.name)
    return outdated


def _refuse_own(name, own, split):
    """Raises a `ValueError` if data are all of the run's own."""
    if own and split == "all":
        raise ValueError(
            f"{printable(name)}: the run was trained on some of these data; give --split "
            "validation or test, or other data with --data."
        )


def _open_images(directory, data, split, data_dir):
    name, own, division = Run(directory).data(data, split)
    _refuse_own(name, own, split)
    split = split or ("validation" if own else "all")
    try:
        images = LabelledImages(name, split, data_dir, **division)
    except ValueError:
        roles = (division.get("roles") or {}).values()
        if not own or split != "validation" or "validation" in (*division.get("parts", ()), *roles):
            raise
        place = directory if data is None else printable(data)
        raise ValueError(
            f"{place}: the run held none of its images out for validation; give images that it was "
            "not trained on with --data, --split test, or train it again with --validation 0.2."
        ) from None
    refuse_several(name, images.label_rows)
    return images


def _measure_images(directory, data, split, data_dir, reject):
    """Fits both values to images and returns the result of `calibrate_run`."""
    classifier = inference.load(find_model(directory, ("keras",))[0])
    if classifier.thresholds is not None:
        raise ValueError(
            f"{directory}: gives any number of labels for an image, by thresholds; calibration "
            "requires a model that gives one."
        )
    images = _open_images(directory, data, split, data_dir)
    known = match_classes([classifier], images.labels, images.name)
    scorer = ClassScorer(classifier.labels, images.labels, known)
    batches = images.batches(classifier)
    found = _read_logits(classifier, batches, len(images), scorer.used, images.split)
    if not found:
        raise ValueError(no_known_class(images))
    logits, labels = found[0], scorer.places[found[1]]
    result = {"data": images.name, "split": images.split, "images": len(labels)}
    result |= _fit(logits, labels, reject)
    folder = Path(os.path.expanduser(images.name))
    other = open_other(folder, classifier.image_shape, **classifier.preparation)
    if not other:
        return result
    from sklearn.metrics import roc_auc_score

    batches, used = other.batches(BATCH), np.ones(1, bool)
    others, _ = _read_logits(classifier, batches, len(other), used, OTHER)
    scores = energies(np.concatenate([logits, others]), result[TEMPERATURE])
    is_other = np.arange(len(scores)) >= len(logits)
    result["other_images"] = len(others)
    if reject is not None:
        fitted = result[TEMPERATURE], result[THRESHOLD]
        result["other_rejected"] = _share_rejected(*fitted, others)
    return {**result, "auroc": round_score(roc_auc_score(is_other, scores))}


def _measure_texts(directory, data, split, data_dir, reject):
    """Fits both values to texts and returns the result of `calibrate_run`."""
    model = texts_inference.load(directory)
    task = find_task(model.task)
    if task.logits_rank != 2:
        raise ValueError(f"{directory}: {task.kind}; calibration requires a classifier.")
    if split not in (None, "validation", "test", "all"):
        raise ValueError(f"split is {split!r}; expected validation, test or all.")
    run = Run(directory)
    source, own = run.texts(data, split, data_dir=data_dir)
    _refuse_own(source.name, own, split)
    if split == "validation" and not own:
        raise ValueError(
            f"{printable(source.name)}: not the data of the run, so that none of its texts are "
            "held out; give --split test or --split all."
        )
    if own and split in (None, "validation"):
        settings = run.settings
        if not (settings.get("hold_out") or settings.get("validation")):
            raise ValueError(
                f"{directory}: held no texts out; give labelled texts that it was not trained on "
                "with --data FILE, --split test, or train it again with --validation 0.1."
            )
        # Held-out texts replace the test texts.
        split = "validation" if settings.get("validation") else "test"
    samples, chosen = task.load_samples([model], source, split)
    texts, logits, scorer, _ = task.read_logits(model, samples)
    result = {"data": source.name, "split": chosen["split"], "texts": len(texts)}
    return {**result, **_fit(logits.astype("float64"), scorer.places[texts.labels], reject)}


def _fit(logits, labels, reject):
    """Fits temperature and threshold; returns these entries of the result of `calibrate_run`."""
    temperature = fit_temperature(logits, labels)
    correct = logits.argmax(axis=-1) == labels
    result, errors = {TEMPERATURE: temperature}, {}
    for name, divisor in (("calibration_error_before", 1.0), ("calibration_error", temperature)):
        probabilities = Confidence(divisor).probabilities(logits).max(axis=-1)
        errors[name] = calibration_error(probabilities, correct)
    result |= round_scores(errors)
    if reject is None:
        return result
    threshold = fit_threshold(logits, temperature, reject)
    rejected = _share_rejected(temperature, threshold, logits)
    return {**result, THRESHOLD: threshold, "reject": reject, "rejected": rejected}


def _share_rejected(temperature, threshold, logits):
    return round_score(np.mean(~Confidence(temperature, threshold).is_known(logits)))


def _read_logits(classifier, batches, total, used, split):
    """Returns float64 logits and class indices of the images of used classes, a pair, or none."""
    parts = read_logits(classifier, batches, total, used, f"reading {split} images")
    pairs = [(logits.astype("float64"), indices) for logits, _, indices, _ in parts]
    return [np.concatenate(arrays) for arrays in zip(*pairs, strict=True)]
