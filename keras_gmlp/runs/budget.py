"""The processor time that a choice and its run may take: two minutes of a core for 500 images."""

import math
import time

import keras

SECONDS, IMAGES, FURTHER = 120.0, 500, 240 / 700  # for up to so many images; for each beyond
BEFORE = 40.0  # seconds of this process that count, at most: it may be an old one
AFTER = 15.0  # that testing and the export take


class Budget(keras.callbacks.Callback):
    """Ends a candidate while there is time for the run, which it shares, and measures epochs."""

    def __init__(self, images, share):
        super().__init__()
        used, self.share, self.epoch = time.process_time(), share, None
        self.seconds = self.rest = 0.0  # of the last candidate, and what was not its epochs
        seconds = SECONDS + FURTHER * max(0, images - IMAGES)
        self.end = used - min(used, BEFORE) + seconds - AFTER

    def on_epoch_begin(self, epoch, logs=None):
        self.began = time.process_time()

    def on_epoch_end(self, epoch, logs=None):
        self.epoch = time.process_time() - self.began
        # The first epoch compiles. The run adds half as many epochs at least, on all images.
        if epoch and self.epochs_left(self.epoch) < (epoch + 3) // 2:
            self.model.stop_training = True

    def measure(self, seconds, epochs):
        """Notes the processor time of a whole candidate, of which epochs are a part."""
        self.seconds, self.rest = seconds, max(0.0, seconds - epochs * (self.epoch or seconds))

    def epochs_left(self, before=0.0):
        """Returns how many epochs the run has time for after some seconds; infinity if unknown."""
        if not self.epoch:
            return math.inf
        left = self.end - time.process_time() - before - self.rest
        return max(0, math.floor(left * self.share / self.epoch))
