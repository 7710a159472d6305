"""A trained model as TFLite, SavedModel and ONNX; `shipping` checks them.

Each converter belongs to one backend. A model of another one is handed over in a `.keras` file to
a process of its own that runs Keras on the converter's.
"""

import importlib.util
import json
import sys
import tempfile
from pathlib import Path

import keras
import numpy as np

from keras_gmlp.card import write_card
from keras_gmlp.training.saving import load_model
from keras_gmlp.utils.files import atomic_write
from keras_gmlp.utils.subprocesses import run_on

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
        formats = [name for name in FORMATS if not missing_requirement(name, calibration)]
    require_exportable(model, formats, labels, calibration)
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
    return {name: directory / file_name(name, tflite_batch) for name in formats}


def missing_requirement(name, calibration=None):
    """What a format cannot be written for want of, as a phrase; `None` where it can."""
    if name == "tflite_int8" and calibration is None:
        return "images to calibrate it with (in a shell: --data NAME)"
    packages, extra = NEEDS[name]
    absent = [package for package in packages if not importlib.util.find_spec(package)]
    return f"{', '.join(absent)} (pip install -e '.[{extra}]')" if absent else None


def require_exportable(model, formats, labels=None, calibration=None):
    """Raises the ValueErrors of `export` before anything is written."""
    unknown = [name for name in formats if name not in FORMATS]
    if unknown:
        raise ValueError(f"Unknown formats {unknown}; expected some of {', '.join(FORMATS)}.")
    for name in formats:
        if lack := missing_requirement(name, calibration):
            raise ValueError(f"{name} lacks {lack}.")
    if labels and len(labels) != model.output_shape[-1]:
        raise ValueError(f"{len(labels)} labels for {model.output_shape[-1]} classes.")
    mixed = [layer.name for layer in model.layers if layer.dtype_policy.name != "float32"]
    if mixed:
        raise ValueError(
            f"Only float32 models convert; layers {mixed[:3]} have policy "
            f"{model.get_layer(mixed[0]).dtype_policy.name!r}. Use training.in_float32(model)."
        )


def file_name(name, tflite_batch=1):
    """The name of a format's file or folder, for so many images at once."""
    path = Path(FORMATS[name])
    if tflite_batch == 1 or path.suffix != ".tflite":
        return path.name
    return f"{path.stem}_batch{tflite_batch}.tflite"


def _write(name, model, directory, labels, card, calibration, tflite_batch):
    path = directory / file_name(name, tflite_batch)
    if name == "saved_model":
        from keras_gmlp.export.saved_model import write_saved_model

        write_saved_model(model, path, labels, card)
    elif name == "onnx":
        from keras_gmlp.export.onnx import write_onnx

        write_onnx(model, path, labels, card)
    else:
        from keras_gmlp.export.tflite import convert

        precision = name.removeprefix("tflite").removeprefix("_") or "dynamic"
        flatbuffer = convert(model, precision, calibration, tflite_batch)
        with atomic_write(path) as temporary:
            temporary.write_bytes(flatbuffer)
            write_card(temporary, model, labels, card)


def _hand_over(backend, model, order, calibration):
    """Runs this module as a program on another backend."""
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
