"""Loads saved models: the one list of what the package registers with Keras."""

import os
import zipfile
from pathlib import Path


def register():
    """Registers with Keras all that a `.keras` file of this package may name.

    Classes register when their module is imported: layers, the loss and the metric, optimizers.
    """
    import keras_gmlp.layers
    import keras_gmlp.losses
    import keras_gmlp.training.optimizers  # noqa: F401


def require_readable(path):
    """Before a runtime calls it damaged."""
    if not os.access(path, os.R_OK):
        raise ValueError(f"{path}: no permission to read it.")


def load_model(path, compile=True):  # noqa: A002 (Keras' name of it)
    """Loads a `.keras` file, as `keras.saving.load_model` does once it knows the layers of here.

    Args:
        path: of the file.
        compile: with the optimizer and the loss that the model was saved with.

    Returns:
        A `keras.Model`.

    Raises:
        ValueError: no such file, or it is damaged; or Keras has no backend. One line.
    """
    path = Path(path)
    if not path.is_file():
        raise ValueError(f"{path}: no such file.")
    try:
        import keras

        register()
    except ImportError as error:
        raise ValueError(
            f"{path}: a .keras file needs Keras and its backend ({error}); install one, such as "
            "pip install -e '.[torch]', or give the .tflite file."
        ) from None

    require_readable(path)
    if not zipfile.is_zipfile(path):  # Keras would say that there is no such file
        raise damaged_error(path, "no zip archive, as .keras files are")
    try:
        return keras.saving.load_model(path, compile=compile)
    except Exception as error:  # Keras raises what its file readers raise, of every kind
        raise damaged_error(path, error) from None


def damaged_error(path, error):
    reason = " ".join(str(error).split())[:200]
    return ValueError(
        f"{path}: cannot be loaded; the file is damaged or of another kind ({reason})."
    )
