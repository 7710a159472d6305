"""The best epoch on validation images: its weights are kept, and the run ends some epochs later."""

import keras

from keras_gmlp.training.processes import run_once
from keras_gmlp.utils.errors import printable


class KeepBest(keras.callbacks.Callback):
    """Keeps the checkpoint of the best epoch, and ends training when its patience ends.

    Adds `best_epoch` to an epoch's logs. All processes need this callback, before the callbacks
    that write the history and the checkpoint.

    Args:
        checkpoint: `RunCheckpoint` of the run.
        metric: Name of the metric in the logs; higher is better. Of equal epochs the first is best.
        patience: Epochs without a better one after which training ends.
        history: Rows of `history.csv`, of the epochs done.

    Attributes:
        best: Number of the best epoch, from 1; `None` before the first.
    """

    def __init__(self, checkpoint, metric, patience, history=()):
        super().__init__()
        self.checkpoint, self.metric, self.patience = checkpoint, metric, patience
        self.values = {int(row["epoch"]) + 1: float(row[metric]) for row in history}
        self.best = None
        if run_once(lambda: len(self.values)):
            self._choose()

    def on_epoch_end(self, epoch, logs=None):
        self.values[epoch + 1] = logs[self.metric]
        self._choose()
        logs["best_epoch"] = self.best
        if self.ended(epoch + 1):
            self.model.stop_training = True

    def ended(self, epochs):
        """Returns whether the patience has ended after a number of epochs."""
        return self.best is not None and epochs - self.best >= self.patience

    def restore(self, model):
        """Loads the weights of the best epoch that were tested, if there is one."""
        run_once(lambda: None)  # process 0 has saved the epoch
        if self.best is None:
            return
        self.checkpoint.restore_best(model)
        # The averaged weights, which the end of `fit` would set.
        model.optimizer.finalize_variable_values(model.trainable_variables)
        run_once(lambda: None)  # all have read it, before process 0 deletes it

    def _choose(self):
        self.best = run_once(lambda: max(self.values, key=self.values.get))
        self.checkpoint.best = self.best


def require_validation(recipe, data):
    """Raises a `ValueError` if a recipe has a patience and the data have no validation images."""
    if recipe.patience is not None and recipe.task.validation_split(data) == "test":
        raise ValueError(
            f"patience={recipe.patience} requires validation images, and {printable(data.name)} "
            "has none; test images choose no epoch. Hold some out with --validation 0.1 "
            "(data.hold_out), or add a folder val/ next to train/ and test/."
        )
