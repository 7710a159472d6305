"""Opens saved Keras models."""

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from keras_gmlp.utils.errors import is_out_of_memory
from keras_gmlp.utils.files import require_bounded
from keras_gmlp.utils.parsers import check_weights
from keras_gmlp.utils.sources import find_model

if TYPE_CHECKING:
    import keras


def load_model(path: str | Path, compile: bool = True) -> "keras.Model":  # noqa: A002 (Keras' name)
    """Loads a Keras model with the layers, losses and optimizers of this package.

    Args:
        path: Path of a `.keras` file, the folder of a run, or the name of a model that comes with
            a clone of the repository, such as `"gmlp_conv_n4_32-cifar10"`.
        compile: Whether to compile the model with the optimizer and the loss in the file.

    Returns:
        A `keras.Model`.

    Raises:
        ValueError: If the file does not exist, is damaged, holds no model or unpacks to more than
            its size, or if Keras is set to `"channels_first"`. One line.
        ImportError: If Keras or its backend is not installed.
        MemoryError: If the model does not fit in memory. One line.

    Example:
        >>> model = load_model("gmlp_n4_32-cifar10")
        >>> model.output_shape
        (None, 10)
    """
    path, _ = find_model(path, ("keras",))
    import keras  # registers the classes of this package

    from keras_gmlp.models.common import require_channels_last
    from keras_gmlp.objectives.optimizers import OPTIMIZERS

    require_channels_last()
    try:
        require_bounded(path)
        check_weights(path)
        model = keras.saving.load_model(path, OPTIMIZERS, compile=compile)
    except Exception as error:  # each file reader raises errors of other classes
        raise damaged_error(path, error) from None
    if not getattr(model, "inputs", None):  # a layer, a subclass of Model, or not built
        raise ValueError(
            f"{path}: holds a {type(model).__name__}; expected a functional model or a built "
            "Sequential one."
        )
    model.jit_compile = None  # as this backend does, not the one that saved the file
    return model


def require_numbers(values, path, what="logits"):
    """Returns an array; raises a `ValueError` if a value is NaN or infinite."""
    if np.isfinite(values).all():
        return values
    raise ValueError(
        f"{path}: its {what} are NaN or infinite; the file is damaged or its training diverged. "
        "Copy or train the model again."
    )


def damaged_error(path, error):
    """Returns an error of one line for a file that cannot be loaded."""
    if is_out_of_memory(error):
        return MemoryError(f"{path}: not enough memory to load it.")
    reason = " ".join(str(error).split())[:200]
    return ValueError(
        f"{path}: cannot be loaded; the file is damaged or of another kind ({reason})."
    )
