"""Opens a saved model of any format: file or folder, card and task.

Keras, TensorFlow and ONNX Runtime are imported for their own formats only.
"""

import dataclasses
import functools
import os
import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np

from keras_gmlp.models.saved import damaged_error, load_model
from keras_gmlp.tasks.registry import TEXT_TASKS, find_task
from keras_gmlp.utils.card import from_members, read_card, read_foreign_labels, require_undamaged
from keras_gmlp.utils.environment import require
from keras_gmlp.utils.errors import naming_errors
from keras_gmlp.utils.parsers import open_interpreter
from keras_gmlp.utils.sources import FILES, find_model
from keras_gmlp.utils.text_files import read_lines

DEFAULT_SIGNATURE = "serving_default"  # of a .tflite file, to logits
# The second one, from an image to the vector before the head, or from a text to its vector. The
# converter sorts them by name, and the interpreter runs the first.
FEATURES_SIGNATURE = "serving_features"
KEEPING = ("DEQUANTIZE", "QUANTIZE", "RESHAPE")  # operators after which probabilities are such
BATCH = 32  # texts that Keras takes at a time


@dataclasses.dataclass(frozen=True)
class Opened:
    """A model of any format, ready to run."""

    run: Callable  # from arrays by the name of their input to the array of the only output
    inputs: dict  # pairs of shape and dtype by name
    outputs: dict
    path: Path
    card: dict  # with the class names of a labels.txt next to the file if it has none
    model: object = None  # the `keras.Model` of a `.keras` file
    pixels: tuple[str, ...] = ("float32",)  # types that images may have

    def find_task(self):
        """Returns the class of its task: by its card, or else by its inputs and its logits."""
        if "task" in self.card:
            with naming_errors(self.path):
                return find_task(self.card["task"])
        ranks = [len(shape) for shape, _ in self.outputs.values()]
        for task in map(find_task, TEXT_TASKS if "token_ids" in self.inputs else ()):
            if set(task.inputs) == set(self.inputs) and [task.logits_rank] == ranks:
                return task
        # Older cards of images name no task.
        return find_task("multi_label_classification" if "thresholds" in self.card else None)


def open_model(path, threads=None):
    """Opens a file, or the best one in the folder of a run, as an `Opened`."""
    threads = threads or min(4, os.cpu_count() or 1)
    path, kind = find_model(path, tuple(FILES))
    if kind == "saved_model":
        return _open_saved_model(path)
    if kind == "onnx":
        return _open_onnx(path, threads)
    if kind != "keras":
        return _open_tflite(path, threads)
    return open_keras(load_model(path, compile=False), path, read_labelled_card(path))


def read_labelled_card(path, card=None):
    """Returns the card of a file, with the class names of labels.txt next to it if it has none."""
    card = read_card(path) if card is None else card
    neighbour = path.parent / "labels.txt"
    if not card.get("labels") and neighbour.exists():
        card = {**card, "labels": list(read_lines(neighbour))}
    return card


def _open_tflite(path, threads):
    is_ours = require_undamaged(path)
    try:
        interpreter = open_interpreter(path, threads)
    except (ValueError, RuntimeError, OSError, MemoryError) as error:
        raise damaged_error(path, error) from None
    # The first signature names the tensors; a file of others, from elsewhere, has their own names.
    signatures = list(interpreter.get_signature_list())
    if len(signatures) == 1 or signatures == [DEFAULT_SIGNATURE, FEATURES_SIGNATURE]:
        runner = interpreter.get_signature_runner(signatures[0])
        inputs, outputs = runner.get_input_details(), runner.get_output_details()
    else:
        tensors = interpreter.get_input_details(), interpreter.get_output_details()
        inputs, outputs = ({t["name"]: t for t in part} for part in tensors)
    shapes = [tensor["shape"] for tensor in inputs.values()]
    batch = int(shapes[0][0]) if shapes and len(shapes[0]) else 1
    output, lock = next(iter(outputs.values()), None), threading.Lock()
    is_quantized = output is not None and np.issubdtype(output["dtype"], np.integer)
    scale, zero_point = output["quantization"] if is_quantized else (0, 0)

    def run_batch(arrays, start):
        for name, tensor in inputs.items():
            chunk, dtype = np.asarray(arrays[name][start : start + batch]), tensor["dtype"]
            if dtype in (np.uint8, np.int8):  # whole pixels; int8 begins at -128
                chunk = chunk.astype("float32").round() + np.iinfo(dtype).min
            # The last batch may be smaller than the file requires: repeat samples, drop rows.
            full = np.resize(chunk.astype(dtype), (batch, *chunk.shape[1:]))
            interpreter.set_tensor(tensor["index"], full)
        interpreter.invoke()
        values = interpreter.get_tensor(output["index"])
        return (values.astype("float32") - zero_point) * scale if scale else values

    def run(**arrays):
        total = len(next(iter(arrays.values())))
        with lock:  # threads share the interpreter's tensors
            rows = [run_batch(arrays, start) for start in range(0, total, batch)]
        return np.concatenate(rows)[:total] if rows else _no_rows(output["shape"])

    described = [
        {n: (tuple(t["shape"].tolist()), t["dtype"].__name__) for n, t in part.items()}
        for part in (inputs, outputs)
    ]
    if scale:
        described[1] = {n: (shape, "float32") for n, (shape, _) in described[1].items()}
    card, pixels = read_labelled_card(path), ("float32", "uint8", "int8")
    if not is_ours and output is not None:
        card = {"labels": read_foreign_labels(path), **card}
        if _ends_in_softmax(interpreter, output["index"]):
            card["output"] = "probabilities"
    return Opened(run, *described, path, card, pixels=pixels)


def _ends_in_softmax(interpreter, tensor):
    """Returns whether a tensor of a TFLite file, by its index, holds probabilities."""
    operators = reversed(interpreter._get_ops_details())  # those of delegates are the last
    makers = {index: operator for operator in operators for index in operator["outputs"]}
    while tensor in makers and makers[tensor]["op_name"] in KEEPING:
        tensor = makers[tensor]["inputs"][0]
    return tensor in makers and makers[tensor]["op_name"] == "SOFTMAX"


def _no_rows(shape):
    """Returns the logits of no samples."""
    return np.zeros((0, *(size or 0 for size in shape[1:])), "float32")


def _open_onnx(path, threads):
    onnxruntime = require("onnxruntime", f"{path}: an ONNX file", "onnx")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    try:
        session = onnxruntime.InferenceSession(
            path, options, providers=["CPUExecutionProvider"], enable_fallback=False
        )  # the fallback prints to standard output
    except Exception as error:  # the runtime's errors have many classes
        raise damaged_error(path, error) from None
    kind = {"tensor(float)": "float32", "tensor(int32)": "int32"}
    inputs, outputs = (
        {t.name: (tuple(t.shape), kind.get(t.type, t.type)) for t in tensors}
        for tensors in (session.get_inputs(), session.get_outputs())
    )
    for shape, _ in inputs.values():
        if isinstance(shape[0], int):
            raise ValueError(f"{path}: expected an open batch; received {shape[0]} images.")

    def run(**arrays):
        typed = {name: np.asarray(array, inputs[name][1]) for name, array in arrays.items()}
        return session.run(None, typed)[0]

    with naming_errors(path):
        card = from_members(session.get_modelmeta().custom_metadata_map)
    return Opened(run, inputs, outputs, path, read_labelled_card(path, card))


def open_keras(model, path=None, card=None):
    """Returns the `Opened` of a `keras.Model`, with the class names and preparation of a card."""
    import keras

    path = Path(model.name) if path is None else path
    # Keras casts between its floats.
    inputs, outputs = (
        {t.name: (tuple(t.shape), "float32" if "float" in t.dtype else t.dtype) for t in tensors}
        for tensors in (model.inputs, model.outputs)
    )
    call = functools.partial(model, training=False)
    dtypes = {name: dtype for name, (_, dtype) in inputs.items()}
    if keras.backend.backend() == "torch":
        import torch

        call = torch.no_grad()(call)

    def run(**arrays):
        size, parts = len(next(iter(arrays.values()))), []
        step = size if "float32" in dtypes.values() else BATCH
        for start in range(0, size, step or 1):
            part = {
                name: keras.ops.convert_to_tensor(np.asarray(a[start : start + step], dtypes[name]))
                for name, a in arrays.items()
            }
            found = call(part if len(part) > 1 else next(iter(part.values())))
            parts.append(keras.ops.convert_to_numpy(found))
        return np.concatenate(parts) if parts else _no_rows(model.outputs[0].shape)

    return Opened(run, inputs, outputs, path, card or {}, model)


def _open_saved_model(path):
    tf = require("tensorflow", f"{path}: a SavedModel", "train")
    try:
        loaded = tf.saved_model.load(str(path))
        signature = loaded.signatures["serving_default"]
        inputs, outputs = (
            {name: (tuple(t.shape), t.dtype.name) for name, t in tensors.items()}
            for tensors in (signature.structured_input_signature[1], signature.structured_outputs)
        )
        outputs = {"logits": outputs["logits"]}  # it has probabilities and classes as well
    except Exception as error:  # TensorFlow's errors for a damaged folder have many classes
        raise damaged_error(path, error) from None

    def run(loaded=loaded, **arrays):  # a signature by itself does not keep its variables alive
        tensors = {name: tf.constant(array, inputs[name][1]) for name, array in arrays.items()}
        return signature(**tensors)["logits"].numpy()

    return Opened(run, inputs, outputs, path, read_labelled_card(path))
