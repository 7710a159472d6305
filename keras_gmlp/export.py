"""A trained model as TFLite, SavedModel and ONNX, each checked against the model it came from.

Each converter belongs to one backend. A model of another one is handed over in a `.keras` file to
a process of its own that runs Keras on the converter's.
"""

import dataclasses
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import keras
import numpy as np

import keras_gmlp.objective  # noqa: F401 (registers what a .keras file names)
from keras_gmlp import inference
from keras_gmlp.cards import read_card, write_card
from keras_gmlp.data import evaluation_batches
from keras_gmlp.errors import one_line_errors
from keras_gmlp.files import read_json, replacing, write_json
from keras_gmlp.layers import fold

FORMATS = {
    "tflite": "model.tflite",  # 8-bit weights, float activations
    "tflite_float16": "model_float16.tflite",
    "tflite_float32": "model_float32.tflite",
    "tflite_int8": "model_int8.tflite",  # integers throughout, from uint8 pixels
    "saved_model": "saved_model",
    "onnx": "model.onnx",
}
# What each is written with, and the extra that brings it.
NEEDS = dict.fromkeys(FORMATS, (("tensorflow",), "train"))
NEEDS["onnx"] = (("torch", "onnx", "onnxscript", "onnxruntime"), "onnx")
CALIBRATION = 500  # training images that tell the ranges of the integers


def export(
    model, directory, formats=None, labels=None, card=None, calibration=None, tflite_batch=1
):
    """Writes a model's exports.

    Args:
        model: a float32 `keras.Model` from images in [0, 255] to logits; see
            `training.in_float32` for one trained in mixed precision.
        directory: where to, made if need be.
        formats: keys of `FORMATS`. Default to all that are not `lacking` anything.
        labels: class names. They and the card go into each file; see `cards`.
        card: further facts for the card, a dict that JSON can hold; see `cards.write_card`.
        calibration: for `"tflite_int8"`, images as `tflite.convert` takes them.
        tflite_batch: images that a TFLite file takes at once; see `tflite.convert`. More than one
            are in the file's name, as in `model_batch64.tflite`.

    Returns:
        The paths written, a dict with the formats as keys.

    Raises:
        ValueError: an unknown format, one that lacks something, or a model in mixed precision.
        RuntimeError: the conversion failed.
    """
    if formats is None:
        formats = [name for name in FORMATS if not lacking(name, calibration)]
    _check(model, formats, labels, calibration)
    directory = Path(directory)
    directory.mkdir(parents=True, exist_ok=True)
    facts = {"labels": labels and list(labels), "card": card, "tflite_batch": tflite_batch}
    for backend in ("tensorflow", "torch"):
        chosen = [name for name in formats if (name == "onnx") == (backend == "torch")]
        if chosen and keras.backend.backend() == backend:
            for name in chosen:
                _write(name, model, directory, calibration=calibration, **facts)
        elif chosen:
            order = {"directory": str(directory), "formats": chosen, **facts}
            _hand_over(backend, model, order, calibration)
    return {name: directory / _file_name(name, tflite_batch) for name in formats}


def lacking(name, calibration=None):
    """What a format cannot be written for want of, as a phrase; `None` where it can."""
    if name == "tflite_int8" and calibration is None:
        return "images to calibrate it with (in a shell: --data NAME)"
    packages, extra = NEEDS[name]
    absent = [package for package in packages if not importlib.util.find_spec(package)]
    return f"{', '.join(absent)} (pip install -e '.[{extra}]')" if absent else None


def _check(model, formats, labels, calibration):
    unknown = [name for name in formats if name not in FORMATS]
    if unknown:
        raise ValueError(f"Unknown formats {unknown}; expected some of {', '.join(FORMATS)}.")
    for name in formats:
        if lack := lacking(name, calibration):
            raise ValueError(f"{name} lacks {lack}.")
    if labels and len(labels) != model.output_shape[-1]:
        raise ValueError(f"{len(labels)} labels for {model.output_shape[-1]} classes.")
    mixed = [layer.name for layer in model.layers if layer.dtype_policy.name != "float32"]
    if mixed:
        raise ValueError(
            f"Only float32 models convert; layers {mixed[:3]} have policy "
            f"{model.get_layer(mixed[0]).dtype_policy.name!r}. Use training.in_float32(model)."
        )


def check(path, images, expected, labels, batch=1):
    """Compares an export with the model it came from.

    Args:
        path: of the export.
        images: uint8 `(samples, height, width, channels)`.
        expected: the model's logits for them, `(samples, classes)`.
        labels: their class indices, `(samples,)`.
        batch: images that the latency is measured on.

    Returns:
        A dict: `max_logit_difference`, `top1_agreement` and `accuracy` (shares of the samples),
        `megabytes`, `latency_ms` (an image, median of the batch on one thread).
    """
    classifier = inference.load(path, threads=1)
    logits = np.concatenate([classifier.logits(chunk) for chunk in _chunks(images)])
    answer = logits.argmax(-1)
    return {
        "max_logit_difference": float(f"{np.abs(logits - expected).max():.3g}"),
        "top1_agreement": round(float(np.mean(answer == expected.argmax(-1))), 6),
        "accuracy": round(float(np.mean(answer == labels)), 6),
        "megabytes": round(_size(Path(path)) / 1e6, 3),
        "latency_ms": round(1000 * _latency(classifier, images[:batch]) / batch, 3),
    }


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
        folded: export `fold(model)`, of a ResMLP; it is compared with the model as it was.
        tflite_batch: images that a TFLite file takes at once.

    Returns:
        What `check` found, by format; also written to metrics.json under `"exports"`.

    Raises:
        ValueError: no model in the folder, a damaged one, one that does not fold, or an unknown
            format.
        RuntimeError: a conversion failed.
    """
    directory = Path(directory)
    source = inference.load(directory / "model.keras")
    run = read_json(directory / "recipe.json", {})
    metrics = read_json(directory / "metrics.json", {})
    own = read_card(directory / "model.keras")
    facts = {key: run.get(key, own.get(key)) for key in ("preset", "data")}
    card = {**facts, **source.preparation, "test_accuracy": metrics.get("test_accuracy")}
    card |= {"folded": True} if folded else {}
    if run and "test_accuracy" not in metrics:
        raise ValueError(f"{directory}: this run is not complete; finish it with apps/train.py.")
    if data is not None and tuple(data.labels) != tuple(source.labels):
        raise ValueError(
            f"{directory}: the model's classes are not those of {data.name}; check it on the data "
            "that it was trained on."
        )
    calibration = None
    if data is not None and (formats is None or "tflite_int8" in formats):
        calibration = _arrays(dataclasses.replace(data, test=data.train), CALIBRATION)[0]
    if formats is None:
        lacks = {name: lacking(name, calibration) for name in FORMATS}
        for name, lack in lacks.items():
            if lack:
                report(f"leaving out {name}, which lacks {lack}")
        formats = [name for name, lack in lacks.items() if not lack]
    report(f"exporting {', '.join(formats)}")
    model = fold(source.model) if folded else source.model
    paths = export(model, directory, formats, source.labels, card, calibration, tflite_batch)
    if data is None:
        return {}
    report("checking against the Keras model on the test images")
    images, labels = _arrays(data)
    expected = np.concatenate([source.logits(chunk) for chunk in _chunks(images)])
    exports = metrics.setdefault("exports", {})
    exports["keras"] = {"accuracy": round(float(np.mean(expected.argmax(-1) == labels)), 6)}
    for name, path in paths.items():
        batch = tflite_batch if path.suffix == ".tflite" else 1
        found = check(path, images, expected, labels, batch)
        found |= {"folded": True, "parameters": model.count_params()} if folded else {}
        exports[name if batch == 1 else f"{name}_batch{batch}"] = found
        report(f"{path}: " + ", ".join(f"{key} {value}" for key, value in found.items()))
    write_json(directory / "metrics.json", metrics)
    return exports


def _arrays(data, count=-1):
    """The first images of the test split and their class indices, uint8 and integers."""
    some = dataclasses.replace(data, test=data.test.take(count))
    with one_line_errors():
        batches = evaluation_batches(some).as_numpy_iterator()
        images, labels = (np.concatenate(part) for part in zip(*batches, strict=True))
    return images.astype("uint8"), labels


def _chunks(images, size=250):
    return (images[start : start + size] for start in range(0, len(images), size))


def _file_name(name, tflite_batch):
    path = Path(FORMATS[name])
    if tflite_batch == 1 or path.suffix != ".tflite":
        return path.name
    return f"{path.stem}_batch{tflite_batch}.tflite"


def _write(name, model, directory, labels, card, calibration, tflite_batch):
    path = directory / _file_name(name, tflite_batch)
    if name == "saved_model":
        from keras_gmlp.serving import write_saved_model

        write_saved_model(model, path, labels, card)
    elif name == "onnx":
        from keras_gmlp.onnx_export import write_onnx

        write_onnx(model, path, labels, card)
    else:
        from keras_gmlp.tflite import convert

        precision = name.removeprefix("tflite").removeprefix("_") or "dynamic"
        flatbuffer = convert(model, precision, calibration, tflite_batch)
        with replacing(path) as temporary:
            temporary.write_bytes(flatbuffer)
            write_card(temporary, model, labels, card)


def _hand_over(backend, model, order, calibration):
    """Runs this module as a program on another backend."""
    with tempfile.TemporaryDirectory() as scratch:
        model.save(Path(scratch) / "model.keras")
        (Path(scratch) / "order.json").write_text(json.dumps(order))
        if calibration is not None:
            np.save(Path(scratch) / "calibration.npy", calibration)
        result = subprocess.run(
            [sys.executable, "-m", "keras_gmlp.export", scratch],
            env={**os.environ, "KERAS_BACKEND": backend, "TF_CPP_MIN_LOG_LEVEL": "2"},
            capture_output=True,
            text=True,
            check=False,
        )
    if result.returncode:
        last = (result.stderr.strip().splitlines() or ["no message"])[-1]
        raise RuntimeError(f"exporting with Keras on {backend} failed: {last}")


def _size(path):
    files = [path] if path.is_file() else [p for p in path.rglob("*") if p.is_file()]
    return sum(p.stat().st_size for p in files)


def _latency(classifier, image, repeats=50):
    times = []
    for _ in range(repeats + 5):
        began = time.perf_counter()
        classifier.logits(image)
        times.append(time.perf_counter() - began)
    return float(np.median(times[5:]))


def _main(scratch):
    scratch = Path(scratch)
    order = json.loads((scratch / "order.json").read_text())
    images = scratch / "calibration.npy"
    calibration = np.load(images) if images.exists() else None
    export(keras.saving.load_model(scratch / "model.keras"), **order, calibration=calibration)


if __name__ == "__main__":
    _main(sys.argv[1])
