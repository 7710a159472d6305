"""Exports a trained model to TFLite, SavedModel and ONNX; `verify` checks the files.

Each converter requires one backend. A model of another backend goes in a `.keras` file to a child
process that runs Keras on the backend of the converter.
"""

import contextlib
import importlib.util
import json
import sys
import tempfile
from pathlib import Path

import keras
import numpy as np

from keras_gmlp.analysis.explanation import has_exact_maps, map_grid
from keras_gmlp.export.tflite import Traces, convert
from keras_gmlp.inference.opening import FEATURES_FILE
from keras_gmlp.models.folding import to_dense
from keras_gmlp.models.saved import load_model
from keras_gmlp.models.structure import features, sublayers
from keras_gmlp.utils.card import write_card
from keras_gmlp.utils.environment import run_on
from keras_gmlp.utils.files import atomic_write
from keras_gmlp.utils.labels import check_labels

FORMATS = {
    "tflite": "model.tflite",  # 8-bit weights, float activations
    "tflite_float16": "model_float16.tflite",
    "tflite_float32": "model_float32.tflite",
    "tflite_int8": "model_int8.tflite",  # integers throughout, from uint8 pixels
    "features": FEATURES_FILE,  # as "tflite", with a second signature
    "mediapipe": "model_mediapipe.tflite",  # as "tflite", to probabilities
    "saved_model": "saved_model",
    "onnx": "model.onnx",
}

# "features" and "mediapipe" compute what "tflite" computes, and serve special purposes.
DEFAULT_FORMATS = tuple(name for name in FORMATS if name not in ("features", "mediapipe"))

# The packages that write each format, and the extra that installs them.
NEEDS = dict.fromkeys(FORMATS, (("tensorflow",), "train"))

NEEDS["onnx"] = (("torch", "onnx", "onnxscript", "onnxruntime"), "onnx")


def export(
    model,
    directory,
    formats=None,
    labels=None,
    card=None,
    calibration=None,
    tflite_batch=1,
    traces=None,
):
    """Writes a model to files, one per format.

    Args:
        model: A float32 `keras.Model` from images in [0, 255] to logits; convert a model in mixed
            precision with `models.in_float32`.
        directory: Folder for the files, created if missing.
        formats: Keys of `FORMATS`. Defaults to those of `DEFAULT_FORMATS` whose requirements are
            met.
        labels: Class names. The card in each file holds them; see `card.write_card`.
        card: Further metadata for the card, a dict that JSON can hold.
        calibration: Images for `"tflite_int8"`; see `export.tflite.convert`.
        tflite_batch: Images per call of a TFLite file; see `export.tflite.convert`. A number above
            one is part of the file name, as in `model_batch64.tflite`. `"features"` and
            `"mediapipe"` take one.
        traces: `export.tflite.Traces` of this model, so that several calls trace it once; `None`
            to trace it once in this call.

    Returns:
        The paths of the files, a dict with the formats as keys.

    Raises:
        ValueError: If a format is unknown, its requirements are not met, the model is in mixed
            precision, `"mediapipe"` is given a model of other images than RGB or one with
            thresholds in its card, or `"features"` one without a head.
        RuntimeError: If a conversion fails.
    """
    if formats is None:
        formats = [name for name in DEFAULT_FORMATS if not missing_requirement(name, calibration)]
    require_exportable(model, formats, labels, calibration, card)
    model = to_dense(model)
    directory = Path(directory)
    directory.mkdir(parents=True, exist_ok=True)
    options = {"labels": labels and list(labels), "card": card, "tflite_batch": tflite_batch}
    for backend in ("tensorflow", "torch"):
        chosen = [name for name in formats if (name == "onnx") == (backend == "torch")]
        if chosen and keras.backend.backend() == backend:
            with contextlib.nullcontext(traces) if traces else Traces() as kept:
                for name in chosen:
                    _write(name, model, directory, kept, calibration=calibration, **options)
        elif chosen:
            order = {"directory": str(directory), "formats": chosen, **options}
            _hand_over(backend, model, order, calibration)
    return {name: directory / file_name(name, tflite_batch) for name in formats}


def missing_requirement(name, calibration=None):
    """Returns what is missing to write a format, as a phrase, or `None`."""
    if name == "tflite_int8" and calibration is None:
        return "images to calibrate it with (in a shell: --data NAME)"
    packages, extra = NEEDS[name]
    absent = [package for package in packages if not importlib.util.find_spec(package)]
    return f"{', '.join(absent)} (pip install -e '.[{extra}]')" if absent else None


def require_exportable(model, formats, labels=None, calibration=None, card=None):
    """Raises the `ValueError`s of `export` before it writes anything."""
    unknown = [name for name in formats if name not in FORMATS]
    if unknown:
        raise ValueError(f"Unknown formats {unknown}; expected some of {', '.join(FORMATS)}.")
    for name in formats:
        if missing := missing_requirement(name, calibration):
            raise ValueError(f"{name} requires {missing}.")
    if "mediapipe" in formats and model.input_shape[-1] != 3:
        raise ValueError(
            f"mediapipe requires a model of RGB images (3 channels); received {model.name} with "
            f"{model.input_shape[-1]}. Train on RGB images, or choose the format tflite."
        )
    if "features" in formats:
        features(model)  # raises the error of a model without a head
    if "mediapipe" in formats and (card or {}).get("thresholds"):
        raise ValueError(
            "mediapipe requires a model that gives one label for each image; received one that "
            "gives several. Choose the format tflite."
        )
    if labels and len(labels) != model.output_shape[-1]:
        raise ValueError(f"Received {len(labels)} labels for {model.output_shape[-1]} classes.")
    check_labels(labels or (), "labels")
    mixed = {
        layer.name: layer.dtype_policy.name
        for layer in sublayers(model)
        if layer.dtype_policy.name != "float32"
    }
    if mixed:
        names, policies = list(mixed)[:3], ", ".join(dict.fromkeys(mixed.values()))
        raise ValueError(
            f"Only float32 models convert; layers {names} have policy {policies}. Use "
            "models.in_float32(model)."
        )


def file_name(name, tflite_batch=1):
    """Returns the name of a format's file or folder."""
    path = Path(FORMATS[name])
    if tflite_batch == 1 or not name.startswith("tflite"):
        return path.name
    return f"{path.stem}_batch{tflite_batch}.tflite"


def _write(name, model, directory, traces, labels, card, calibration, tflite_batch):
    path = directory / file_name(name, tflite_batch)
    if name == "saved_model":
        from keras_gmlp.export.saved_model import write_saved_model

        write_saved_model(model, path, labels, card)
    elif name == "onnx":
        from keras_gmlp.export.onnx import write_onnx

        write_onnx(model, path, labels, card)
    elif name == "mediapipe":
        from keras_gmlp.export.mediapipe import write_mediapipe

        write_mediapipe(model, path, labels, card)
    else:
        if name == "features":
            flatbuffer = convert(model, "dynamic", with_features=True, traces=traces)
            card = {**(card or {}), "features": features(model).output_shape[-1]}
            if has_exact_maps(model):
                card["maps"] = list(map_grid(model))
        else:
            precision = name.removeprefix("tflite").removeprefix("_") or "dynamic"
            flatbuffer = convert(model, precision, calibration, tflite_batch, traces=traces)
        with atomic_write(path) as temporary:
            temporary.write_bytes(flatbuffer)
            write_card(temporary, model, labels, card)


def _hand_over(backend, model, order, calibration):
    """Exports in a child process, which runs this module on another backend."""
    with tempfile.TemporaryDirectory() as scratch:
        model.save(Path(scratch) / "model.keras")
        (Path(scratch) / "order.json").write_text(json.dumps(order))
        if "tflite_int8" in order["formats"]:
            np.save(Path(scratch) / "calibration.npy", calibration)
        run_on(backend, "keras_gmlp.export.formats", scratch)


def _main(scratch):
    scratch = Path(scratch)
    order = json.loads((scratch / "order.json").read_text())
    images = scratch / "calibration.npy"
    calibration = np.load(images) if images.exists() else None
    export(load_model(scratch / "model.keras", compile=False), **order, calibration=calibration)


if __name__ == "__main__":
    _main(sys.argv[1])
