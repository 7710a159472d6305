"""A trained model as SavedModel and TFLite, each checked against the model it came from.

The converter is TensorFlow's. A model of another backend is handed over in a `.keras` file to a
process of its own that runs Keras on TensorFlow.
"""

import json
import os
import shutil
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
    "saved_model": "saved_model",
}


def export(model, directory, formats=tuple(FORMATS), labels=None, card=None):
    """Writes a model's exports.

    Args:
        model: a float32 `keras.Model` from images in [0, 255] to logits; see
            `training.in_float32` for one trained in mixed precision.
        directory: where to, made if need be.
        formats: keys of `FORMATS`.
        labels: class names. They and the card go into each TFLite file, and into the SavedModel's
            `assets.extra`.
        card: further facts for the card, a dict that JSON can hold; see `cards.write_card`.

    Returns:
        The paths written, a dict with the formats as keys.

    Raises:
        ValueError: an unknown format, or a model in mixed precision.
        RuntimeError: the conversion failed.
    """
    unknown = [name for name in formats if name not in FORMATS]
    if unknown:
        raise ValueError(f"Unknown formats {unknown}; expected some of {', '.join(FORMATS)}.")
    mixed = [layer.name for layer in model.layers if layer.dtype_policy.name != "float32"]
    if mixed:
        raise ValueError(
            f"Only float32 models convert; layers {mixed[:3]} have policy "
            f"{model.get_layer(mixed[0]).dtype_policy.name!r}. Use training.in_float32(model)."
        )
    directory = Path(directory)
    directory.mkdir(parents=True, exist_ok=True)
    if keras.backend.backend() == "tensorflow":
        return {name: _write(name, model, directory, labels, card) for name in formats}
    with tempfile.TemporaryDirectory() as scratch:
        model.save(Path(scratch) / "model.keras")
        order = {"directory": str(directory), "formats": list(formats)}
        order |= {"labels": labels and list(labels), "card": card}
        (Path(scratch) / "order.json").write_text(json.dumps(order))
        _in_tensorflow(scratch)
    return {name: directory / FORMATS[name] for name in formats}


def check(path, images, expected, labels):
    """Compares an export with the model it came from.

    Args:
        path: of the export.
        images: uint8 `(samples, height, width, channels)`.
        expected: the model's logits for them, `(samples, classes)`.
        labels: their class indices, `(samples,)`.

    Returns:
        A dict: `max_logit_difference`, `top1_agreement` and `accuracy` (shares of the samples),
        `megabytes`, `latency_ms` (median of one image on one thread).
    """
    classifier = inference.load(path, threads=1)
    logits = np.concatenate([classifier.logits(chunk) for chunk in _chunks(images)])
    answer = logits.argmax(-1)
    return {
        "max_logit_difference": float(f"{np.abs(logits - expected).max():.3g}"),
        "top1_agreement": round(float(np.mean(answer == expected.argmax(-1))), 6),
        "accuracy": round(float(np.mean(answer == labels)), 6),
        "megabytes": round(_size(Path(path)) / 1e6, 3),
        "latency_ms": round(1000 * _latency(classifier, images[:1]), 3),
    }


def export_run(
    directory, formats=tuple(FORMATS), data=None, report=lambda text: None, *, folded=False
):
    """Exports the `model.keras` of a run's folder, checks each file, and records what it found.

    Args:
        directory: of the run, as `training.train` leaves it.
        formats: keys of `FORMATS`.
        data: the `ImageData` whose test split the exports are checked on; `None` for no check.
        report: called with a line of text as the work goes on.
        folded: export `fold(model)`, of a ResMLP; it is compared with the model as it was.

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
    report(f"exporting {', '.join(formats)}")
    model = fold(source.model) if folded else source.model
    paths = export(model, directory, formats, source.labels, card)
    if data is None:
        return {}
    report("checking against the Keras model on the test images")
    with one_line_errors():
        images, labels = (np.concatenate(part) for part in _test_arrays(data))
    expected = np.concatenate([source.logits(chunk) for chunk in _chunks(images)])
    exports = metrics.setdefault("exports", {})
    exports["keras"] = {"accuracy": round(float(np.mean(expected.argmax(-1) == labels)), 6)}
    for name, path in paths.items():
        exports[name] = check(path, images, expected, labels)
        exports[name] |= {"folded": True, "parameters": model.count_params()} if folded else {}
        report(f"{path}: " + ", ".join(f"{key} {value}" for key, value in exports[name].items()))
    write_json(directory / "metrics.json", metrics)
    return exports


def _test_arrays(data):
    return zip(*evaluation_batches(data).as_numpy_iterator(), strict=True)


def _chunks(images, size=250):
    return (images[start : start + size] for start in range(0, len(images), size))


def _write(name, model, directory, labels, card):
    path = directory / FORMATS[name]
    if name == "saved_model":
        _write_saved_model(model, path, labels, card)
        return path
    flatbuffer = _convert(model, name)
    with replacing(path) as temporary:
        temporary.write_bytes(flatbuffer)
        write_card(temporary, model, labels, card)
    return path


def _write_saved_model(model, path, labels, card):
    """Through a tf.Module: `model.export` would store the weights twice."""
    import tensorflow as tf

    module = _module(model)
    shape = (None, *model.input_shape[1:])

    def signature(dtype):
        @tf.function(input_signature=[tf.TensorSpec(shape, dtype, name="image")])
        def serve(image):
            return {"logits": model(tf.cast(image, tf.float32), training=False)}

        return serve

    temporary = path.with_name(f".{os.getpid()}.{path.name}")
    try:
        module.serve, module.serve_uint8 = signature(tf.float32), signature(tf.uint8)
        signatures = {"serving_default": module.serve, "uint8": module.serve_uint8}
        tf.saved_model.save(module, str(temporary), signatures=signatures)
        write_card(temporary, model, labels, card)
        shutil.rmtree(path, ignore_errors=True)
        temporary.rename(path)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _module(model):
    """A module that owns the model's variables and not the model.

    With the model, its optimizer would be saved too, and the converter would find no weights.
    """
    import tensorflow as tf

    module = tf.Module()
    module.weights = [variable.value for variable in model.variables]
    return module


def _convert(model, name):
    """The flatbuffer, by way of a SavedModel."""
    import tensorflow as tf

    module = _module(model)
    # A batch of one, fixed: runtimes in browsers reject a dynamic one.
    spec = tf.TensorSpec((1, *model.input_shape[1:]), tf.float32, name="image")
    module.serve = tf.function(
        lambda image: {"logits": model(image, training=False)}, input_signature=[spec]
    )
    with tempfile.TemporaryDirectory() as scratch:
        tf.saved_model.save(module, scratch, signatures={"serving_default": module.serve})
        converter = tf.lite.TFLiteConverter.from_saved_model(scratch)
        converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS]
        if name != "tflite_float32":
            converter.optimizations = [tf.lite.Optimize.DEFAULT]
        if name == "tflite_float16":
            converter.target_spec.supported_types = [tf.float16]
        try:
            return converter.convert()
        except Exception as error:  # the converter raises errors of every kind, many lines long
            reason = str(error).strip().splitlines()[0][:300]
            raise RuntimeError(f"{name}: the conversion failed ({reason}).") from error


def _in_tensorflow(scratch):
    """Runs this module as a program on the files in `scratch`."""
    environment = {**os.environ, "KERAS_BACKEND": "tensorflow", "TF_CPP_MIN_LOG_LEVEL": "2"}
    result = subprocess.run(
        [sys.executable, "-m", "keras_gmlp.export", scratch],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if result.returncode:
        last = (result.stderr.strip().splitlines() or ["no message"])[-1]
        raise RuntimeError(f"exporting in TensorFlow failed: {last}")


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
    order = json.loads((Path(scratch) / "order.json").read_text())
    export(keras.saving.load_model(Path(scratch) / "model.keras"), **order)


if __name__ == "__main__":
    _main(sys.argv[1])
