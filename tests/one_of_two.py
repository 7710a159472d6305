"""Trains as one of two processes; a test starts both. The second one kills itself at last."""

import os
import signal
import sys

import keras
from load_app import load_app

from keras_gmlp.training.callbacks import ReseedDropout


def interrupt():
    raise KeyboardInterrupt


def die():
    if process == "1":
        os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    port, process, *arguments = sys.argv[1:]
    join = ["--coordinator", f"127.0.0.1:{port}", "--processes", "2", "--process", process]
    host = [*arguments, "--set", "pipeline=host", "--out"]
    device = [*arguments, "--devices", "2", "--out", "lost"]
    train, stops = load_app("train").main, {}

    def on_epoch_begin(self, epoch, logs=None, original=ReseedDropout.on_epoch_begin):
        stops.get(epoch, int)()
        original(self, epoch)

    assert train([*host, "shared", *join]) == 0
    keras.distribution.initialize = lambda *_: None  # they have joined
    assert train([*host, "other", "--batch-size", str(24 + 2 * int(process))]) == 1
    ReseedDropout.on_epoch_begin = on_epoch_begin
    stops[1] = interrupt
    assert train(device) == 130
    stops.update({1: int, 2: die})
    train([*device, *join])
