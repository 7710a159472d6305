"""`train_run`: from `RunSettings` to a trained, exported model, in one call."""

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path

from keras_gmlp.data.images.image_data import ImageData
from keras_gmlp.data.run_folder import Run
from keras_gmlp.runs.choosing import choose
from keras_gmlp.runs.prepare import PreparedRun, build, prepare
from keras_gmlp.runs.settings import RunSettings
from keras_gmlp.training.devices import agree, is_main, single_device
from keras_gmlp.training.train import train
from keras_gmlp.utils.errors import naming_errors


def read_run(directory: str | Path) -> RunSettings:
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
    with naming_errors(f"{directory}/recipe.json"):
        return RunSettings(**{**settings, "out": str(directory)})


def train_run(
    settings: RunSettings,
    export: bool = True,
    *,
    dataset: ImageData | None = None,
    introduce: Callable[[PreparedRun], None] = lambda run: None,
    report: Callable[[str], None] = lambda text: None,
    restart: bool = False,
    verbose: str | int = "auto",
    **options,
) -> dict:
    """Trains one run, or resumes it.

    With the recipe `"finetune"` it first chooses what the settings leave open, on held-out images.

    Args:
        settings: `RunSettings`.
        export: Whether to write and check `model.tflite` of an image model as well.
        dataset: An `ImageData` in place of the images that the settings name.
        introduce: Function that receives the data, the model and the recipe, attributes of one
            object, before anything is trained.
        report: Function that receives lines of text on what is done.
        restart, verbose: As in `keras_gmlp.train`.
        **options: `callbacks` of `keras_gmlp.train`.

    Returns:
        The metrics, a dict; see `keras_gmlp.train`. With weights that know the classes they
        include `accuracy_before`; after a choice the `candidates`. If several processes train,
        they are complete in the first one.
    """
    prepared = prepare(settings, dataset)
    introduce(prepared)
    complete = Run(settings.out).complete and not restart
    measured = test_weights(prepared, report, verbose) if prepared.testable and not complete else {}
    choice, vectors = choose(prepared, restart=restart, report=report, verbose=verbose)
    if choice is not None:
        changes = {**choice.changes, **prepared.settings.changes}
        prepared = build(prepared.settings.with_changes(**changes), prepared.source, prepared.data)
    extra = {**prepared.settings.record(), "preset": prepared.origin.get("preset")}
    extra["command"] = prepared.settings.to_dict()
    if choice is not None:
        given = json.loads(json.dumps(settings.changes))  # others leave another choice
        extra |= {"choice": dataclasses.asdict(choice), "given": given}
        measured |= {"candidates": choice.candidates}
    metrics = train(
        prepared.model,
        prepared.data,
        prepared.recipe,
        settings.out,
        restart=restart,
        verbose=verbose,
        extra=extra,
        measured=measured,
        origin=prepared.origin,
        vectors=vectors,
        **options,
    )
    export = export and settings.kind == "data"  # texts are checked with other data
    if export and is_main() and "tflite" not in metrics.get("exports", {}):
        from keras_gmlp.export.verify import export_run

        with single_device():
            metrics["exports"] = export_run(settings.out, ["tflite"], prepared.data)
    agree()  # the others wait
    if complete:
        report("this run is complete already; --restart (restart=True) trains it again.")
    return metrics


def test_weights(run, report, verbose):
    """Tests the weights that a run starts from; returns a dict for its metrics."""
    report("before training: testing the weights ...")
    task, split = run.recipe.task, run.recipe.task.validation_split(run.data)
    found = task.evaluate(run.model, run.data, split, verbose=int(verbose == 1))
    value, score = found[task.headline], task.headline.replace("_", " ")
    on = f"of the {split} images right" if score == "accuracy" else f"{score} on the {split} images"
    report(f"before {100 * value:.2f} % {on}")
    return {f"{'validation_' * (split == 'validation')}{task.headline}_before": value}
