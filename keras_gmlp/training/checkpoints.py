"""Checkpoints of a run: one file each, renamed into place."""

import math
import shutil
from pathlib import Path

import keras

from keras_gmlp.training.devices import single_device
from keras_gmlp.training.run_directory import CHECKPOINTS
from keras_gmlp.utils.errors import first_line
from keras_gmlp.utils.files import atomic_write, remove_leftovers, require_space

HEADER = 2048  # most bytes that HDF5 adds to a variable, groups included


class RunCheckpoint(keras.callbacks.Callback):
    """Saves weights and optimizer after each epoch, in one file named by the epochs done.

    Keras' `BackupAndRestore` writes weights and epoch to two files, so that a kill between them
    trains an epoch twice. Here a rename makes both appear at once.

    Args:
        directory: Folder of the checkpoints; created if missing.
    """

    def __init__(self, directory):
        super().__init__()
        self.directory = Path(directory)

    def on_train_begin(self, logs=None):
        self._require_space()  # fail before the first epoch, not after it

    def on_epoch_end(self, epoch, logs=None):
        older = self._files()
        self._require_space()
        path = self.directory / f"{epoch + 1:06d}.weights.h5"
        with single_device(), atomic_write(path) as temporary:  # one process may write alone
            self.model.save_weights(temporary)
        for path in older:
            path.unlink(missing_ok=True)

    def restore(self, model):
        """Loads the newest checkpoint, if any, and returns the number of epochs done."""
        # Without its variables TensorFlow would trace the step twice: the first call creates them.
        model.optimizer.build(model.trainable_variables)
        remove_leftovers(self.directory, r"\d{6}\.weights\.h5")
        files = self._files()
        if not files:
            return 0
        try:
            model.load_weights(files[-1])
        except Exception as error:  # h5py and Keras raise many types for a damaged file
            if isinstance(error, MemoryError) or getattr(error, "errno", None):
                raise  # an error of the system; its message says what to do
            raise ValueError(
                f"{files[-1]}: cannot be loaded ({first_line(error)}). If the file is damaged, "
                "start the run again with --restart (restart=True)."
            ) from None
        return int(files[-1].name.split(".")[0])

    def remove(self):
        """Deletes the checkpoints."""
        shutil.rmtree(self.directory, ignore_errors=True)

    def _require_space(self):
        """Raises an `OSError` if the disk is too full; HDF5 itself may end the whole process."""
        variables = [*self.model.variables, *self.model.optimizer.variables]
        size = sum(4 * math.prod(v.shape) + HEADER for v in variables)
        require_space(self.directory, size)

    def _files(self):
        return sorted(self.directory.glob(CHECKPOINTS))
