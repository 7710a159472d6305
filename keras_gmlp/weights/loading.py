"""`load`: a model of any task and format as one callable object."""

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from keras_gmlp.inference.opening import open_model
from keras_gmlp.utils.sources import find_model


def load(source: str | Path, threads: int | None = None, warn: Callable = warnings.warn) -> Any:
    """Loads a model of images or texts.

    Args:
        source: A `.tflite`, `.keras` or `.onnx` file; the folder of a SavedModel or of a run; the
            name of a model that comes with a clone of the repository, such as `"gmlp_photo_64"`;
            or published weights: a file, their folder or `"hf://NAME"`.
        threads: Number of threads of the LiteRT or ONNX runtime. Defaults to the number of cores,
            at most 4.
        warn: Function that receives a line when a text is too long.

    Returns:
        A `Classifier` or a `TextModel`, to call with an image or a text; for a task of your own,
        what its `wrap` returns.

    Raises:
        ValueError: If the model does not exist, cannot be read or is damaged. One line.
        MemoryError: If the model does not fit in memory. One line.

    Example:
        >>> load("gmlp_n4_32-cifar10")("docs/cat.jpg", top=1)[0][0]
        'cat'
    """
    path, kind = find_model(source)
    if kind == "published":
        from keras_gmlp.weights import pretrained, text_folder

        is_text = text_folder.is_text_model(path, kind)
        return text_folder.open_text_model(path) if is_text else pretrained.load(path).classifier()
    opened = open_model(path, threads)
    return opened.find_task().wrap(opened, warn=warn)
