"""`train_run`: from `RunSettings` to a trained, exported model, in one call."""

import time

from keras_gmlp.data.run_folder import RESTORE, Run
from keras_gmlp.runs.choosing import choose
from keras_gmlp.runs.prepare import finish, prepare
from keras_gmlp.runs.settings import RunSettings
from keras_gmlp.training.settings import COMMAND


def read_run(directory):
    """Returns the settings of a run from its `recipe.json`.

    Args:
        directory: Folder of the run.

    Returns:
        `RunSettings`, `LanguageRunSettings` or `FineTuningSettings`, with this directory.

    Raises:
        ValueError: If the file is missing or damaged, or has no options, as those of runs that
            `keras_gmlp.train` began. One line.
    """
    options = Run(directory).recipe.get(COMMAND)
    if options is None:
        raise ValueError(f"{directory}: its recipe.json does not hold the settings of the run.")
    try:
        return restore_settings({**options, "out": str(directory)})
    except (KeyError, TypeError, AttributeError):
        raise ValueError(f"{directory}/recipe.json: its command is damaged. {RESTORE}") from None


def restore_settings(command):
    """Returns the settings of an image or text run from its command in recipe.json."""
    kind = RunSettings
    if command["program"] != RunSettings.program:
        from keras_gmlp.runs.text import FineTuningSettings, LanguageRunSettings

        kind = FineTuningSettings if "task" in command else LanguageRunSettings
    return kind.from_command(command)


def train_run(settings, export=True, **options):
    """Trains one run, or resumes it.

    With the recipe `"finetune"` it first chooses what the settings leave open; see `choose`.

    Args:
        settings: `RunSettings`; or `LanguageRunSettings`, `FineTuningSettings`.
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
