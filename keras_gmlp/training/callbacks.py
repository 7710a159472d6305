"""Callbacks: Ctrl-C, time per epoch, random numbers that resume, a stop at NaN, the best epoch."""

import contextlib
import csv
import math
import signal
import threading
import time

import keras
import numpy as np

from keras_gmlp.training.devices import agree
from keras_gmlp.utils.errors import printable
from keras_gmlp.utils.files import naming


class DivergedError(RuntimeError):
    """Raised when the loss becomes NaN or infinite."""


class StopOnInterrupt(keras.callbacks.Callback):
    """Ends training after the present step if Ctrl-C was pressed; also a context manager."""

    # An exception in the middle of a step can crash TensorFlow while it traces a function, and
    # Keras drops any that is raised while it converts logs to numbers. A second Ctrl-C raises at
    # once. A handler that is not Python's own stays.

    pressed = handled = False

    def __enter__(self):
        if threading.current_thread() is threading.main_thread():  # others cannot set handlers
            self.handled = signal.getsignal(signal.SIGINT) is signal.default_int_handler
        if self.handled:
            signal.signal(signal.SIGINT, self._note)
        return self

    def __exit__(self, kind, error, traceback):
        if self.handled:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        if kind is not KeyboardInterrupt:  # also in place of an error that it led to
            self._check()

    def _note(self, number, frame):
        self.pressed = True
        signal.signal(signal.SIGINT, signal.default_int_handler)

    def _check(self, *arguments, **logs):
        if self.pressed:
            raise KeyboardInterrupt

    on_epoch_begin = on_train_batch_begin = on_test_batch_begin = _check


class Clock(keras.callbacks.Callback):
    """Logs an epoch's seconds without its validation; place it before callbacks of validation."""

    def on_epoch_begin(self, epoch, logs=None):
        self.began = time.perf_counter()
        self.ended = None

    def on_test_begin(self, logs=None):
        self.ended = self._time_of_last_step()

    def on_epoch_end(self, epoch, logs=None):
        logs["seconds"] = round((self.ended or self._time_of_last_step()) - self.began, 2)

    def _time_of_last_step(self):
        """Returns the time after the last step, which may still run on the device."""
        smallest = min(self.model.trainable_variables, key=lambda v: math.prod(v.shape))
        keras.ops.convert_to_numpy(smallest)  # waits for the step that writes it
        return time.perf_counter()


class ReseedDropout(keras.callbacks.Callback):
    """Starts each epoch's random numbers from seed and epoch, since checkpoints hold no state."""

    def __init__(self, seed):
        super().__init__()
        self.seed = seed

    def on_epoch_begin(self, epoch, logs=None):
        states = [v for v in self.model.variables if v.name == "seed_generator_state"]
        for i, state in enumerate(states):
            # Keras counts draws in the second number; no epoch has a million.
            start = (self.seed * 10_007 + i) % 2**32
            state.assign(np.array([start, epoch * 2**20 % 2**32], dtype="uint32"))
        self.epoch = epoch

    def on_train_batch_begin(self, batch, logs=None):
        # Not before: opening batches draws a number, and endless ones open once a run.
        if batch == 0 and keras.backend.backend() == "torch":  # see `private_generator`
            import torch

            torch.manual_seed((self.seed * 10_007 + self.epoch) % 2**32)


def private_generator():
    """Returns a context that restores the state of PyTorch's generator; a no-op elsewhere."""
    if keras.backend.backend() != "torch":
        return contextlib.nullcontext()
    import torch

    return torch.random.fork_rng(devices=range(torch.cuda.device_count()))


class HistoryWriter(keras.callbacks.Callback):
    """Adds a row to `history.csv` after each epoch."""

    # Keras' `CSVLogger` keeps the file open; an error of a full disk would not name it.

    def __init__(self, directory):
        super().__init__()
        self.path = directory / "history.csv"

    def on_epoch_end(self, epoch, logs=None):
        row = {"epoch": epoch, **dict(sorted(logs.items()))}
        with naming(self.path, self.path), self.path.open("a", newline="") as file:
            writer = csv.DictWriter(file, row)
            if not file.tell():
                writer.writeheader()
            writer.writerow(row)


class StopWhenDiverged(keras.callbacks.Callback):
    """Ends training with a `DivergedError` when the loss is NaN or infinite."""

    # Keras' `TerminateOnNaN` ends the epoch normally, so that broken weights would be kept.
    # On JAX and PyTorch, Keras then calls this from another thread while the next steps run, and
    # raises the error at one of them or when the epoch ends. On TensorFlow each step waits.
    async_safe = True

    def on_epoch_begin(self, epoch, logs=None):
        self.epoch = epoch

    def on_train_batch_end(self, batch, logs=None):
        self._check("loss", logs, f"by step {batch + 1}")

    def on_epoch_end(self, epoch, logs=None):
        self._check("loss", logs, "at the end")
        self._check("val_loss", logs, "after the last step")

    def _check(self, name, logs, moment):
        value = float((logs or {}).get(name, 0.0))
        if not math.isfinite(value):
            raise DivergedError(
                f"the {name.replace('val_', 'validation ')} became {value} in epoch "
                f"{self.epoch + 1}, {moment}. Lower the learning rate, train in float32, or lower "
                "clip_norm, in a new directory."
            )


class KeepBest(keras.callbacks.Callback):
    """Keeps the checkpoint of the best epoch, logged as `best_epoch`, until its patience ends."""

    # All processes need it, before the callbacks that write the history and the checkpoint.

    def __init__(self, checkpoint, metric, patience, history=()):
        super().__init__()
        self.checkpoint, self.metric, self.patience = checkpoint, metric, patience
        self.values = {int(row["epoch"]) + 1: float(row[metric]) for row in history}
        checkpoint.best = self.best

    @property
    def best(self):
        """The number of the best epoch, the first of equal ones; `None` if none was tested."""
        return max(self.values, key=self.values.get, default=None)

    def on_epoch_end(self, epoch, logs=None):
        self.values[epoch + 1] = logs[self.metric]
        logs["best_epoch"] = self.checkpoint.best = self.best
        if self.ended(epoch + 1):
            self.model.stop_training = True

    def ended(self, epochs):
        """Returns whether the patience has ended after a number of epochs."""
        return self.best is not None and epochs - self.best >= self.patience

    def restore(self, model):
        """Loads the weights of the best epoch that were tested, if there is one."""
        agree()  # the main process has saved the epoch
        if self.best is None:
            return
        self.checkpoint.restore_best(model)
        # The averaged weights, which the end of `fit` would set.
        model.optimizer.finalize_variable_values(model.trainable_variables)
        agree()  # all have read it, before the main process deletes it


def require_validation(recipe, data):
    """Raises a `ValueError` if a recipe has a patience and the data have no validation images."""
    if recipe.patience is not None and recipe.task.validation_split(data) == "test":
        raise ValueError(
            f"patience={recipe.patience} requires validation images, and {printable(data.name)} "
            "has none; test images choose no epoch. Hold some out with --validation 0.1 "
            "(data.hold_out), or add a folder val/ next to train/ and test/."
        )
