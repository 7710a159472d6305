"""The exports of a training run, each checked against the model it came from."""

import re
import tempfile
import time
from pathlib import Path

import numpy as np

from keras_gmlp import inference
from keras_gmlp.card import read_card
from keras_gmlp.data.batches import arrays
from keras_gmlp.export.formats import (
    FORMATS,
    export,
    file_name,
    missing_requirement,
    require_exportable,
)
from keras_gmlp.models.folding import fold
from keras_gmlp.training.model_card import write_model_card
from keras_gmlp.training.run_directory import model_path
from keras_gmlp.utils.files import directory_lock, read_json, remove_leftovers, write_json

CALIBRATION = 500  # training images that tell the ranges of the integers


def export_run(
    directory, formats=None, data=None, report=lambda text: None, *, folded=False, tflite_batch=1
):
    """Exports the `model.keras` of a run's folder, checks each file, and records what it found.

    Args:
        directory: of the run, as `training.train` leaves it.
        formats: keys of `FORMATS`. Default to all that are not `lacking` anything.
        data: the `ImageData` whose test split the exports are checked on and some of whose
            training split calibrates the integers; `None` for no check.
        report: called with a line of text as the work goes on.
        folded: export `fold(model)`, of a ResMLP; it is compared with the model as it was, in its
            logits and, measured in turns, in its latency.
        tflite_batch: images that a TFLite file takes at once.

    Returns:
        What `check` found, by format, and under `"keras"` the model's own accuracy; also written to
        metrics.json under `"exports"`, where nothing is left of files that these replace.

    Raises:
        ValueError: no model in the folder, a damaged one, one that does not fold, an unknown
            format, or another process at work in the folder.
        RuntimeError: a conversion failed; what could be written is written and checked.
    """
    directory = Path(directory)
    source = inference.load(model_path(directory))
    with directory_lock(directory):
        remove_leftovers(directory, "|".join(map(re.escape, FORMATS.values())))
        return _export_run(directory, source, formats, data, report, folded, tflite_batch)


def _export_run(directory, source, formats, data, report, folded, tflite_batch):
    run = read_json(directory / "recipe.json", {})
    metrics = read_json(directory / "metrics.json", {})
    if run and "test_accuracy" not in metrics:
        raise ValueError(f"{directory}: this run is not complete; finish it with apps/train.py.")
    if data is not None and tuple(data.labels) != tuple(source.labels):
        raise ValueError(
            f"{directory}: the model's classes are not those of {data.name}; check it on the data "
            "that it was trained on."
        )
    calibration = None
    if data is not None and (formats is None or "tflite_int8" in formats):
        calibration = arrays(data, "train", CALIBRATION)[0]
    if formats is None:
        formats = _possible(calibration, report)
    model = fold(source.model) if folded else source.model
    labels = source.labels if source.named else None
    require_exportable(model, formats, labels, calibration)
    own = {**read_card(directory / "model.keras"), **run}
    card = {"preset": own.get("preset"), "data": own.get("data"), **source.preparation}
    card["test_accuracy"] = metrics.get("test_accuracy")
    card |= {"folded": True} if folded else {}
    batches = {name: tflite_batch if name.startswith("tflite") else 1 for name in formats}
    entries = {n: n if batch == 1 else f"{n}_batch{batch}" for n, batch in batches.items()}
    paths = {name: directory / file_name(name, batch) for name, batch in batches.items()}
    found = {}
    if data is not None:
        images, truth = arrays(data)
        report(f"asking the Keras model for its answers to {len(images):,} test images")
        expected = np.concatenate([source.logits(chunk) for chunk in _chunks(images)])
        found["keras"] = {"accuracy": round(float(np.mean(expected.argmax(-1) == truth)), 6)}
    failures = []
    for name in formats:  # what fails leaves the others, and their checks
        report(f"exporting {name}")
        before = file_identity(paths[name])
        try:
            export(model, directory, [name], labels, card, calibration, tflite_batch)
        except RuntimeError as error:
            failures.append(str(error))
            continue
        finally:
            if file_identity(paths[name]) != before:  # what was found is of another file
                _record(directory, {entries[name]: None})
        if data is None:
            report(f"{paths[name]}: megabytes {_megabytes(paths[name])}, not checked")
            continue
        of_this = check_export(paths[name], images, expected, truth, batches[name])
        if folded:
            of_this |= {"folded": True, "parameters": model.count_params()}
            of_this |= folding_speedup(name, paths[name], source, batches[name], calibration)
        found[entries[name]] = of_this
        _record(directory, found)  # now, for an interrupt may come
        report(f"{paths[name]}: " + ", ".join(f"{key} {value}" for key, value in of_this.items()))
    if failures:
        raise RuntimeError(" ".join(failures))
    return found


def _possible(calibration, report):
    """The formats that lack nothing; of the others it tells what they lack."""
    lacks = {name: missing_requirement(name, calibration) for name in FORMATS}
    for name, lack in lacks.items():
        if lack:
            report(f"leaving out {name}, which lacks {lack}")
    return [name for name, lack in lacks.items() if not lack]


def check_export(path, images, expected, labels, batch=1):
    """Compares an export with the model it came from.

    Args:
        path: of the export.
        images: uint8 `(samples, height, width, channels)`.
        expected: the model's logits for them, `(samples, classes)`.
        labels: their class indices, `(samples,)`.
        batch: images that the latency is measured on.

    Returns:
        A dict: `max_logit_difference`, `top1_agreement` and `accuracy` (shares of the samples),
        `megabytes`, and `latency_ms` (an image, median of the batch on one thread) but for a
        SavedModel: TensorFlow takes all cores, and takes no other number once it runs.
    """
    classifier = inference.load(path, threads=1)
    logits = np.concatenate([classifier.logits(chunk) for chunk in _chunks(images)])
    answer = logits.argmax(-1)
    found = {
        "max_logit_difference": float(f"{np.abs(logits - expected).max():.3g}"),
        "top1_agreement": round(float(np.mean(answer == expected.argmax(-1))), 6),
        "accuracy": round(float(np.mean(answer == labels)), 6),
        "megabytes": _megabytes(path),
    }
    if Path(path).is_file():
        found["latency_ms"] = round(1000 * measure_latencies({0: classifier}, batch)[0] / batch, 3)
    return found


def measure_latencies(classifiers, batch=1, repeats=50):
    """Median seconds that each classifier takes for a batch.

    A batch of each in turn, so that all meet the same disturbances.

    Args:
        classifiers: a dict of `inference.Classifier`s.
        batch: images.
        repeats: times that each takes its turn, after five that do not count.

    Returns:
        A dict with the same keys.
    """
    times = {name: [] for name in classifiers}
    images = {name: np.zeros((batch, *c.image_shape), "uint8") for name, c in classifiers.items()}
    for _ in range(5 + repeats):
        for name, classifier in classifiers.items():
            began = time.perf_counter()
            classifier.logits(images[name])
            times[name].append(time.perf_counter() - began)
    return {name: float(np.median(found[5:])) for name, found in times.items()}


def folding_speedup(name, path, source, batch, calibration):
    """What folding gains in latency: an export of the model as it was, beside the folded one."""
    with tempfile.TemporaryDirectory() as scratch:
        plain = export(source.model, scratch, [name], None, None, calibration, batch)[name]
        both = {"folded": path, "plain": plain}
        seconds = measure_latencies(
            {which: inference.load(p, threads=1) for which, p in both.items()}, batch
        )
    gain = {"speed_up": round(seconds["plain"] / seconds["folded"], 3)}
    if path.is_file():  # see `check`
        gain["unfolded_latency_ms"] = round(1000 * seconds["plain"] / batch, 3)
    return gain


def _chunks(images, size=250):
    return (images[start : start + size] for start in range(0, len(images), size))


def _record(directory, found):
    """Adds to what metrics.json tells of the exports; what is `None` is taken out."""
    metrics = read_json(directory / "metrics.json", {})
    known = metrics.get("exports", {})
    told = {name: of_it for name, of_it in {**known, **found}.items() if of_it is not None}
    if told != known:
        write_json(directory / "metrics.json", {**metrics, "exports": told})
    write_model_card(directory)


def file_identity(path):
    """What tells a file or a folder from one that takes its place."""
    return (path.stat().st_ino, path.stat().st_mtime_ns) if path.exists() else None


def _megabytes(path):
    path = Path(path)
    files = [path] if path.is_file() else [p for p in path.rglob("*") if p.is_file()]
    return round(sum(p.stat().st_size for p in files) / 1e6, 3)
