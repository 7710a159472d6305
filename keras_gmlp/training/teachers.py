"""Teachers whose answers are stored: models of Keras, and ONNX files of any framework."""

import sys
from pathlib import Path

import numpy as np

from keras_gmlp.utils.environment import is_installed, require


class KerasTeacher:
    """A saved Keras model as a teacher for `data.images.answers.store_answers`."""

    def __init__(self, source):
        from keras_gmlp.tasks.teacher import open_model

        self.model = open_model(source)
        self.image_shape = tuple(self.model.input_shape[1:])
        kinds = "logits", "features"
        self.sizes = {k: s[-1] for k, s in zip(kinds, self.model.output_shape, strict=True)}

    def answer(self, images):
        """Returns logits and features, a dict of arrays `(batch, size)`."""
        return dict(zip(self.sizes, self.model.predict_on_batch(images), strict=True))


class OnnxTeacher:
    """An ONNX file as a teacher, run by OpenVINO if it is installed, else by ONNX Runtime."""

    def __init__(self, path, threads=None):
        if not Path(path).is_file():
            raise ValueError(f"{path}: no such file.")
        opened = _open_in_openvino if is_installed("openvino") else _open_in_onnxruntime
        try:
            self._run, shape, sizes = opened(str(path), threads)
        except (RuntimeError, IndexError):  # of the runtime, and of scalar outputs
            raise ValueError(f"{path}: not an ONNX file, or a damaged one.") from None
        numbers = [*shape[1:], *sizes.values()]
        fixed = len(shape) == 4 and all(type(number) is int and number > 0 for number in numbers)
        if not fixed or shape[-1] not in (1, 3) or "logits" not in sizes:
            raise ValueError(
                f"{path}: expected images (batch, height, width, channels) of a fixed size and an "
                f"output named logits; received {shape} and {', '.join(sizes) or 'no names'}."
            )
        self.image_shape = tuple(shape[1:])
        self.sizes = {name: sizes[name] for name in ("logits", "features") if name in sizes}

    def answer(self, images):
        """Returns logits and features, a dict of arrays `(batch, size)`."""
        return self._run(np.ascontiguousarray(images, "float32"))


def open_teacher(source, threads=None):
    """Opens a teacher by its path: an ONNX file, a `.keras` file or the folder of a run."""
    if Path(source).suffix.lower() == ".onnx":
        return OnnxTeacher(source, threads)
    return KerasTeacher(source)


def _open_in_openvino(path, threads):
    # Without its telemetry, which sends data over the network: OpenVINO does without the package.
    sys.modules.setdefault("openvino_telemetry", None)
    import openvino

    core = openvino.Core()
    network = core.read_model(path)
    options = {} if threads is None else {"INFERENCE_NUM_THREADS": threads}
    compiled = core.compile_model(network, "CPU", {**options, "PERFORMANCE_HINT": "LATENCY"})
    names = {port.get_any_name(): port for port in network.outputs if port.get_names()}
    sizes = {name: _length(port.get_partial_shape()[-1]) for name, port in names.items()}
    shape = [_length(side) for side in network.inputs[0].get_partial_shape()]

    def run(images):
        found = compiled(images)
        return {name: found[name] for name in names}

    return run, shape, sizes


def _length(side):
    """Returns a side of a shape of OpenVINO, `None` if it is open."""
    return side.get_length() if side.is_static else None


def _open_in_onnxruntime(path, threads):
    onnxruntime = require("onnxruntime", "an ONNX teacher", "onnx")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads or 0
    try:
        session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    except Exception as error:  # its own classes
        raise RuntimeError(str(error)) from None
    (images,) = session.get_inputs()[:1]
    names = [output.name for output in session.get_outputs()]
    sizes = {output.name: output.shape[-1] for output in session.get_outputs()}

    def run(batch):
        return dict(zip(names, session.run(names, {images.name: batch}), strict=True))

    return run, list(images.shape), sizes
