"""`train_run`: from `RunSettings` to a trained, exported model, in one call."""

import time

from keras_gmlp.runs.choosing import choose, take_time
from keras_gmlp.runs.prepare import finish, prepare

# Options of training that the candidates of a choice have too.
SHARED = ("verbose", "time_limit", "checkpoint_minutes")


def train_run(settings, export=True, **options):
    """Trains one run, or resumes it.

    With the recipe `"finetune"` it first chooses what the settings leave open; see `choose`.

    Args:
        settings: `RunSettings`.
        export: Whether to write and check `model.tflite` as well.
        **options: `restart`, `tensorboard`, `verbose`, `time_limit`, `checkpoint_minutes` and
            `callbacks` of `keras_gmlp.train`. A choice takes its time from the `time_limit`.

    Returns:
        The metrics, a dict; see `keras_gmlp.train`. With weights that know the classes they
        include `accuracy_before`; after a choice the `candidates`.
    """
    return train_prepared(prepare(settings), export, **options)[1]


def train_prepared(run, export=True, report=lambda text: None, **options):
    """Trains a `PreparedRun`, or resumes it; see `train_run`."""
    began = time.monotonic()
    shared = {name: value for name, value in options.items() if name in SHARED}
    run = choose(run, restart=options.get("restart", False), report=report, **shared)
    if run.choice is not None:
        options["restart"] = False  # the choice began with an empty folder
    known = run.testable and (options.get("restart") or not run.complete)
    before = run.evaluate() if known else None
    return run, finish(run, run.train(**take_time(options, began)), before, export)
