"""Loads saved models; holds the one list of what the package registers with Keras."""

import os
import zipfile
from pathlib import Path

from keras_gmlp.utils.errors import is_out_of_memory


def register():
    """Registers the layers, the loss, the metric and the optimizers of this package with Keras.

    Classes register themselves when their module is imported.
    """
    import keras_gmlp.layers
    import keras_gmlp.losses
    import keras_gmlp.training.optimizers  # noqa: F401


def model_path(directory):
    """Returns the path of the `.keras` file in the folder of a training run.

    Raises:
        ValueError: If the folder does not exist or holds no model.
    """
    if not str(directory):  # an unset variable of a shell
        raise ValueError("'': an empty path; expected the folder of a run of apps/train.py.")
    directory = Path(directory)
    path = directory / "model.keras"
    if path.exists():
        return path
    if not directory.exists():
        raise ValueError(
            f"{directory}: no such folder; expected the folder of a run of apps/train.py, such as "
            "saved_models/gmlp_n4_32-cifar10."
        )
    if not directory.is_dir():
        raise ValueError(f"{directory}: a file; expected the folder of a run of apps/train.py.")
    if (directory / "metrics.json").exists():
        raise ValueError(
            f"{directory}: the model.keras of this run is missing; train it again with "
            "apps/train.py --restart."
        )
    if (directory / "recipe.json").exists():
        raise ValueError(f"{directory}: this run is not complete; finish it with apps/train.py.")
    raise ValueError(
        f"{directory}: no model.keras in this folder; expected the folder of a run of "
        "apps/train.py."
    )


def require_readable(path):
    """Raises a `ValueError` that is clearer than what a runtime reports."""
    if path.exists() and not (path.is_file() or path.is_dir()):  # reading a pipe would block
        raise ValueError(f"{path}: neither a file nor a folder.")
    if not os.access(path, os.R_OK):
        raise ValueError(f"{path}: no permission to read it.")


def load_model(path, compile=True):  # noqa: A002 (Keras' name)
    """Loads a `.keras` file with the layers, losses and optimizers of this package.

    Args:
        path: Path of the file.
        compile: Whether to compile the model with the optimizer and the loss in the file.

    Returns:
        A `keras.Model`.

    Raises:
        ValueError: If the file does not exist or is damaged, if the backend of Keras is not
            installed, or if Keras is set to `"channels_first"`. One line.
        MemoryError: If the model does not fit in memory. One line.

    Example:
        >>> model = load_model("saved_models/gmlp_n4_32-cifar10/model.keras")
        >>> model.output_shape
        (None, 10)
    """
    path = Path(path)
    if not path.is_file():
        raise ValueError(f"{path}: no such file.")
    try:
        import keras

        from keras_gmlp.models.image_classifier import require_channels_last

        register()
    except ImportError as error:
        raise ValueError(
            f"{path}: a .keras file requires Keras and its backend ({error}); install one, such as "
            "pip install -e '.[torch]', or give the .tflite file."
        ) from None

    require_channels_last()
    require_readable(path)
    if not zipfile.is_zipfile(path):  # Keras would report a missing file
        raise damaged_error(path, "not a zip archive, which a .keras file is")
    try:
        return keras.saving.load_model(path, compile=compile)
    except Exception as error:  # each file reader raises errors of other classes
        raise damaged_error(path, error) from None


def open_tflite(path, threads=None):
    """Returns the LiteRT interpreter of a `.tflite` file, ready to run; imports no Keras.

    Args:
        path: Path of the file.
        threads: Number of threads. Defaults to the number of cores, at most 4.

    Raises:
        ValueError: If the file is damaged or cannot be read. One line.
    """
    from ai_edge_litert.interpreter import Interpreter

    require_readable(path)
    try:
        interpreter = Interpreter(str(path), num_threads=threads or min(4, os.cpu_count() or 1))
        interpreter.allocate_tensors()
    except (ValueError, RuntimeError, OSError, MemoryError) as error:
        raise damaged_error(path, error) from None
    return interpreter


def damaged_error(path, error):
    """Returns an error of one line for a file that cannot be loaded.

    It is a `ValueError`, or a `MemoryError` if there is too little memory.
    """
    if is_out_of_memory(error):
        return MemoryError(f"{path}: not enough memory to load it.")
    reason = " ".join(str(error).split())[:200]
    return ValueError(
        f"{path}: cannot be loaded; the file is damaged or of another kind ({reason})."
    )
