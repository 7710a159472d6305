"""Checkpoints of a run at the end of an epoch: one file each, renamed into place."""

import math
import shutil
from pathlib import Path

import keras

from keras_gmlp.data.run_folder import RESTORE
from keras_gmlp.training.devices import single_device
from keras_gmlp.training.run_directory import CHECKPOINTS
from keras_gmlp.utils.errors import first_line
from keras_gmlp.utils.files import atomic_write, remove_leftovers, require_space
from keras_gmlp.utils.parsers import check_weights

HEADER = 2048  # most bytes that HDF5 adds to a variable, groups included


class RunCheckpoint(keras.callbacks.Callback):
    """Saves weights and optimizer after each epoch, in one file named by the epochs done."""

    # Keras' `BackupAndRestore` writes two files, so that a kill between them trains an epoch twice.

    def __init__(self, directory):
        super().__init__()
        self.directory = Path(directory)
        self.best = None  # number of an epoch whose checkpoint stays next to the newest

    def on_train_begin(self, logs=None):
        self._require_space()  # fail before the first epoch, not after it

    def on_epoch_end(self, epoch, logs=None):
        older = self.files()
        self._require_space()
        with single_device(), atomic_write(self._path(epoch + 1)) as temporary:
            self.model.save_weights(temporary)  # only one process may write
        for path in older:
            if self.best is None or path != self._path(self.best):
                path.unlink(missing_ok=True)

    def files(self):
        """Returns the paths of the checkpoints, the newest last."""
        return sorted(self.directory.glob(CHECKPOINTS))

    def restore(self, model):
        """Loads the newest checkpoint, if any, and returns the number of epochs done."""
        # Without its variables TensorFlow would trace the step twice: the first call creates them.
        model.optimizer.build(model.trainable_variables)
        remove_leftovers(self.directory, r"\d{6}\.weights\.h5")
        files = self.files()
        if not files:
            return 0
        _load(model, files[-1])
        return int(files[-1].name.partition(".")[0])

    def restore_best(self, model):
        """Loads the checkpoint of the epoch `best`."""
        _load(model, self._path(self.best))

    def remove(self):
        """Deletes the checkpoints."""
        shutil.rmtree(self.directory, ignore_errors=True)

    def _require_space(self):
        """Raises an `OSError` if the disk is too full; HDF5 itself may end the whole process."""
        variables = [*self.model.variables, *self.model.optimizer.variables]
        size = sum(4 * math.prod(v.shape) + HEADER for v in variables)
        require_space(self.directory, size, reserve=True)

    def _path(self, epochs):
        return self.directory / f"{epochs:06d}.weights.h5"


def _load(model, path):
    """Loads a checkpoint; a damaged one, or one of older versions within an epoch, is an error."""
    try:
        check_weights(path)
        if "_" in path.name:
            raise ValueError("it was saved within an epoch")
        model.load_weights(path)
    except Exception as error:  # h5py and Keras raise many types for a damaged file
        if isinstance(error, MemoryError) or getattr(error, "errno", None):
            raise  # an error of the system; its message says what to do
        raise ValueError(f"{path}: cannot be loaded ({first_line(error)}). {RESTORE}") from None
