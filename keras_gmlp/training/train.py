"""`train`: a run that can be killed, resumed and made again."""

import contextlib
import csv
import math
import re
import statistics
from pathlib import Path

import keras

from keras_gmlp.card import write_card
from keras_gmlp.data.batches import evaluation_batches, training_batches
from keras_gmlp.losses import Accuracy, CrossEntropy
from keras_gmlp.models.precision import in_float32
from keras_gmlp.training import curves
from keras_gmlp.training.allocator import keep_freed_memory
from keras_gmlp.training.callbacks import (
    Clock,
    DivergedError,
    ReseedDropout,
    RunCheckpoint,
    StopWhenDiverged,
)
from keras_gmlp.training.optimizers import freeze_backbone, make_optimizer
from keras_gmlp.training.run_directory import LOCK_TIMEOUT, WRITTEN, claim, clear, trim_history
from keras_gmlp.utils.errors import one_line_errors
from keras_gmlp.utils.files import (
    atomic_write,
    directory_lock,
    read_json,
    remove_leftovers,
    write_json,
)

TRAIN_SAMPLES = 10_000  # that the accuracy on training images is measured on, at most


def train(
    model, data, recipe, directory, *, restart=False, tensorboard=False, verbose="auto", extra=None
):
    """Trains a model and leaves everything about the run in a directory.

    A run that was killed goes on from its last finished epoch when it is started again with the
    same arguments, and ends as it would have ended; one that is complete is loaded. Afterwards the
    directory holds `model.keras` (averaged weights, float32), `labels.txt`, `recipe.json`
    (settings, data, versions, hardware), `history.csv` (one row an epoch), `metrics.json` and
    `curves.png`.

    Args:
        model: a `keras.Model` from images in [0, 255] to logits, built with
            `recipe.model_arguments()`. It holds the averaged weights in the end.
        data: an `ImageData` of the model's input shape and number of classes.
        recipe: a `Recipe`.
        directory: where to, made if need be.
        restart: train anew, even if the directory holds a run, which is overwritten.
        tensorboard: also write logs for TensorBoard, to `directory/tensorboard`.
        verbose: as in `model.fit`.
        extra: further entries for recipe.json, for example the preset's name.

    Returns:
        The metrics, a dict: accuracy of the saved model on the test images and on (up to 10,000)
        training images as they are, test loss, parameters, epochs, seconds, images per second.

    Raises:
        ValueError: the model does not fit the data, the directory holds a run with other
            settings, or another process is at work there.
        DivergedError: the loss became NaN or infinite.
    """
    import matplotlib.figure  # noqa: F401 (if it is missing, fail now and not after the last epoch)

    _check_fit(model, data)
    keep_freed_memory()
    directory = Path(directory)
    with directory_lock(directory, LOCK_TIMEOUT):
        if restart:
            clear(directory)
        return _train(model, data, recipe, directory, tensorboard, verbose, extra)


def _train(model, data, recipe, directory, tensorboard, verbose, extra):
    run = {"data": data.name, "image_shape": list(data.image_shape), "labels": list(data.labels)}
    claim(directory, {**(extra or {}), "model": model.name, **run}, recipe)
    remove_leftovers(directory, "|".join(map(re.escape, (*WRITTEN, "saved_model"))))
    if (directory / "metrics.json").exists():
        model.set_weights(keras.saving.load_model(directory / "model.keras").get_weights())
        return read_json(directory / "metrics.json")
    with atomic_write(directory / "labels.txt") as temporary:
        temporary.write_text("\n".join(data.labels) + "\n")

    batch_size = min(recipe.batch_size, int(data.train.cardinality()))
    steps = int(data.train.cardinality()) // batch_size
    if recipe.freeze:
        freeze_backbone(model)
    model.compile(
        optimizer=_scaled(make_optimizer(recipe, steps * recipe.epochs), recipe),
        loss=CrossEntropy(recipe.label_smoothing),
        metrics=[Accuracy()],
    )
    checkpoint = RunCheckpoint(directory / "checkpoint")
    initial_epoch = checkpoint.restore(model)
    trim_history(directory / "history.csv", initial_epoch)
    history = keras.callbacks.CSVLogger(directory / "history.csv", append=True)
    reseed = ReseedDropout(recipe.seed)
    callbacks = [Clock(), reseed, StopWhenDiverged(), history, checkpoint]
    if recipe.ema:
        callbacks.insert(0, keras.callbacks.SwapEMAWeights())
    if tensorboard:
        callbacks.append(keras.callbacks.TensorBoard(directory / "tensorboard"))
    test = evaluation_batches(data)
    train_batches = training_batches(
        data, batch_size, recipe.augmentation, recipe.seed, initial_epoch
    )
    try:
        with one_line_errors(), _quick_attention():
            model.fit(
                train_batches,
                epochs=recipe.epochs,
                initial_epoch=initial_epoch,
                validation_data=test,
                callbacks=callbacks,
                shuffle=False,  # the pipeline does
                verbose=verbose,
            )
    finally:
        if history.csv_file:  # Keras closes it at the end of training only
            history.csv_file.close()
    metrics = _finish(model, data, directory, steps * batch_size, bool(recipe.ema))
    write_json(directory / "metrics.json", metrics)  # last: it says that the run is complete
    checkpoint.remove()
    return metrics


def evaluate(model, data, split="test", samples=-1, verbose=0):
    """Loss and accuracy of a compiled model on a split, or its first samples, to six digits.

    Raises:
        ValueError: an image cannot be read. One line.
    """
    with one_line_errors():
        found = model.evaluate(
            evaluation_batches(data, split=split, samples=samples), verbose=verbose
        )
    return tuple(round(float(value), 6) for value in found)


def _quick_attention():
    """On a CPU, PyTorch's fused attention makes a ViT's step 1.3 to 2 times as long (backward)."""
    if keras.backend.backend() == "torch":
        import torch
        from torch.nn.attention import SDPBackend, sdpa_kernel

        if not torch.cuda.is_available():
            return sdpa_kernel(SDPBackend.MATH)
    return contextlib.nullcontext()


def _check_fit(model, data):
    if tuple(model.input_shape[1:]) != tuple(data.image_shape):
        raise ValueError(
            f"The model takes images of shape {model.input_shape[1:]}, {data.name} has "
            f"{data.image_shape}: build the model with input_shape={data.image_shape} or load the "
            f"data with image_size={tuple(model.input_shape[1:3])}."
        )
    if model.output_shape[-1] != len(data.labels):
        raise ValueError(
            f"The model tells {model.output_shape[-1]} classes apart, {data.name} has "
            f"{len(data.labels)}: build it with classes={len(data.labels)}."
        )


def _scaled(optimizer, recipe):
    """With loss scaling for float16; Keras looks at the model's policy, ours is in its layers."""
    if recipe.precision != "mixed_float16":
        return optimizer
    return keras.optimizers.LossScaleOptimizer(optimizer)


def _finish(model, data, directory, images, averaged):
    """Saves the averaged weights in float32, draws the curves and measures what was saved."""
    final = in_float32(model)
    with atomic_write(directory / "model.keras") as temporary:
        final.save(temporary)
        write_card(temporary, final, data.labels, {"data": data.name})
    loss, accuracy = evaluate(final, data)
    train_accuracy = evaluate(final, data, "train", TRAIN_SAMPLES)[1]
    if not math.isfinite(loss):
        raise DivergedError("the averaged weights give no finite loss. Lower the learning rate.")
    with open(directory / "history.csv", newline="") as file:
        history = list(csv.DictReader(file))
    curves.draw_curves(history, directory / "curves.png", directory.name, averaged)
    seconds = [float(row["seconds"]) for row in history]
    return {
        "test_accuracy": accuracy,
        "train_accuracy": train_accuracy,
        "test_loss": loss,
        "parameters": model.count_params(),
        "epochs": len(history),
        "seconds": round(sum(seconds), 1),
        # The median leaves out what the first epoch compiles and an epoch in which the machine had
        # other work. An epoch may take less than what its row can tell.
        "images_per_second": round(images / max(statistics.median(seconds), 0.01), 1),
    }
