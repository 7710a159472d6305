"""From a saved model and an image file to labels.

A `.tflite` model needs the LiteRT runtime, NumPy and Pillow alone; Keras and TensorFlow are
imported only for the formats that are theirs.
"""

import dataclasses
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np

from keras_gmlp.card import from_members, read_card
from keras_gmlp.data.read_image import read_image
from keras_gmlp.training.saving import damaged_error, load_model, require_readable
from keras_gmlp.utils.errors import first_of

EXPECTED = (
    "expected a .tflite, .keras or .onnx file, a SavedModel's folder or that of a run; published "
    "weights load with keras_gmlp.weights.load"
)

PREFERRED = ("model.tflite", "model.keras", "saved_model")  # in a run's folder, the first found


@dataclasses.dataclass(frozen=True)
class Classifier:
    """A loaded model.

    Attributes:
        logits: function of images, `(batch, height, width, channels)` with values 0 to 255, to
            float32 logits `(batch, classes)`.
        image_shape: `(height, width, channels)` it takes.
        labels: class names in the order of the logits, or numbers where there are no names.
        path: what was loaded.
        preparation: how pictures are cut to size, arguments of `images.read_image`.
        model: the `keras.Model` itself, of a `.keras` file or published weights alone.
        named: whether the source told the class names.
    """

    logits: Callable[[np.ndarray], np.ndarray]
    image_shape: tuple[int, int, int]
    labels: tuple[str, ...]
    path: Path
    preparation: dict = dataclasses.field(default_factory=dict)
    model: object = None
    named: bool = True

    def read(self, path):
        """The pixels of an image file as the model takes them; see `images.read_image`."""
        return read_image(path, self.image_shape, **self.preparation)

    def classify(self, path, top=5):
        """Reads an image file and tells what it shows.

        Args:
            path: an image file.
            top: how many classes to name.

        Returns:
            Pairs `(label, probability)`, the most probable first.

        Raises:
            ValueError: the file cannot be read as an image.
        """
        logits = self.logits(self.read(path)[None])[0].astype("float64")
        exponentials = np.exp(logits - logits.max())
        probabilities = exponentials / exponentials.sum()
        order = np.argsort(-probabilities, kind="stable")[:top]
        return [(self.labels[i], float(probabilities[i])) for i in order]


def load(path, threads=None):
    """Loads a model's file, a SavedModel, the best of these in a run's folder, or weights.

    Args:
        path: a `.tflite`, `.keras` or `.onnx` file or a folder. Published weights load with
            `weights.load(source).classifier()`.
        threads: of the LiteRT or ONNX runtime; defaults to the cores, at most 4.

    Returns:
        A `Classifier`.

    Raises:
        ValueError: there is no such model or no permission to read it, or it is damaged or no
            image classifier. One line.
    """
    try:
        return _load(path, threads)
    except PermissionError:
        raise ValueError(f"{path}: no permission to read it.") from None


def _load(path, threads):
    if not str(path):
        raise ValueError(f"'': an empty path; {EXPECTED}.")
    path = Path(path)
    if path.is_dir() and not (path / "saved_model.pb").exists():
        found = [path / name for name in PREFERRED if (path / name).exists()]
        if not found:
            raise ValueError(
                f"{path}: no model in this folder; expected one of {', '.join(PREFERRED)}. "
                f"{_elsewhere(path)}"
            )
        path = found[0]
    if not path.exists():
        raise ValueError(f"{path}: no such model file or folder; {EXPECTED}.")
    require_readable(path)
    if path.is_dir():
        return _saved_model(path)
    if path.suffix == ".tflite":
        return _tflite(path, threads or min(4, os.cpu_count() or 1))
    if path.suffix == ".onnx":
        return _onnx(path, threads or min(4, os.cpu_count() or 1))
    if path.suffix == ".keras":
        return _keras(path)
    raise ValueError(f"{path}: unknown kind of model; {EXPECTED}.")


def _elsewhere(path):
    """What to do about a folder without a model."""
    holders = sorted({model.parent.name for name in PREFERRED for model in path.glob(f"*/{name}")})
    if not holders:
        return "Is the training run complete?"
    return f"Give one of the folders in it: {first_of(holders, 10, 'or')}."


def _tflite(path, threads):
    from ai_edge_litert.interpreter import Interpreter

    try:
        interpreter = Interpreter(str(path), num_threads=threads)
        interpreter.allocate_tensors()
    except (ValueError, RuntimeError, OSError) as error:
        raise damaged_error(path, error) from None
    inputs, outputs = interpreter.get_input_details(), interpreter.get_output_details()
    _check_tensors(
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
            f"{path}: its integers do not stand for pixels (scale and zero point "
            f"{image['quantization']}); expected 1.0 and 0, as apps/export.py writes them."
        )
    batch, *shape = (int(n) for n in image["shape"])

    def logits(images):
        rows = []
        for start in range(0, len(images), batch):
            some = np.asarray(images[start : start + batch])
            if image["dtype"] == np.uint8:
                some = some.round()
            some = some.astype(image["dtype"])
            # The last are fewer than the file takes: repeated, and left out of the answer.
            full = np.resize(some, (batch, *some.shape[1:]))
            interpreter.set_tensor(image["index"], full)
            interpreter.invoke()
            rows.append(interpreter.get_tensor(outputs[0]["index"])[: len(some)])
        return np.concatenate(rows)

    return _classifier(logits, shape, int(outputs[0]["shape"][-1]), path, read_card(path))


def _onnx(path, threads):
    try:
        import onnxruntime
    except ImportError:
        raise ValueError(
            f"{path}: an ONNX file needs its runtime (pip install onnxruntime); or give the "
            ".tflite or .keras file."
        ) from None
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    try:
        session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    except Exception as error:  # the runtime raises errors of its own, of many kinds
        raise damaged_error(path, error) from None
    inputs, outputs = session.get_inputs(), session.get_outputs()
    kind = {"tensor(float)": "float32"}
    _check_tensors(
        path,
        *(
            [(tuple(t.shape), kind.get(t.type, t.type)) for t in tensors]
            for tensors in (inputs, outputs)
        ),
        ("float32",),
    )
    image = inputs[0]
    if isinstance(image.shape[0], int):
        raise ValueError(f"{path}: expected an open batch; received one of {image.shape[0]}.")

    def logits(images):
        return session.run(None, {image.name: np.asarray(images, "float32")})[0]

    try:
        card = from_members(session.get_modelmeta().custom_metadata_map)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None
    return _classifier(logits, image.shape[1:], outputs[0].shape[-1], path, card)


def _keras(path):
    model = load_model(path, compile=False)
    # Keras casts between its floats.
    inputs, outputs = (
        [(tuple(t.shape), "float32" if "float" in t.dtype else t.dtype) for t in tensors]
        for tensors in (model.inputs, model.outputs)
    )
    _check_tensors(path, inputs, outputs, ("float32",))
    return from_keras(model, path, read_card(path))


def from_keras(model, path, card):
    import keras

    def logits(images):
        images = np.asarray(images, "float32")
        return keras.ops.convert_to_numpy(model(images, training=False))

    return _classifier(logits, model.input_shape[1:], model.output_shape[-1], path, card, model)


def _saved_model(path):
    try:
        import tensorflow as tf
    except ImportError:
        raise ValueError(
            f"{path}: a SavedModel needs TensorFlow; install it or give the .tflite or .keras file."
        ) from None
    try:
        loaded = tf.saved_model.load(str(path))
        signature = loaded.signatures["serving_default"]
        image = signature.structured_input_signature[1]["image"]
        answer = signature.structured_outputs["logits"]
        tensors = [[(tuple(t.shape), t.dtype.name)] for t in (image, answer)]
    except Exception as error:  # TensorFlow raises errors of every kind for a damaged folder
        raise damaged_error(path, error) from None

    def logits(images, loaded=loaded):  # a signature alone does not keep its variables alive
        return signature(image=tf.constant(images, tf.float32))["logits"].numpy()

    _check_tensors(path, *tensors, ("float32",))
    return _classifier(logits, image.shape[1:], answer.shape[-1], path, read_card(path))


def _classifier(logits, shape, classes, path, card, model=None):
    """With the labels of the card or of labels.txt beside the model, else the classes' numbers."""
    if shape[-1] not in (1, 3):
        raise ValueError(
            f"{path}: takes images of shape {tuple(shape)}; expected (height, width, channels) "
            "with 1 or 3 channels."
        )
    labels, beside = card.get("labels"), path.parent / "labels.txt"
    if labels is None and beside.exists():
        labels = beside.read_text().splitlines()
    fitting = labels is not None and len(labels) == classes
    named = fitting and card.get("named", True)
    labels = tuple(labels) if fitting else tuple(map(str, range(classes)))
    preparation = {name: card[name] for name in ("crop", "interpolation") if card.get(name)}
    return Classifier(logits, tuple(shape), labels, path, preparation, model, named)


def _check_tensors(path, inputs, outputs, pixels):
    """Refuses what no image classifier takes and gives: pairs of a shape and a dtype's name."""
    if (
        len(inputs) == len(outputs) == 1
        and len(inputs[0][0]) == 4
        and len(outputs[0][0]) == 2
        and all(isinstance(n, int) for n in (*inputs[0][0][1:], outputs[0][0][1]))
        and inputs[0][1] in pixels
        and outputs[0][1] == "float32"
    ):
        return
    taken, given = (
        ", ".join(f"{dtype} {shape}" for shape, dtype in some) for some in (inputs, outputs)
    )
    raise ValueError(
        f"{path}: no image classifier; expected {' or '.join(pixels)} (batch, height, width, "
        f"channels) in and float32 (batch, classes) out; received {taken} in and {given} out."
    )
