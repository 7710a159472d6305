"""`train_run`: from `RunSettings` to a trained, exported model, in one call."""

import time

from keras_gmlp.data.run_folder import RESTORE, Run
from keras_gmlp.runs.choosing import choose
from keras_gmlp.runs.prepare import finish, prepare
from keras_gmlp.runs.settings import RunSettings


def read_run(directory):
    """Returns the settings of a run from its `recipe.json`.

    Args:
        directory: Folder of the run.

    Returns:
        `RunSettings`, with this directory as `out`.

    Raises:
        ValueError: If the file is missing or damaged, or has no options, as those of runs that
            `keras_gmlp.train` began. One line.
    """
    if not (settings := Run(directory).settings):
        raise ValueError(f"{directory}: its recipe.json does not hold the settings of the run.")
    try:
        return RunSettings(**{**settings, "out": str(directory)})
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"{directory}/recipe.json: damaged (its command: {error}) {RESTORE}"
        ) from None


def train_run(settings, export=True, **options):
    """Trains one run, or resumes it.

    With the recipe `"finetune"` it first chooses what the settings leave open; see `choose`.

    Args:
        settings: `RunSettings`.
        export: Whether to write and check `model.tflite` of an image model as well.
        **options: `restart`, `tensorboard`, `verbose`, `time_limit`, `checkpoint_minutes` and
            `callbacks` of `keras_gmlp.train`. A choice takes its time from the `time_limit`, which
            does not stop it.

    Returns:
        The metrics, a dict; see `keras_gmlp.train`. With weights that know the classes they
        include `accuracy_before`; after a choice the `candidates`.
    """
    return train_prepared(prepare(settings), export, **options)[1]


def train_prepared(run, export=True, report=lambda text: None, **options):
    """Trains a `PreparedRun`, or resumes it; see `train_run`."""
    began, restart = time.monotonic(), options.get("restart", False)
    before = None
    if run.testable and (restart or not run.complete):
        report("before training: testing the weights ...")
        before, task = run.evaluate(int(options.get("verbose") == 1)), run.recipe.task
        split = task.validation_split(run.data)
        measured = f"{task.headline.replace('_', ' ')} on the {split} images"
        measured = f"of the {split} images right" if task.headline == "accuracy" else measured
        report(f"before {100 * before[task.headline]:.2f} % {measured}")
    run = choose(run, restart=restart, report=report, verbose=options.get("verbose", "auto"))
    if options.get("time_limit") is not None:
        options["time_limit"] += began - time.monotonic()
    return run, finish(run, run.train(**options), before, export)
