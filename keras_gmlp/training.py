"""Recipes, and `train`: a run that can be killed, resumed and made again."""

import csv
import dataclasses
import io
import math
import os
import platform
import time
from importlib import metadata
from pathlib import Path

import keras
import numpy as np

from keras_gmlp import visualization
from keras_gmlp.data import Augmentation, evaluation_batches, training_batches
from keras_gmlp.files import read_json, replacing, write_json
from keras_gmlp.objective import Accuracy, CrossEntropy

NO_DECAY = ["bias", "gamma", "beta", "token", "embedding"]  # weights that decay would only shift


@dataclasses.dataclass(frozen=True)
class Recipe:
    """All settings of a training run but the model and the data.

    Attributes:
        epochs: passes over the training split.
        batch_size: samples in a step.
        optimizer: `"adamw"`, or `"muon"` (matrices by Muon, everything else by AdamW).
        learning_rate: at the end of the warm-up; a cosine takes it to 0.
        adam_ratio: of AdamW's learning rate to Muon's, for what Muon leaves to AdamW.
        warmup: share of the steps in which the learning rate grows linearly from 0.
        weight_decay: decoupled; norms, biases, class token and position embedding are spared.
        clip_norm: largest norm of the whole gradient.
        label_smoothing: see `CrossEntropy`.
        ema: length of the exponential average of the weights, as a share of the run's steps; the
            averaged weights are those tested and saved. 0 for none.
        precision: dtype policy the model is built in; the saved model is float32 always.
        stochastic_depth: see `image_classifier`; `None` leaves the preset's.
        augmentation: see `Augmentation`.
        seed: of the weights, the order of the data, the augmentation and the dropouts.
    """

    epochs: int = 20
    batch_size: int = 128
    optimizer: str = "adamw"
    learning_rate: float = 2e-3
    adam_ratio: float = 0.3
    warmup: float = 0.1
    weight_decay: float = 0.05
    clip_norm: float = 1.0
    label_smoothing: float = 0.1
    ema: float = 0.05
    precision: str = "float32"
    stochastic_depth: float | None = None
    augmentation: Augmentation = dataclasses.field(default_factory=Augmentation)
    seed: int = 0

    def __post_init__(self):
        if self.optimizer not in ("adamw", "muon"):
            raise ValueError(f"optimizer must be 'adamw' or 'muon'; received {self.optimizer!r}.")
        for name in ("epochs", "batch_size"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1; received {getattr(self, name)}.")
        for name in ("warmup", "label_smoothing", "ema"):
            if not 0 <= getattr(self, name) < 1:
                raise ValueError(f"{name} must be in [0, 1); received {getattr(self, name)}.")

    def model_arguments(self):
        """What the model must be built with for this recipe."""
        depth = {} if self.stochastic_depth is None else {"stochastic_depth": self.stochastic_depth}
        return {"dtype": self.precision, **depth}


RECIPES = {
    # A nano model in about two hours on one core. In 4 epochs of CIFAR-10 a gMLP of this size
    # reached 74.0 % under Muon and 68.8 % under AdamW (2e-3, decay 0.05). With crop and flip alone
    # it stops at 81.0 % after 16 epochs, at 90.8 % on the training images.
    "quick": Recipe(
        epochs=30,
        optimizer="muon",
        learning_rate=7e-3,
        weight_decay=0.1,
        precision="mixed_bfloat16",
        augmentation=Augmentation(rand_augment=0.4, cutout=0.25, mixup=0.2, cutmix=0.3),
    ),
    # Many epochs under strong augmentation, for a GPU.
    "long": Recipe(
        epochs=300,
        batch_size=256,
        learning_rate=1e-3,
        warmup=0.05,
        ema=0.02,
        precision="mixed_bfloat16",
        stochastic_depth=0.1,
        augmentation=Augmentation(rand_augment=0.4, cutout=0.4, mixup=0.4, cutmix=0.4),
    ),
    # "Pay Attention to MLPs", appendix A: ImageNet. 10,000 of 93,600 steps are warm-up.
    "imagenet": Recipe(
        epochs=300,
        batch_size=4096,
        learning_rate=1e-3,
        warmup=0.107,
        ema=0.05,
        precision="mixed_bfloat16",
        augmentation=Augmentation(rand_augment=0.5, mixup=0.5, cutmix=0.5),
    ),
}


class DivergedError(RuntimeError):
    """The loss is no number any more."""


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
        The metrics, a dict: test accuracy and loss of the saved model, parameters, seconds.

    Raises:
        ValueError: the model does not fit the data, or the directory holds a run with other
            settings.
        DivergedError: the loss became NaN or infinite.
    """
    _check_fit(model, data)
    directory = Path(directory)
    directory.mkdir(parents=True, exist_ok=True)
    if restart:
        _clear(directory)
    _claim(directory, {**(extra or {}), "data": data.name, "model": model.name}, recipe)
    if (directory / "metrics.json").exists():
        model.set_weights(keras.saving.load_model(directory / "model.keras").get_weights())
        return read_json(directory / "metrics.json")
    with replacing(directory / "labels.txt") as temporary:
        temporary.write_text("\n".join(data.labels) + "\n")

    batch_size = min(recipe.batch_size, int(data.train.cardinality()))
    steps = int(data.train.cardinality()) // batch_size
    model.compile(
        optimizer=make_optimizer(recipe, steps * recipe.epochs),
        loss=CrossEntropy(recipe.label_smoothing),
        metrics=[Accuracy()],
    )
    checkpoint = Checkpoint(directory / "checkpoint")
    initial_epoch = checkpoint.restore(model)
    _trim_history(directory / "history.csv", initial_epoch)
    history = keras.callbacks.CSVLogger(directory / "history.csv", append=True)
    reseed = _ReseedDropout(recipe.seed)
    callbacks = [_Clock(), reseed, _StopWhenDiverged(), history, checkpoint]
    if recipe.ema:
        callbacks.insert(0, keras.callbacks.SwapEMAWeights())
    if tensorboard:
        callbacks.append(keras.callbacks.TensorBoard(directory / "tensorboard"))
    test = evaluation_batches(data)
    try:
        model.fit(
            training_batches(data, batch_size, recipe.augmentation, recipe.seed, initial_epoch),
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
    metrics = _finish(model, test, directory)
    checkpoint.remove()
    return metrics


def make_optimizer(recipe, total_steps):
    """The recipe's optimizer: warm-up and cosine, decay that spares norms and biases, averaging."""
    warmup_steps = max(1, round(recipe.warmup * total_steps))
    schedule = keras.optimizers.schedules.CosineDecay(
        0.0,
        max(1, total_steps - warmup_steps),
        warmup_target=recipe.learning_rate,
        warmup_steps=warmup_steps,
    )
    common = {
        "learning_rate": schedule,
        "weight_decay": recipe.weight_decay,
        "global_clipnorm": recipe.clip_norm,
        "use_ema": recipe.ema > 0,
        "ema_momentum": 1 - 1 / max(1.0, recipe.ema * total_steps),
    }
    if recipe.optimizer == "muon":
        optimizer = keras.optimizers.Muon(
            exclude_layers=["head"],
            adam_lr_ratio=recipe.adam_ratio,
            adam_weight_decay=recipe.weight_decay,
            **common,
        )
    else:
        optimizer = keras.optimizers.AdamW(epsilon=1e-6, **common)
    optimizer.exclude_from_weight_decay(var_names=NO_DECAY)
    return optimizer


def in_float32(model):
    """The same model with every layer in float32, compiled for evaluation.

    bfloat16 graphs do not convert to TFLite, and a saved model should load anywhere. Plain SGD
    keeps no state, which would triple the file; to train further, compile with another optimizer.
    """
    config = model.to_json()
    for policy in ("mixed_bfloat16", "mixed_float16"):
        config = config.replace(f'"{policy}"', '"float32"')
    clone = keras.models.model_from_json(config)
    clone.set_weights(model.get_weights())
    clone.compile("sgd", loss=CrossEntropy(), metrics=[Accuracy()])
    return clone


class Checkpoint(keras.callbacks.Callback):
    """Weights and optimizer after each epoch, in one file whose name holds the epochs done.

    Keras' BackupAndRestore writes weights and epoch to two files, so that a kill between them
    trains an epoch twice; here a rename makes both appear at once.
    """

    def __init__(self, directory):
        super().__init__()
        self.directory = Path(directory)

    def on_epoch_end(self, epoch, logs=None):
        older = self._files()
        with replacing(self.directory / f"{epoch + 1:06d}.weights.h5") as temporary:
            self.model.save_weights(temporary)
        for path in older:
            path.unlink(missing_ok=True)

    def restore(self, model):
        """Loads the newest checkpoint, if there is one; returns the number of epochs done."""
        files = self._files()
        if not files:
            return 0
        model.optimizer.build(model.trainable_variables)
        model.load_weights(files[-1])
        return int(files[-1].name.split(".")[0])

    def remove(self):
        """Deletes the checkpoints of a run that is complete."""
        for path in self._files():
            path.unlink()
        if self.directory.exists():
            self.directory.rmdir()

    def _files(self):
        return sorted(self.directory.glob("[0-9]*.weights.h5"))


class _Clock(keras.callbacks.Callback):
    """Adds the epoch's duration to its row of the history."""

    def on_epoch_begin(self, epoch, logs=None):
        self.began = time.perf_counter()

    def on_epoch_end(self, epoch, logs=None):
        logs["seconds"] = round(time.perf_counter() - self.began, 2)


class _ReseedDropout(keras.callbacks.Callback):
    """Starts each epoch's random drops afresh: weight files do not hold how far they had come."""

    def __init__(self, seed):
        super().__init__()
        self.seed = seed

    def on_epoch_begin(self, epoch, logs=None):
        states = [v for v in self.model.variables if v.name == "seed_generator_state"]
        for i, state in enumerate(states):
            # Keras counts draws in the second number; no epoch has a million.
            state.assign(np.array([self.seed * 10_007 + i, epoch * 2**20], dtype="uint32"))


class _StopWhenDiverged(keras.callbacks.Callback):
    """Keras' TerminateOnNaN ends the epoch as if it were whole, and the weights would be kept."""

    def on_epoch_begin(self, epoch, logs=None):
        self.epoch = epoch

    def on_train_batch_end(self, batch, logs=None):
        if not math.isfinite(float((logs or {}).get("loss", 0.0))):
            raise DivergedError(
                f"the loss became {float(logs['loss'])} in epoch {self.epoch + 1}, step "
                f"{batch + 1}. Lower the learning rate, train in float32, or clip harder, in a "
                "new directory."
            )


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


def _claim(directory, run, recipe):
    """Writes recipe.json, or checks that the run it describes is this one."""
    path = directory / "recipe.json"
    settings = {**run, **dataclasses.asdict(recipe)}
    before = read_json(path)
    if before is None:
        write_json(path, {**settings, "environment": environment()})
        return
    differing = [
        f"{name} {before.get(name)!r} there, {value!r} here"
        for name, value in settings.items()
        if before.get(name) != value
    ]
    if differing:
        raise ValueError(
            f"{directory} holds a run with other settings ({'; '.join(differing)}). Give the same "
            "settings to go on with it, or another directory."
        )


def _clear(directory):
    """Deletes what would be taken for a run in progress or complete."""
    for name in ("recipe.json", "metrics.json", "history.csv"):
        (directory / name).unlink(missing_ok=True)
    Checkpoint(directory / "checkpoint").remove()


def _trim_history(path, epochs):
    """Drops the rows of epochs that are not in the checkpoint and will be trained again."""
    if not path.exists():
        return
    rows = list(csv.reader(io.StringIO(path.read_text())))
    kept = [r for r in rows[1:] if len(r) == len(rows[0]) and int(r[0]) < epochs]
    with replacing(path) as temporary, temporary.open("w", newline="") as file:
        csv.writer(file).writerows([rows[0], *kept] if kept else [])


def _finish(model, test, directory):
    """Saves the averaged weights in float32 and measures what was saved."""
    final = in_float32(model)
    with replacing(directory / "model.keras") as temporary:
        final.save(temporary)
    loss, accuracy = final.evaluate(test, verbose=0)
    with open(directory / "history.csv", newline="") as file:
        history = list(csv.DictReader(file))
    metrics = {
        "test_accuracy": round(float(accuracy), 6),
        "test_loss": round(float(loss), 6),
        "parameters": model.count_params(),
        "epochs": len(history),
        "seconds": round(sum(float(row["seconds"]) for row in history), 1),
    }
    visualization.draw_curves(history, directory / "curves.png", title=directory.name)
    write_json(directory / "metrics.json", metrics)  # last: it says that the run is complete
    return metrics


def environment():
    """Versions and hardware, for the record."""
    packages = ("keras-gmlp", "keras", "tensorflow-cpu", "tensorflow", "jax", "torch", "keras-cv")
    versions = {}
    for name in packages:
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return {
        "backend": keras.backend.backend(),
        "devices": _devices(),
        "processor": _processor(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "versions": versions,
    }


def _devices():
    backend = keras.backend.backend()
    if backend == "jax":
        import jax

        return [device.device_kind for device in jax.devices()]
    if backend == "torch":
        import torch

        return [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())] or ["cpu"]
    import tensorflow as tf

    return [device.name for device in tf.config.list_physical_devices()]


def _processor():
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()
