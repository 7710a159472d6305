"""Runs apps/train.py and kills it a random time after it has entered a stage.

`python -m attack.victim STAGE SECONDS SIGNAL ARGUMENT...`
"""

import importlib
import os
import signal
import sys
import threading
import time

from load_app import load_app

from keras_gmlp.programs.shared.cli import import_tensorflow

STAGES = {  # a function that each stage enters
    "training": ("keras", "Model.fit"),
    "evaluation": ("keras", "Model.evaluate"),
    "save": ("keras", "Model.save"),
    "export": ("keras_gmlp.runs.run", "finish"),
}


def main(stage, seconds, name, *arguments):
    number = getattr(signal, name)

    def kill():
        time.sleep(float(seconds))
        os.kill(os.getpid(), number)

    if stage == "start":
        threading.Thread(target=kill, daemon=True).start()
    elif stage in STAGES:
        import_tensorflow()  # as the program does, before Keras imports it
        enter(*STAGES[stage], threading.Thread(target=kill, daemon=True).start)
    return load_app("train").main(arguments)


def enter(module, path, start):
    """Has a function call `start` when it is first entered."""
    holder = importlib.import_module(module)
    *holders, name = path.split(".")
    for part in holders:
        holder = getattr(holder, part)
    original, entered = getattr(holder, name), []

    def replacement(*args, **kwargs):
        if not entered:
            entered.append(True)
            start()
        return original(*args, **kwargs)

    setattr(holder, name, replacement)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
