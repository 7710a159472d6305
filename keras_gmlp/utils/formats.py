"""The formats of exports, one row each; a new format begins here."""

from typing import NamedTuple


class Format(NamedTuple):
    """A format of exports."""

    path: str  # of its file or folder in the folder of a run
    module: str  # of `keras_gmlp.export`, whose function `write_NAME` writes it
    about: str  # in the help of the program
    usual: bool = True  # whether it is written if no format is named
    texts: bool = True  # whether text models have it
    backend: str = "tensorflow"  # of Keras, in that function
    packages: tuple[str, ...] = ()  # which it requires besides
    extra: str = "train"  # which installs them


FORMATS = {
    "tflite": Format("model.tflite", "tflite", "8-bit weights: smallest, usually fastest"),
    "tflite_float16": Format("model_float16.tflite", "tflite", "half the size of float32"),
    "tflite_float32": Format("model_float32.tflite", "tflite", "32-bit weights and activations"),
    "tflite_int8": Format(
        "model_int8.tflite", "tflite", "integers, for devices without floats", texts=False
    ),
    # The next two compute what "tflite" computes.
    "features": Format(
        "model_features.tflite", "tflite", "as tflite, for apps/similar.py too", usual=False
    ),
    "mediapipe": Format(
        "model_mediapipe.tflite",
        "mediapipe",
        "for MediaPipe Tasks and ML Kit",
        usual=False,
        texts=False,
    ),
    "saved_model": Format(
        "saved_model", "saved_model", "for TensorFlow Serving: pixels, files or token ids"
    ),
    "onnx": Format(
        "model.onnx",
        "onnx",
        "for ONNX Runtime, any batch size",
        backend="torch",
        packages=("onnx", "onnxscript", "onnxruntime"),
        extra="onnx",
    ),
}
TEXT_FORMATS = tuple(name for name, each in FORMATS.items() if each.texts)
