"""Exports a training run and compares each file with the model."""

import os
import re
import shutil
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from keras_gmlp.data.images.image_data import ImageData
from keras_gmlp.data.run_folder import Run
from keras_gmlp.export.writing import FORMATS, ExportOptions, choose_formats, write_formats
from keras_gmlp.inference.latency import time_calls
from keras_gmlp.models.folding import fold
from keras_gmlp.models.saved import require_numbers
from keras_gmlp.tasks.confidence import TEMPERATURE, Confidence
from keras_gmlp.tasks.registry import find_task
from keras_gmlp.training.model_card import write_model_card
from keras_gmlp.utils.card import read_card
from keras_gmlp.utils.files import directory_lock, remove_leftovers, write_json
from keras_gmlp.utils.sources import find_model
from keras_gmlp.weights.loading import load

CALIBRATION = 500  # training images that determine the ranges of the integers
# The largest difference of a file that answers as its model: a share of the range of the model's
# answers, and, where these are all alike, what rounding changes.
FAR, ROUNDING = 0.5, 1e-3


def export_run(
    directory: str | Path,
    formats: Sequence[str] | None = None,
    data: ImageData | tuple | None = None,
    report: Callable[[str], None] = lambda text: None,
    *,
    folded: bool = False,
) -> dict:
    """Exports the `model.keras` in the folder of a run, checks each file and records the result.

    Args:
        directory: Folder of the run, as `training.train` writes it, or the name of an included
            model.
        formats: Keys of `FORMATS`. Defaults to the usual ones whose requirements are met.
        data: The `ImageData` whose test split checks the files and whose training split
            calibrates the integers. Of a text model, a pair: a list of texts, or of pairs of texts,
            and their class indices or `None`. `None` skips the checks and `"tflite_int8"`.
        report: Function that receives a line of text on each step.
        folded: Whether to export `fold(model)` of a ResMLP.

    Returns:
        A dict by format, and under `"keras"` the accuracy of an image model. Of each file it has
        `max_logit_difference`, or `max_probability_difference` of a file that computes
        probabilities; `top1_agreement` and `accuracy` (shares of the samples), or of several labels
        `mean_average_precision`; `megabytes`, and `latency_ms`: one sample on one thread, median,
        in processor time; none of a SavedModel, which uses all cores. It is also written to
        metrics.json under `"exports"`; the entries of files that were replaced without a check are
        removed.

    Raises:
        ValueError: If the folder has no model, the model is damaged or does not fold, a format is
            unknown, or another process uses the folder.
        RuntimeError: If a conversion fails, or a file does not answer as the model does and is
            removed; all other files are written and checked.
    """
    path, _ = find_model(directory, ("keras",))
    directory, run, own = path.parent, Run(path), read_card(path)
    if run.recipe and not run.complete:
        raise ValueError(f"{directory}: this run is not complete; finish it.")
    with directory_lock(directory), tempfile.TemporaryDirectory() as traces:
        remove_leftovers(directory, "|".join(re.escape(f.path) for f in FORMATS.values()))
        opened = load(path)
        task = find_task(opened.task)
        is_text = task.domain == "texts"
        model = fold(opened.model) if folded else opened.model
        calibration = None
        if data is not None and is_text:
            samples, truth = task.encode(opened, data[0]), data[1]
        elif data is not None:
            samples, truth = task.check_samples(opened, data)
            if formats is None or "tflite_int8" in formats:
                calibration = data.train.take(slice(CALIBRATION)).arrays()[0]
        card = _make_card(own, run, task) | ({"folded": True} if folded else {})
        labels = opened.labels if is_text or opened.named else None
        options = ExportOptions(labels, card, calibration, traces)
        options = options.for_texts(opened) if is_text else options
        results, failures = {}, []
        formats = choose_formats(model, formats, options, report)
        if data is not None:
            report("running the Keras model")
            expected = _run(opened, samples)
            results = {} if is_text else {"keras": task.score_logits(expected, truth)}
        try:
            for name in formats:
                path = directory / FORMATS[name].path
                report(f"exporting {name}")
                try:
                    write_formats(model, directory, [name], options)
                    results[name] = None  # what was recorded is about another file
                    if data is None:
                        report(f"{path}: megabytes {_megabytes(path)}, not checked")
                        continue
                    results[name] = check_export(path, samples, expected, truth)
                except (RuntimeError, ValueError) as error:  # the others are written all the same
                    failures.append(str(error))
                    if name in results:  # programs would open the wrong file
                        shutil.rmtree(path) if path.is_dir() else path.unlink()
                    continue
                if folded:
                    results[name] |= {"folded": True, "parameters": model.count_params()}
                shown = ", ".join(f"{key} {value}" for key, value in results[name].items())
                report(f"{path}: {shown}")
        finally:  # an interrupt keeps the results so far
            results = _record(directory, results)
    if failures:
        raise RuntimeError(" ".join(failures))
    return results


def _make_card(own, run, task):
    """Returns what the cards of all files say, given that of `model.keras`."""
    known = {**run.recipe, **run.metrics}
    names = ("preset", "data", "arguments", f"test_{task.headline}")
    # Each export writes its own labels.
    card = {name: value for name, value in own.items() if name not in ("labels", "named")}
    card |= {name: known[name] for name in names if name in known}
    if os.path.isabs(str(card.get("data", ""))):  # the files leave this machine
        card["data"] = Path(card["data"]).name
    return card


def load_check_data(directory, name=None):
    """Returns the data that `export_run` checks files with: a run's own, or others by name."""
    path, _ = find_model(directory, ("keras",))
    run, card = Run(path), read_card(path)
    task = find_task(card.get("task"))
    if task.domain == "texts":
        # The name of a prepared text does not say where it is.
        if not (name or (task.labelled and "data" in run.recipe)):
            raise ValueError(
                f"{directory}: give --data FILE, a text to check the files with, or --no-check."
            )
        return task.check_samples(load(path), run.texts(name)[0])
    name = name or (None if "data" in run.recipe else card.get("data"))
    shape = run.recipe.get("image_shape") or load(path).image_shape
    return run.load_images(shape, name, card.get("fit", "crop"))


def _run(model, samples, size=250):
    """Returns the logits of a `Classifier` for images, or of a text model for inputs by name."""
    if isinstance(samples, dict):
        return model.run(**samples)
    starts = range(0, len(samples), size)
    logits = [model.logits(samples[start : start + size]) for start in starts]
    return require_numbers(np.concatenate(logits), model.path)


def check_export(path, images, expected, labels=None):
    """Compares an exported file with the model's logits, and measures its size and latency.

    Raises a `ValueError` if it answers otherwise.
    """
    path, is_text = Path(path), isinstance(images, dict)
    model = load(path, threads=1)
    logits, used = _run(model, images), ...
    if is_text and "mask_positions" in images:
        used = images["mask_positions"] > 0
    card, found, wanted = read_card(path), logits[used], expected[used]
    name = "max_logit_difference"
    if card.get("output") == "probabilities":  # the logits are their logarithms
        name, found = "max_probability_difference", np.exp(found)
        wanted = Confidence(card.get(TEMPERATURE, 1.0)).probabilities(wanted)
    result = {name: float(f"{np.abs(found - wanted).max():.3g}")}
    if result[name] > FAR * (span := np.ptp(wanted)) + ROUNDING:
        raise ValueError(
            f"{path}: does not answer as the model: {name} {result[name]}, of {span:.3g} between "
            "the model's least and largest. It is removed; export another format."
        )
    if found.shape[-1] > 1 and (labels is None or labels.ndim == 1):
        result["top1_agreement"] = round(float(np.mean(found.argmax(-1) == wanted.argmax(-1))), 6)
    if labels is not None:
        result |= find_task(model.task).score_logits(logits, labels)
    result["megabytes"] = _megabytes(path)
    if path.is_file():
        one = {name: array[:1] for name, array in images.items()} if is_text else images[:1]
        seconds = time_calls({0: lambda: _run(model, one)}, clock=time.process_time)[0]
        result["latency_ms"] = round(1000 * seconds, 3)
    return result


def _record(directory, results):
    """Merges results into metrics.json, from which `None` removes an entry; returns the others."""
    metrics = Run(directory).metrics
    before = metrics.get("exports", {})
    after = {name: result for name, result in {**before, **results}.items() if result is not None}
    if after != before:
        write_json(directory / "metrics.json", {**metrics, "exports": after})
    write_model_card(directory)
    return {name: result for name, result in results.items() if result is not None}


def _megabytes(path):
    files = [path] if path.is_file() else [p for p in path.rglob("*") if p.is_file()]
    return round(sum(p.stat().st_size for p in files) / 1e6, 3)
