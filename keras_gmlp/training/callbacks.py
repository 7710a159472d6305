"""What makes a run survive: checkpoints, drops that resume, a stop when it diverges."""

import math
import shutil
import time
from pathlib import Path

import keras
import numpy as np

from keras_gmlp.training.run_directory import CHECKPOINTS
from keras_gmlp.utils.errors import first_line
from keras_gmlp.utils.files import atomic_write, remove_leftovers, require_space

HEADER = 2048  # bytes that HDF5 adds to a variable, groups included, at most


class DivergedError(RuntimeError):
    """The loss is no number any more."""


class RunCheckpoint(keras.callbacks.Callback):
    """Weights and optimizer after each epoch, in one file whose name holds the epochs done.

    Keras' BackupAndRestore writes weights and epoch to two files, so that a kill between them
    trains an epoch twice; here a rename makes both appear at once.
    """

    def __init__(self, directory):
        super().__init__()
        self.directory = Path(directory)

    def on_train_begin(self, logs=None):
        self._require_space()  # not only after an epoch

    def on_epoch_end(self, epoch, logs=None):
        older = self._files()
        self._require_space()
        with atomic_write(self.directory / f"{epoch + 1:06d}.weights.h5") as temporary:
            self.model.save_weights(temporary)
        for path in older:
            path.unlink(missing_ok=True)

    def restore(self, model):
        """Loads the newest checkpoint, if there is one; returns the number of epochs done."""
        remove_leftovers(self.directory, r"\d{6}\.weights\.h5")
        files = self._files()
        if not files:
            return 0
        model.optimizer.build(model.trainable_variables)
        try:
            model.load_weights(files[-1])
        except Exception as error:  # h5py and Keras raise errors of every kind for a damaged file
            if isinstance(error, MemoryError) or getattr(error, "errno", None):
                raise  # the system's, which say themselves what to do
            raise ValueError(
                f"{files[-1]}: cannot be loaded ({first_line(error)}). If it is damaged, train the "
                "run anew, over it, with --restart (restart=True)."
            ) from None
        return int(files[-1].name.split(".")[0])

    def remove(self):
        """Deletes the checkpoints of a run that is complete."""
        shutil.rmtree(self.directory, ignore_errors=True)

    def _require_space(self):
        """HDF5 that meets a full disk may end the whole process; it must not come to that."""
        variables = [*self.model.variables, *self.model.optimizer.variables]
        size = sum(4 * math.prod(v.shape) + HEADER for v in variables)
        require_space(self.directory, size)

    def _files(self):
        return sorted(self.directory.glob(CHECKPOINTS))


class Clock(keras.callbacks.Callback):
    """Adds the seconds of the epoch's training, without its test, to its row of the history."""

    def on_epoch_begin(self, epoch, logs=None):
        self.began = time.perf_counter()
        self.ended = None

    def on_test_begin(self, logs=None):
        self.ended = time.perf_counter()

    def on_epoch_end(self, epoch, logs=None):
        logs["seconds"] = round((self.ended or time.perf_counter()) - self.began, 2)


class ReseedDropout(keras.callbacks.Callback):
    """Starts each epoch's random drops afresh: weight files do not hold how far they had come."""

    def __init__(self, seed):
        super().__init__()
        self.seed = seed

    def on_epoch_begin(self, epoch, logs=None):
        states = [v for v in self.model.variables if v.name == "seed_generator_state"]
        for i, state in enumerate(states):
            # Keras counts draws in the second number; no epoch has a million.
            start = (self.seed * 10_007 + i) % 2**32
            state.assign(np.array([start, epoch * 2**20 % 2**32], dtype="uint32"))
        if keras.backend.backend() == "torch":  # plain dropout draws from PyTorch's own generator
            keras.utils.set_random_seed((self.seed * 10_007 + epoch) % 2**32)


class StopWhenDiverged(keras.callbacks.Callback):
    """Keras' TerminateOnNaN ends the epoch as if it were whole, and the weights would be kept."""

    def on_epoch_begin(self, epoch, logs=None):
        self.epoch = epoch

    def on_train_batch_end(self, batch, logs=None):
        if not math.isfinite(float((logs or {}).get("loss", 0.0))):
            raise DivergedError(
                f"the loss became {float(logs['loss'])} in epoch {self.epoch + 1}, step "
                f"{batch + 1}. Lower the learning rate, train in float32, or clip harder, in a "
                "new directory."
            )
