"""Classifies image files with a saved model of any format.

A `.tflite` model requires only the LiteRT runtime, NumPy and Pillow. Keras and TensorFlow are
imported only for their own formats.
"""

import functools
import os
from pathlib import Path

import numpy as np

from keras_gmlp.inference.opening import FEATURES_FILE, open_tflite
from keras_gmlp.models.saved import damaged_error, load_model, require_inputs, require_readable
from keras_gmlp.tasks.classifier import (
    Classifier,  # noqa: F401 (a name of this package)
    check_tensors,
    make_classifier,
)
from keras_gmlp.utils.card import from_members, read_card
from keras_gmlp.utils.errors import first_of
from keras_gmlp.utils.shipped import find_shipped, suggest_shipped

EXPECTED = (
    "expected a .tflite, .keras or .onnx file, the folder of a SavedModel or of a run, or the name "
    "of an included model; published weights load with keras_gmlp.weights.load"
)

PREFERRED = (
    "model.tflite",
    FEATURES_FILE,
    "model.keras",
    "saved_model",
)  # in the folder of a run


def load(path, threads=None):
    """Loads a saved model of any format.

    Args:
        path: A `.tflite`, `.keras` or `.onnx` file, the folder of a SavedModel, or the folder of
            a run, in which model.tflite comes before model_features.tflite, model.keras and
            saved_model; or the name of a model that comes with a clone of the repository, such as
            `"gmlp_photo_64"`. Published weights load with `weights.load(source).classifier()`.
        threads: Number of threads of the LiteRT or ONNX runtime. Defaults to the number of cores,
            at most 4.

    Returns:
        A `Classifier`.

    Raises:
        ValueError: If the model does not exist, cannot be read, is damaged, or is not an image
            classifier. One line.
        MemoryError: If the model does not fit in memory. One line.

    Example:
        >>> classifier = load("gmlp_n4_32-cifar10")
        >>> classifier.classify("docs/cat.jpg", top=1)[0][0]
        'cat'
    """
    try:
        return _load(path, threads)
    except PermissionError:
        raise ValueError(f"{path}: no permission to read it.") from None


def _load(path, threads):
    if not str(path):
        raise ValueError(f"'': an empty path; {EXPECTED}.")
    path = Path(find_shipped(path))
    if path.is_dir() and not (path / "saved_model.pb").exists():
        models = [path / name for name in PREFERRED if (path / name).exists()]
        if not models:
            raise ValueError(
                f"{path}: no model in this folder; expected one of {', '.join(PREFERRED)}. "
                f"{_suggest(path)}"
            )
        path = models[0]
    if not path.exists():
        raise ValueError(
            f"{path}: no such model file or folder; {EXPECTED}.{suggest_shipped(path)}"
        )
    require_readable(path)
    if path.is_dir():
        return _saved_model(path)
    if path.suffix == ".tflite":
        return _tflite(path, threads)
    if path.suffix == ".onnx":
        return _onnx(path, threads or min(4, os.cpu_count() or 1))
    if path.suffix == ".keras":
        return _keras(path)
    raise ValueError(f"{path}: unknown kind of model; {EXPECTED}.")


def _suggest(path):
    """How to fix the path of a folder without a model."""
    holders = sorted({model.parent.name for name in PREFERRED for model in path.glob(f"*/{name}")})
    if not holders:
        return "Is the training run complete?"
    return f"Give one of the folders in it: {first_of(holders, 10, 'or')}."


def _tflite(path, threads):
    interpreter = open_tflite(path, threads)
    inputs, outputs = interpreter.get_input_details(), interpreter.get_output_details()
    check_tensors(
        path,
        *(
            [(tuple(t["shape"].tolist()), t["dtype"].__name__) for t in tensors]
            for tensors in (inputs, outputs)
        ),
        ("float32", "uint8"),
    )
    image = inputs[0]
    if image["dtype"] == np.uint8 and image["quantization"] != (1.0, 0):
        raise ValueError(
            f"{path}: its integers are not pixels; expected scale 1.0 and zero point 0, as "
            f"apps/export.py writes them; received {image['quantization']}."
        )
    batch, *shape = (int(n) for n in image["shape"])
    card = read_card(path)
    normalized = card.get("output") == "probabilities"

    def logits(images):
        rows = []
        for start in range(0, len(images), batch):
            chunk = np.asarray(images[start : start + batch])
            if image["dtype"] == np.uint8:
                chunk = chunk.round()
            chunk = chunk.astype(image["dtype"])
            # The last batch may be smaller than the file requires: repeat images, drop their rows.
            full = np.resize(chunk, (batch, *chunk.shape[1:]))
            interpreter.set_tensor(image["index"], full)
            interpreter.invoke()
            rows.append(interpreter.get_tensor(outputs[0]["index"])[: len(chunk)])
        values = np.concatenate(rows)
        # They are logits up to a constant. The least float stands for 0, which has no logarithm.
        return np.log(np.maximum(values, np.finfo(values.dtype).tiny)) if normalized else values

    classes = int(outputs[0]["shape"][-1])
    return make_classifier(logits, shape, classes, path, card, interpreter=interpreter)


def _onnx(path, threads):
    try:
        import onnxruntime
    except ImportError:
        raise ValueError(
            f"{path}: an ONNX file requires its runtime (pip install onnxruntime); or give the "
            ".tflite or .keras file."
        ) from None
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    try:
        session = onnxruntime.InferenceSession(
            path, options, providers=["CPUExecutionProvider"], enable_fallback=False
        )  # the fallback prints to standard output
    except Exception as error:  # the runtime's errors have many classes
        raise damaged_error(path, error) from None
    inputs, outputs = session.get_inputs(), session.get_outputs()
    kind = {"tensor(float)": "float32"}
    check_tensors(
        path,
        *(
            [(tuple(t.shape), kind.get(t.type, t.type)) for t in tensors]
            for tensors in (inputs, outputs)
        ),
        ("float32",),
    )
    image = inputs[0]
    if isinstance(image.shape[0], int):
        raise ValueError(f"{path}: expected an open batch; received {image.shape[0]} images.")

    def logits(images):
        return session.run(None, {image.name: np.asarray(images, "float32")})[0]

    try:
        card = from_members(session.get_modelmeta().custom_metadata_map)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None
    return make_classifier(logits, image.shape[1:], outputs[0].shape[-1], path, card)


def _keras(path):
    model = load_model(path, compile=False)
    require_inputs(model, path)
    # Keras casts between its floats.
    inputs, outputs = (
        [(tuple(t.shape), "float32" if "float" in t.dtype else t.dtype) for t in tensors]
        for tensors in (model.inputs, model.outputs)
    )
    check_tensors(path, inputs, outputs, ("float32",))
    return from_keras(model, path, read_card(path))


def from_keras(model, path, card):
    """Returns the `Classifier` of a `keras.Model`, with the labels and preparation of a card.

    Under PyTorch it records the model's operators in the second call and replays them from then on,
    with the weights that the model then has.

    Args:
        model: A model that returns logits.
        path: Path of its file, for errors.
        card: Dict of its metadata: `labels` and, for example, `fit` and `normalization`.

    Raises:
        ValueError: If the model does not return logits. One line.
    """
    import keras

    from keras_gmlp.models.structure import require_logits

    require_logits(model)
    run = functools.partial(model, training=False)
    if keras.backend.backend() == "torch":
        from keras_gmlp.inference.replay import Replayed

        run = Replayed(run)

    def logits(images):
        images = keras.ops.convert_to_tensor(np.asarray(images, "float32"))
        return keras.ops.convert_to_numpy(run(images))

    return make_classifier(logits, model.input_shape[1:], model.output_shape[-1], path, card, model)


def _saved_model(path):
    try:
        import tensorflow as tf
    except ImportError:
        raise ValueError(
            f"{path}: a SavedModel requires TensorFlow; install it or give the .tflite or .keras "
            "file."
        ) from None
    try:
        loaded = tf.saved_model.load(str(path))
        signature = loaded.signatures["serving_default"]
        image = signature.structured_input_signature[1]["image"]
        answer = signature.structured_outputs["logits"]
        tensors = [[(tuple(t.shape), t.dtype.name)] for t in (image, answer)]
    except Exception as error:  # TensorFlow's errors for a damaged folder have many classes
        raise damaged_error(path, error) from None

    def logits(images, loaded=loaded):  # a signature alone does not keep its variables alive
        return signature(image=tf.constant(images, tf.float32))["logits"].numpy()

    check_tensors(path, *tensors, ("float32",))
    return make_classifier(logits, image.shape[1:], answer.shape[-1], path, read_card(path))
