"""Checkpoints of a run, at the end of an epoch or within it: one file each, renamed into place."""

import math
import shutil
import time
from pathlib import Path

import h5py
import keras
import numpy as np

from keras_gmlp.training.callbacks import generator_states
from keras_gmlp.training.devices import agree, find_process, is_main, single_device
from keras_gmlp.training.run_directory import CHECKPOINTS
from keras_gmlp.utils.errors import first_line
from keras_gmlp.utils.files import atomic_write, remove_leftovers, require_space
from keras_gmlp.utils.parsers import check_weights

HEADER = 2048  # most bytes that HDF5 adds to a variable, groups included
GROUP = "epoch"  # of a checkpoint's file, for the state within an epoch
AGREED = 20  # steps after which several processes agree whether to save; that makes them wait


class RunCheckpoint(keras.callbacks.Callback):
    """Saves weights and optimizer after each epoch, in one file named by the epochs done."""

    # Keras' `BackupAndRestore` writes two files, so that a kill between them trains an epoch twice.

    def __init__(self, directory):
        super().__init__()
        self.directory = Path(directory)
        self.step, self.state = 0, None  # what `restore` finds within an epoch
        self.best = None  # number of an epoch whose checkpoint stays next to the newest

    def on_train_begin(self, logs=None):
        self._require_space()  # fail before the first epoch, not after it

    def on_epoch_end(self, epoch, logs=None):
        self.save(epoch + 1)

    def save(self, epochs, step=0, state=None):
        """Saves a checkpoint in place of the older ones."""
        older = self.files()
        self._require_space()
        path = self._path(epochs, step)
        with single_device(), atomic_write(path) as temporary:  # one process may write alone
            self.model.save_weights(temporary)
            if step:
                with h5py.File(temporary, "a") as file:
                    file.create_group(GROUP).update(state)
        for path in older:
            if self.best is None or path != self._path(self.best):
                path.unlink(missing_ok=True)

    def restore(self, model):
        """Loads the newest checkpoint, if any, and returns the number of epochs done."""
        # Without its variables TensorFlow would trace the step twice: the first call creates them.
        model.optimizer.build(model.trainable_variables)
        remove_leftovers(self.directory, r"\d{6}(_\d{6})?\.weights\.h5")
        files = self.files()
        if not files:
            return 0
        epochs, _, step = files[-1].name.split(".")[0].partition("_")
        self.step = int(step or 0)
        self.state = _load(model, files[-1], bool(self.step))
        return int(epochs)

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

    def _path(self, epochs, step=0):
        name = f"{epochs:06d}_{step:06d}" if step else f"{epochs:06d}"
        return self.directory / f"{name}.weights.h5"

    def files(self):
        """Returns the paths of the checkpoints, the newest last."""
        return sorted(self.directory.glob(CHECKPOINTS))


def _load(model, path, within=False):
    """Loads a checkpoint and returns its state within an epoch; a damaged one is a `ValueError`."""
    try:
        check_weights(path)
        model.load_weights(path)
        if not within:
            return None
        with h5py.File(path) as file:
            return {name: value[()] for name, value in file[GROUP].items()}
    except Exception as error:  # h5py and Keras raise many types for a damaged file
        if isinstance(error, MemoryError) or getattr(error, "errno", None):
            raise  # an error of the system; its message says what to do
        raise ValueError(
            f"{path}: cannot be loaded ({first_line(error)}). If the file is damaged, start the "
            "run again with --restart (restart=True)."
        ) from None


class SaveWithinEpoch(keras.callbacks.Callback):
    """Saves a checkpoint within an epoch when the last one is some minutes old, and continues one.

    An epoch that a run continues ends `fit`, since the next ones have more steps.
    """

    # All processes need it; the main one writes.

    def __init__(self, checkpoint, clock, minutes=None, steps=1):
        super().__init__()
        self.checkpoint, self.clock, self.minutes, self.steps = checkpoint, clock, minutes, steps
        self.every = AGREED if find_process()[1] > 1 else 1

    def on_epoch_begin(self, epoch, logs=None):
        self.epoch, self.saved = epoch, time.monotonic()

    # Not at the end of a step, which would turn off Keras' asynchronous dispatch; nor when the
    # epoch begins: PyTorch's data loader then draws a random number.
    def on_train_batch_begin(self, batch, logs=None):
        if batch == 0 and self.checkpoint.step:
            write_state(self.model, self.checkpoint.state)
            self.clock.began -= float(self.checkpoint.state["seconds"])
        if batch == 0 or batch % self.every or self.minutes is None:
            return
        if not agree(time.monotonic() - self.saved >= 60 * self.minutes):
            return
        if keras.backend.backend() == "jax":
            self.model.jax_state_sync()  # during an epoch Keras keeps the values elsewhere
        if is_main():
            self._save(self.checkpoint.step + batch * self.steps)
        self.saved = time.monotonic()

    def on_epoch_end(self, epoch, logs=None):
        if self.checkpoint.step:
            self.model.stop_training = True

    def _save(self, step):
        state = read_state(self.model)
        if not all(np.isfinite(value).all() for value in state.values()):
            return  # another callback ends the run
        if self.checkpoint.directory.exists():  # or the run was deleted
            state["seconds"] = time.perf_counter() - self.clock.began
            self.checkpoint.save(self.epoch, step, state)


def read_state(model):
    """Returns the metrics so far and the random states of a model in training, a dict of arrays."""
    variables = enumerate(_epoch_variables(model))
    state = {f"variable_{i:04d}": keras.ops.convert_to_numpy(value) for i, value in variables}
    generators = _generators().items()
    return state | {name: generator.get_rng_state().numpy() for name, generator in generators}


def write_state(model, state):
    """Sets what `read_state` returned."""
    variables = _epoch_variables(model)
    values = [state[name] for name in sorted(state) if name.startswith("variable_")]
    for variable, value in zip(variables, values, strict=True):
        variable.assign(value)
    for name, generator in _generators().items():
        if name in state:  # not if the run began without a GPU
            import torch

            generator.set_rng_state(torch.from_numpy(state[name]))


def _epoch_variables(model):
    return [*model.metrics_variables, *generator_states(model)]


def _generators():
    """Returns the generators of PyTorch itself, by name."""
    if keras.backend.backend() != "torch":
        return {}
    import torch

    return {"torch": torch, **({"cuda": torch.cuda} if torch.cuda.is_available() else {})}
