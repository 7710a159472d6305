"""Recipes: the settings of a training run, apart from the model and the data."""

import dataclasses
import math
from typing import Any

from keras_gmlp.data.batches.augmentation import Augmentation
from keras_gmlp.tasks.image_classification import ImageClassification
from keras_gmlp.tasks.registry import find_task
from keras_gmlp.tasks.task import Task
from keras_gmlp.utils.errors import check_ranges, require_one_of

AUTO = "auto"  # a run records what it chose

CHOICES = {
    "precision": ("float32", "mixed_bfloat16", "mixed_float16"),
    "optimizer": ("adamw", "muon", "sgd"),
    "pipeline": ("auto", "device", "host"),
}
POSITIVE = (lambda value: 0 < value < math.inf, "above 0 and finite")
SHARE = (lambda value: 0 <= value < 1, "in [0, 1)")
RANGES = {
    "epochs": (lambda value: value >= 0, "at least 0"),
    **dict.fromkeys(("batch_size", "patience"), (lambda value: value >= 1, "at least 1")),
    **dict.fromkeys(("learning_rate", "clip_norm", "adam_ratio"), POSITIVE),
    **dict.fromkeys(("warmup", "ema", "stochastic_depth"), SHARE),
    "layer_decay": (lambda value: 0 < value <= 1, "in (0, 1]"),
    "weight_decay": (lambda value: 0 <= value < math.inf, "at least 0 and finite"),
    "seed": (lambda value: 0 <= value < 2**32, "in [0, 2**32)"),
}


@dataclasses.dataclass(frozen=True)
class Recipe:
    """How a model is optimized, and the settings of the task it is optimized for.

    Attributes:
        epochs: Number of epochs, of `samples_per_epoch` of the task each; 0 saves the head that
            `fit_head` of the task fits.
        batch_size: Samples per step.
        optimizer: `"adamw"`; `"muon"`, which uses Muon for all kernels except the first and the
            last and AdamW for all other weights; or `"sgd"`, with a momentum of 0.9.
        learning_rate: Learning rate at the end of the warm-up. It then decays to 0 on a cosine.
        adam_ratio: Learning rate of AdamW relative to Muon's, for the weights Muon excludes.
        warmup: Share of the steps in which the learning rate grows linearly from 0, in [0, 1).
        weight_decay: Decoupled weight decay of kernels and of the table of words. Norms, biases,
            class token, position embedding and biases of distances do not decay.
        clip_norm: Largest global norm of the gradient.
        layer_decay: Factor of the learning rate from each layer to the one below it, in (0, 1];
            see `LayerwiseAdamW`. 1 for equal rates.
        freeze: Whether to train only the head.
        ema: Length of the exponential moving average of the weights, as a share of the run's
            steps, in [0, 1). The averaged weights are tested and saved. 0 for none. Batch
            statistics of norms are not averaged.
        patience: Epochs without a better validation metric after which the run ends; the weights of
            the best epoch are saved. Requires validation images. `None` to train all epochs and
            save the last.
        precision: Dtype policy of the model while it trains. The saved model is float32. `train`
            takes it from the recipe; the programs and `finetune` measure which one is faster.
        stochastic_depth: See `image_classifier`; `None` for the preset's.
        pipeline: Where the training data stay and change: `"device"`, on the accelerator, with all
            steps between two callbacks compiled as one (JAX, data that fit in memory); `"host"`, in
            a tf.data pipeline; or `"auto"`: the device if it is possible and not a CPU. The two
            draw other random numbers.
        task: Settings of the task, for example
            `ImageClassification(augmentation=Augmentation(mixup=0.2))`.
        seed: Seed for the order of the data, augmentation and dropout. `keras_gmlp.runs` also
            draws the initial weights from it.
    """

    epochs: int = 20
    batch_size: int = 128
    optimizer: str = "adamw"
    learning_rate: float = 2e-3
    adam_ratio: float = 0.3
    warmup: float = 0.1
    weight_decay: float = 0.05
    clip_norm: float = 1.0
    layer_decay: float = 1.0
    freeze: bool = False
    ema: float = 0.05
    patience: int | None = None
    precision: str = "float32"
    stochastic_depth: float | None = None
    pipeline: str = "auto"
    task: Task = dataclasses.field(default_factory=ImageClassification)
    seed: int = 0

    def __post_init__(self):
        check_ranges(self, RANGES)
        if self.epochs == 0 and not getattr(self.task, "fit_head", 0):
            raise ValueError("epochs must be at least 1 without a head to fit; received 0.")
        for name, choices in CHOICES.items():
            require_one_of(name, getattr(self, name), choices)
        if self.layer_decay < 1 and self.optimizer != "adamw":
            raise ValueError(
                f"layer_decay requires optimizer='adamw'; received {self.optimizer!r}."
            )
        names = [{field.name for field in dataclasses.fields(part)} for part in (self, self.task)]
        if shared := set.intersection(*names):  # recipe.json holds both on one level
            raise ValueError(
                f"Settings of a task must differ from those of a recipe; received {sorted(shared)}."
            )

    def model_arguments(self) -> dict:
        """Returns the arguments that the model must be built with, a dict."""
        depth = {} if self.stochastic_depth is None else {"stochastic_depth": self.stochastic_depth}
        return {"dtype": self.precision, **depth}

    def count_batches(self, data: Any) -> tuple[int, int]:
        """Returns how many samples a batch has, and how many batches an epoch."""
        samples = self.task.samples_per_epoch(data)
        batch_size = min(self.batch_size, samples)
        return batch_size, samples // batch_size

    def settings(self) -> dict:
        """Returns all settings for `recipe.json`, a dict; those of the task are not nested."""
        names = [field.name for field in dataclasses.fields(self) if field.name != "task"]
        return {name: getattr(self, name) for name in names} | self.task.settings()


FAST = {"optimizer": "muon", "learning_rate": 7e-3, "weight_decay": 0.1}
FAST |= {"precision": "mixed_bfloat16"}

RECIPES = {
    # A first look, or small data. In few epochs Muon gets further than AdamW.
    "quick": Recipe(epochs=12, **FAST),
    # A nano model in about three hours on one core. With only crop and flip it overfits: 16 epochs
    # of CIFAR-10 gave 90.8 % on the training images and 81.0 % on the test images. RandAugment and
    # cutout slow it down too much: ten epochs with them and three of crop and flip, with the
    # learning rate going to 0, gave 77.2 %, less than only crop and flip.
    "standard": Recipe(
        epochs=36,
        **FAST,
        task=ImageClassification(augmentation=Augmentation(mixup=0.2, cutmix=0.5)),
    ),
    # Many epochs under strong augmentation, for a GPU, as Compact Transformers trains
    # (https://arxiv.org/abs/2104.05704): always MixUp or CutMix, but not in the last epochs.
    "long": Recipe(
        epochs=300,
        batch_size=512,
        learning_rate=2e-3,
        warmup=0.05,
        weight_decay=0.06,
        ema=0.02,
        precision="mixed_bfloat16",
        stochastic_depth=0.1,
        task=ImageClassification(
            augmentation=Augmentation(
                rand_augment=0.4, erasing=0.25, mixup=0.4, cutmix=0.6, mix_until=0.7
            )
        ),
    ),
    # From trained weights to other classes or another image size.
    "finetune": Recipe(
        epochs=12, batch_size=64, learning_rate=1e-3, weight_decay=0.05, precision="mixed_bfloat16"
    ),
    # From trained weights to larger images of the same classes, as ViT (appendix B.1.1) and
    # MLP-Mixer do it: SGD, no decay, no smoothing. Their rates: 0.003 to 0.06 for batches of 512.
    "resolution": Recipe(
        epochs=8,
        optimizer="sgd",
        learning_rate=0.01,
        weight_decay=0.0,
        precision="mixed_bfloat16",
        task=ImageClassification(label_smoothing=0.0),
    ),
    # "Pay Attention to MLPs", appendix A: ImageNet. The warm-up takes 10,000 of 93,600 steps.
    "imagenet": Recipe(
        epochs=300,
        batch_size=4096,
        learning_rate=1e-3,
        warmup=0.107,
        ema=0.05,
        precision="mixed_bfloat16",
        task=ImageClassification(
            augmentation=Augmentation(
                resized_crop=(0.08, 1.0), rand_augment=0.5, mixup=0.5, cutmix=0.5
            )
        ),
    ),
    # A convolutional network in few epochs, as airbench94 trains (https://arxiv.org/abs/2404.00498).
    "airbench": Recipe(
        epochs=16,
        batch_size=1000,
        optimizer="muon",
        learning_rate=0.03,
        weight_decay=0.1,
        ema=0.0,
        precision="mixed_bfloat16",
        task=ImageClassification(
            label_smoothing=0.2, augmentation=Augmentation(crop=0.0625, alternating_flip=True)
        ),
    ),
}


def find_recipe(name, task=None):
    """Returns the recipe of that name for a task; `None` is image classification."""
    task = find_task(task)
    recipes = RECIPES if task.domain == "images" else task.recipes()
    require_one_of("recipe", name, recipes)
    return RECIPES[name] if task.domain == "images" else Recipe(**recipes[name])


def setting_names(settings):
    """Returns the names of all settings in a recipe, its task and the task's parts, a set."""
    names = set()
    for field in dataclasses.fields(settings):
        value = getattr(settings, field.name)
        names |= setting_names(value) if dataclasses.is_dataclass(value) else {field.name}
    return names


def override(settings, changes):
    """Returns a recipe with some settings changed, wherever they belong."""
    for name in changes:
        require_one_of("a setting of the recipe", name, sorted(setting_names(settings)))
    values = {}
    for field in dataclasses.fields(settings):
        value = getattr(settings, field.name)
        if dataclasses.is_dataclass(value):
            own = setting_names(value).intersection(changes)
            values[field.name] = override(value, {name: changes[name] for name in own})
        elif field.name in changes:
            values[field.name] = changes[field.name]
    return dataclasses.replace(settings, **values)


def differences(recorded, settings):
    """Returns a phrase for each setting that differs from a run's `recipe.json`."""
    images = {"task": ImageClassification.name}  # which do not name their task
    recorded, settings = (
        {**images, **each, **(each.get("augmentation") or {})} for each in (recorded, settings)
    )
    compared = recorded.keys() - {"command", "augmentation"}
    return [
        f"{name} {recorded[name]!r} there, {value!r} here"
        for name, value in settings.items()
        if name in compared
        and value != AUTO
        # Older runs recorded 0 for none.
        and (value or None) != (recorded[name] or None)
    ]
