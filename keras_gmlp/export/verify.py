"""Exports a training run and compares each file with the model."""

import re
import tempfile
from pathlib import Path

import numpy as np

from keras_gmlp.data.batches.host import arrays
from keras_gmlp.export.formats import (
    DEFAULT_FORMATS,
    FORMATS,
    export,
    file_name,
    missing_requirement,
    require_exportable,
)
from keras_gmlp.export.tflite import Traces
from keras_gmlp.inference import images as inference
from keras_gmlp.inference.latency import measure_latencies
from keras_gmlp.models.folding import fold
from keras_gmlp.models.saved import model_path
from keras_gmlp.objectives.metrics import MeanAveragePrecision
from keras_gmlp.tasks.confidence import TEMPERATURE, THRESHOLD, Confidence
from keras_gmlp.training.model_card import write_model_card
from keras_gmlp.utils.card import read_card
from keras_gmlp.utils.files import directory_lock, read_json, remove_leftovers, write_json

CALIBRATION = 500  # training images that determine the ranges of the integers


def export_run(
    directory, formats=None, data=None, report=lambda text: None, *, folded=False, tflite_batch=1
):
    """Exports the `model.keras` in the folder of a run, checks each file and records the result.

    Args:
        directory: Folder of the run, as `training.train` writes it.
        formats: Keys of `FORMATS`. Defaults to those of `DEFAULT_FORMATS` whose requirements are
            met.
        data: The `ImageData` whose test split checks the files and whose training split
            calibrates the integers. `None` skips the checks and `"tflite_int8"`.
        report: Function that receives a line of text on each step.
        folded: Whether to export `fold(model)` of a ResMLP. Logits and latency are compared with
            those of the original model.
        tflite_batch: Images per call of a TFLite file; `"features"` and `"mediapipe"` take one.

    Returns:
        A dict by format of what `check_export` returns, and under `"keras"` the accuracy of the
        model. It is also written to metrics.json under `"exports"`; the entries of files that were
        replaced without a check are removed.

    Raises:
        ValueError: If the folder has no model, the model is damaged or does not fold, a format is
            unknown, or another process uses the folder.
        RuntimeError: If a conversion fails; all other files are written and checked.

    Example:
        >>> import shutil, tempfile
        >>> folder = tempfile.mkdtemp()
        >>> _ = shutil.copy("saved_models/gmlp_n4_32-cifar10/model.keras", folder)
        >>> export_run(folder, ["saved_model"])  # with data=..., what the checks measured
        {}
    """
    directory = Path(directory)
    source = inference.load(model_path(directory))
    with directory_lock(directory):
        remove_leftovers(directory, "|".join(map(re.escape, FORMATS.values())))
        return _export_run(directory, source, formats, data, report, folded, tflite_batch)


def _export_run(directory, source, formats, data, report, folded, tflite_batch):
    run = read_json(directory / "recipe.json", {})
    metrics = read_json(directory / "metrics.json", {})
    headline = "accuracy" if source.thresholds is None else "mean_average_precision"
    if run and f"test_{headline}" not in metrics:
        raise ValueError(f"{directory}: this run is not complete; finish it with apps/train.py.")
    if data is not None and tuple(data.labels) != tuple(source.labels):
        raise ValueError(
            f"{directory}: the classes of the model and of {data.name} differ; check it on its "
            "training data."
        )
    calibration = None
    if data is not None and (formats is None or "tflite_int8" in formats):
        calibration = arrays(data, "train", CALIBRATION)[0]
    if formats is None:
        formats = _possible(calibration, report)
    model = fold(source.model) if folded else source.model
    labels = source.labels if source.named else None
    thresholds = {} if source.thresholds is None else {"thresholds": list(source.thresholds)}
    require_exportable(model, formats, labels, calibration, thresholds)
    origin = {**read_card(directory / "model.keras"), **run}
    card = {"preset": origin.get("preset"), "data": origin.get("data"), **source.preparation}
    card |= {"arguments": origin["arguments"]} if "arguments" in origin else {}
    card |= {f"test_{headline}": metrics.get(f"test_{headline}"), **thresholds}
    card |= {name: origin[name] for name in (TEMPERATURE, THRESHOLD) if name in origin}
    card |= {"folded": True} if folded else {}
    batches = {name: tflite_batch if name.startswith("tflite") else 1 for name in formats}
    entries = {n: n if batch == 1 else f"{n}_batch{batch}" for n, batch in batches.items()}
    paths = {name: directory / file_name(name, batch) for name, batch in batches.items()}
    results = {}
    if data is not None:
        images, truth = arrays(data)
        rows = data.label_rows()
        truth = truth if rows is None else rows[truth]
        report(f"running the Keras model on {len(images):,} test images")
        expected = np.concatenate([source.logits(chunk) for chunk in _chunks(images)])
        results["keras"] = _score(expected, truth)
    failures = []
    with Traces() as traces:
        for name in formats:  # a failure does not stop the others
            report(f"exporting {name}")
            before = file_identity(paths[name])
            try:
                export(model, directory, [name], labels, card, calibration, tflite_batch, traces)
            except RuntimeError as error:
                failures.append(str(error))
                continue
            finally:
                # The recorded result is about another file.
                if file_identity(paths[name]) != before:
                    _record(directory, {entries[name]: None})
            if data is None:
                report(f"{paths[name]}: megabytes {_megabytes(paths[name])}, not checked")
                continue
            result = check_export(paths[name], images, expected, truth, batches[name])
            if folded:
                result |= {"folded": True, "parameters": model.count_params()}
                result |= folding_speedup(name, paths[name], source, batches[name], calibration)
            results[entries[name]] = result
            _record(directory, results)  # at once: an interrupt keeps the results so far
            report(
                f"{paths[name]}: " + ", ".join(f"{key} {value}" for key, value in result.items())
            )
    if failures:
        raise RuntimeError(" ".join(failures))
    return results


def _possible(calibration, report):
    """Returns the formats whose requirements are met; reports what the others require."""
    missing = {name: missing_requirement(name, calibration) for name in DEFAULT_FORMATS}
    for name, requirement in missing.items():
        if requirement:
            report(f"skipping {name}, which requires {requirement}")
    return [name for name, requirement in missing.items() if not requirement]


def check_export(path, images, expected, labels, batch=1):
    """Compares an exported file with the model.

    Args:
        path: Path of the file, or of the folder of a SavedModel.
        images: uint8 images `(samples, height, width, channels)`.
        expected: Logits of the model for the images, `(samples, classes)`.
        labels: Class indices of the images, `(samples,)`, or rows of 0 and 1 `(samples, classes)`.
        batch: Images per call when the latency is measured.

    Returns:
        A dict: `max_logit_difference`, or `max_probability_difference` for a file that computes
        probabilities; `top1_agreement` and `accuracy` (shares of the samples in [0, 1]), or for
        rows `mean_average_precision`; `megabytes`, and `latency_ms` (per image on one thread,
        median). A SavedModel has no latency: TensorFlow uses all cores, and their number is fixed
        once it runs.
    """
    classifier = inference.load(path, threads=1)
    logits = np.concatenate([classifier.logits(chunk) for chunk in _chunks(images)])
    same = logits.argmax(-1) == expected.argmax(-1)
    result = {
        **_compare(logits, expected, read_card(path)),
        **({"top1_agreement": round(float(np.mean(same)), 6)} if labels.ndim == 1 else {}),
        **_score(logits, labels),
        "megabytes": _megabytes(path),
    }
    if Path(path).is_file():
        result["latency_ms"] = round(1000 * measure_latencies({0: classifier}, batch)[0] / batch, 3)
    return result


def _score(logits, labels):
    """Returns the accuracy, or for rows of 0 and 1 the mean average precision, a dict."""
    if labels.ndim == 1:
        return {"accuracy": round(float(np.mean(logits.argmax(-1) == labels)), 6)}
    metric = MeanAveragePrecision(labels.shape[1])
    return {metric.name: round(float(metric(labels, logits)), 6)}


def _compare(logits, expected, card):
    """Returns the largest difference, by its name, a dict."""
    name = "max_logit_difference"
    if card.get("output") == "probabilities":  # the logits are their logarithms
        name, logits = "max_probability_difference", np.exp(logits)
        expected = Confidence(card.get(TEMPERATURE, 1.0)).probabilities(expected)
    return {name: float(f"{np.abs(logits - expected).max():.3g}")}


def folding_speedup(name, path, source, batch, calibration):
    """Measures the speed-up of a folded export over an export of the original model, a dict."""
    with tempfile.TemporaryDirectory() as scratch:
        plain = export(source.model, scratch, [name], None, None, calibration, batch)[name]
        both = {"folded": path, "plain": plain}
        seconds = measure_latencies(
            {which: inference.load(p, threads=1) for which, p in both.items()}, batch
        )
    gain = {"speed_up": round(seconds["plain"] / seconds["folded"], 3)}
    if path.is_file():  # see `check_export`
        gain["unfolded_latency_ms"] = round(1000 * seconds["plain"] / batch, 3)
    return gain


def _chunks(images, size=250):
    return (images[start : start + size] for start in range(0, len(images), size))


def _record(directory, results):
    """Merges results into metrics.json; `None` removes an entry."""
    metrics = read_json(directory / "metrics.json", {})
    before = metrics.get("exports", {})
    after = {name: result for name, result in {**before, **results}.items() if result is not None}
    if after != before:
        write_json(directory / "metrics.json", {**metrics, "exports": after})
    write_model_card(directory)


def file_identity(path):
    """Returns a value that changes when the file or folder is replaced."""
    return (path.stat().st_ino, path.stat().st_mtime_ns) if path.exists() else None


def _megabytes(path):
    path = Path(path)
    files = [path] if path.is_file() else [p for p in path.rglob("*") if p.is_file()]
    return round(sum(p.stat().st_size for p in files) / 1e6, 3)
