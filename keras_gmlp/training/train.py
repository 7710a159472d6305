"""`train`: a run that can be stopped, resumed and reproduced."""

import contextlib
import dataclasses
import math
import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import keras
import numpy as np

from keras_gmlp.data.own_arrays import from_arrays, is_raw
from keras_gmlp.data.run_folder import RESTORE, Run
from keras_gmlp.models.precision import in_float32
from keras_gmlp.models.saved import load_model
from keras_gmlp.models.structure import require_floats
from keras_gmlp.tasks import linear_head
from keras_gmlp.tasks.task import EVALUATED_SAMPLES
from keras_gmlp.training.callbacks import (
    Clock,
    DivergedError,
    HistoryWriter,
    KeepBest,
    require_validation,
)
from keras_gmlp.training.checkpoints import RunCheckpoint
from keras_gmlp.training.devices import agree, check_agreement, is_main, single_device
from keras_gmlp.training.model_card import write_model_card
from keras_gmlp.training.pipeline import adapt_layers, choose_pipeline, fit, prepare_fit
from keras_gmlp.training.recipes import Recipe, find_recipe
from keras_gmlp.training.run_directory import LOCK_TIMEOUT, claim, read_history, trim_history
from keras_gmlp.utils import plotting
from keras_gmlp.utils.errors import first_line
from keras_gmlp.utils.files import atomic_write, directory_lock, write_json


def train(
    model: keras.Model,
    data: Any,
    recipe: Recipe | str,
    directory: str | Path | None = None,
    *,
    restart: bool = False,
    verbose: str | int = "auto",
    callbacks: Sequence[keras.callbacks.Callback] = (),
    extra: dict | None = None,
    measured: dict | None = None,
    origin: dict | None = None,
    vectors: tuple[np.ndarray, np.ndarray] | None = None,
) -> dict:
    """Trains a model and saves everything about the run in a directory.

    A run that was stopped resumes after its last checkpoint when it is called again with the same
    arguments, and ends with the same result. A complete run is loaded. If several processes
    train (`keras.distribution.initialize`), all of them call `train` inside
    `keras_gmlp.use_devices` and read the directory; the first one writes it.

    The directory then holds `model.keras` (averaged weights, float32), the files of the task (for
    images `labels.txt`), `recipe.json` (settings, data, versions, hardware), `history.csv` (one
    row per epoch), `metrics.json`, `curves.png` and a model card, `README.md`; of data in files
    also `samples.csv`, what the run trained on and held out.

    Args:
        model: `keras.Model` built with `recipe.model_arguments()`; for images it maps pixels in
            [0, 255] to logits. It holds the averaged weights at the end.
        data: Data set that fits the model and `recipe.task`; an `ImageData` for images, or what
            `data.from_arrays` takes, such as a pair of arrays `(images, labels)`.
        recipe: `Recipe`, or for images its name in `RECIPES`.
        directory: Folder of the run; created if missing. Defaults to `runs/MODEL-DATA`, by the
            names of the model and the data.
        restart: Whether to delete a run in the directory and start again.
        verbose: As in `model.fit`.
        callbacks: Further `keras.callbacks.Callback`s, such as a logger or `EarlyStopping`; called
            after those of the run. A run that resumes begins with new ones.
        extra: Further entries for `recipe.json`, a dict. A run resumes with the same ones only,
            except for `command`, the options of the program that repeats the run.
        measured: Further entries for the metrics, a dict, such as what was measured before.
        origin: `preset` and, if they are known, `arguments` with which
            `keras_gmlp.build(preset, **arguments)` rebuilds the model, a dict for the card of
            `model.keras`; `None` if no preset describes it.
        vectors: For a `fit_head` of the task: what `tasks.linear_head.read_training_features`
            returned for this model and these data. `None` to read them.

    Returns:
        The metrics, a dict. For images: `test_accuracy`, `train_accuracy` (on up to 10,000
        training images without augmentation), `validation_accuracy` if the data have validation
        images, `test_loss`, `parameters`, `epochs`, `seconds`, `images_per_second`; with a
        patience `best_epoch`, whose weights these are; without `seconds` if `history.csv` lost
        epochs.

    Raises:
        ValueError: If the model is quantized or does not fit the data, a patience lacks validation
            images, the directory holds a run with other settings or data, another process uses it,
            or several processes have different settings or data.
        DivergedError: If the loss becomes NaN or infinite.
    """
    import matplotlib.figure  # noqa: F401 (if it is missing, fail now and not after the last epoch)

    if is_raw(data):
        data = from_arrays(data)
    if isinstance(recipe, str):
        recipe = find_recipe(recipe)
    if directory is None:
        directory = Path("runs", f"{model.name}-{Path(data.name).name}")
    directory = Path(directory)
    recipe = dataclasses.replace(recipe, task=recipe.task.match(data))
    recipe.task.check_fit(model, data)
    require_floats(model)
    require_validation(recipe, data)
    pipeline = choose_pipeline(recipe, data, None if restart else directory)
    recipe = dataclasses.replace(recipe, pipeline=pipeline)
    task, described = recipe.task, recipe.task.describe_data(data)
    own = {"model": model.name, **described}
    # A folder may hold other files on another machine.
    check_agreement({**recipe.settings(), **own, "samples": task.samples_per_epoch(data)})
    with contextlib.ExitStack() as stack:
        if is_main():
            stack.enter_context(directory_lock(directory, LOCK_TIMEOUT))
            claim(directory, {**(extra or {}), **own}, recipe, data, restart)
        if agree(Run(directory).complete):
            return _load(model, directory)
        checkpoint = RunCheckpoint(directory / "checkpoint")
        if not checkpoint.files():
            if getattr(task, "fit_head", 0):
                linear_head.fit_model(model, data, task, vectors)
            adapt_layers(model, task, data)
        epochs, best = _fit(model, data, recipe, checkpoint, verbose, callbacks)

        if is_main():
            with single_device():
                metrics = _save(model, data, recipe, directory, origin or {})
            metrics |= {"parameters": model.count_params(), "epochs": epochs, **(measured or {})}
            metrics |= _describe_history(directory, data, recipe, epochs)
            metrics |= {} if best is None else {"best_epoch": best}
            write_model_card(directory, metrics)
            write_json(directory / "metrics.json", metrics)  # last: it marks a complete run
            checkpoint.remove()
        agree()  # the others wait
        return Run(directory).metrics


def _load(model, directory):
    """Loads the weights of a complete run; returns its metrics."""
    metrics = Run(directory).metrics
    try:
        saved = load_model(directory / "model.keras", compile=False)
        model.set_weights(saved.get_weights())
    except ValueError as error:
        raise ValueError(f"{first_line(error)} {RESTORE}") from None
    return metrics


def _fit(model, data, recipe, checkpoint, verbose, callbacks):
    """Trains from the checkpoint on; returns the epochs done and, with a patience, the best one."""
    task, directory, first = recipe.task, checkpoint.directory.parent, is_main()
    model, batches = prepare_fit(model, data, recipe)
    epochs, history = checkpoint.restore(model), directory / "history.csv"
    if first:
        task.write_files(data, directory)
        trim_history(history, epochs)
    if agree(epochs) != epochs:
        raise ValueError(
            f"{directory}: this process finds another checkpoint than process 0; put the folder on "
            "a disk that all processes share."
        )
    own, keep = [Clock()], None
    if recipe.ema:
        own.append(keras.callbacks.SwapEMAWeights())
    if recipe.patience is not None:
        rows = read_history(history)
        own.append(keep := KeepBest(checkpoint, f"val_{task.headline}", recipe.patience, rows))
    if first:
        own += [HistoryWriter(directory), checkpoint]
    if recipe.epochs and not (keep is not None and keep.ended(epochs)):
        verbose = verbose if first else 0
        own = [*own, *callbacks]
        record = fit(model, batches, data, recipe, own, epochs, validate=True, verbose=verbose)
        epochs = record.epoch[-1] + 1 if record.epoch else epochs
    if keep is None:
        return epochs, None
    keep.restore(model)
    return epochs, keep.best or epochs  # history.csv was deleted


def _save(model, data, recipe, directory, origin):
    """Saves the averaged weights in float32; returns what that model scores."""
    task, final = recipe.task, in_float32(model)
    card = {name: value for name, value in origin.items() if value is not None}
    card = {"data": task.describe_data(data)["data"], **card}
    # Plain SGD keeps no state, which would triple the size of the file.
    task.compile(final, final.optimizer)
    with atomic_write(directory / "model.keras") as temporary:
        final.save(temporary)
        task.write_card(temporary, final, data, card)
    metrics = _measure(task, final, data)
    if not math.isfinite(metrics["test_loss"]):
        raise DivergedError("the averaged weights give no finite loss. Lower the learning rate.")
    return metrics


def _measure(task, model, data):
    """Returns what a model scores on the test split, and its headline on the others."""
    splits = dict.fromkeys([*task.measured, task.validation_split(data)])
    found = {
        split: task.evaluate(model, data, split, EVALUATED_SAMPLES if split == "train" else -1)
        for split in splits
    }
    metrics = {f"{split}_{task.headline}": found[split][task.headline] for split in splits}
    return metrics | {f"test_{name}": value for name, value in found["test"].items()}


def _describe_history(directory, data, recipe, epochs):
    """Draws the curves of `history.csv`, and returns how fast the epochs were."""
    task = recipe.task
    history = read_history(directory / "history.csv")
    if not history:  # deleted
        return {}
    split = task.validation_split(data) + " (averaged weights)" * bool(recipe.ema)
    draw_curves(history, directory / "curves.png", task.headline, split)
    seconds = [float(row["seconds"]) for row in history]
    units = math.prod(recipe.count_batches(data)) * task.unit_size
    speed = {f"{task.unit}_per_second": round(units / max(statistics.median(seconds), 0.01), 1)}
    whole = {"seconds": round(sum(seconds), 1)} if len(history) == epochs else {}
    return {**whole, **speed}


def draw_curves(history, path, headline, split):
    """Draws a metric and the loss over epochs, for training and another split, as a PNG file."""
    from matplotlib.ticker import MaxNLocator

    epochs = [int(row["epoch"]) + 1 for row in history]
    figure, (both,) = plotting.figure((10, 4), columns=2)
    figure.suptitle(path.parent.name)
    for axes, name in zip(both, (headline, "loss"), strict=True):
        for key, label in ((name, "train"), (f"val_{name}", split)):
            values = [float(row[key]) for row in history]
            axes.plot(epochs, values, label=label, marker="." if len(epochs) < 40 else None)
        at = {"xytext": (0, 6), "textcoords": "offset points", "ha": "right"}
        axes.annotate(f"{values[-1]:.4g}", (epochs[-1], values[-1]), **at)
        axes.margins(y=0.08)  # room for the number
        axes.set(xlabel="epoch", ylabel=name.replace("_", " "))
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.grid(alpha=0.3)
        axes.legend()
    plotting.save(figure, path)
