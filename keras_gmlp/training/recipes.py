"""Recipes: every setting of a training run but the model and the data."""

import dataclasses

from keras_gmlp.data.augmentation import Augmentation

OPTIMIZERS = ("adamw", "muon", "sgd")

# Options of a run that its recipe.json tells and its model is built with; `None` for the model's.
PATCH_OPTIONS = ("patch_size", "patch_window")
PRECISIONS = ("float32", "mixed_bfloat16", "mixed_float16")


@dataclasses.dataclass(frozen=True)
class Recipe:
    """All settings of a training run but the model and the data.

    Attributes:
        epochs: passes over the training split.
        batch_size: samples in a step.
        optimizer: `"adamw"`; `"muon"` (kernels by Muon, but the first's and the last's; these
            and everything else by AdamW); or `"sgd"`, with a momentum of 0.9.
        learning_rate: at the end of the warm-up; a cosine takes it to 0.
        adam_ratio: of AdamW's learning rate to Muon's, for what Muon leaves to AdamW.
        warmup: share of the steps in which the learning rate grows linearly from 0.
        weight_decay: decoupled; norms, biases, class token and position embedding are spared.
        clip_norm: largest norm of the whole gradient.
        label_smoothing: see `CrossEntropy`.
        layer_decay: of the learning rate, from each layer to the one below it; see
            `LayerwiseAdamW`. 1 for none.
        freeze: train the head alone.
        ema: length of the exponential average of the weights, as a share of the run's steps; the
            averaged weights are those tested and saved. 0 for none. A ResNet's batch statistics
            stay those of the weights before averaging.
        precision: dtype policy the model is built in; the saved model is float32 always.
        stochastic_depth: see `image_classifier`; `None` leaves the preset's.
        augmentation: see `Augmentation`.
        seed: of the order of the data, the augmentation and the dropouts; `apps/train.py` draws
            the weights from it too.
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
    layer_decay: float = 1.0
    freeze: bool = False
    ema: float = 0.05
    precision: str = "float32"
    stochastic_depth: float | None = None
    augmentation: Augmentation = dataclasses.field(default_factory=Augmentation)
    seed: int = 0

    def __post_init__(self):
        for name in ("epochs", "batch_size", "seed"):
            if type(getattr(self, name)) is not int:
                raise ValueError(
                    f"{name} must be a whole number; received {getattr(self, name)!r}."
                )
        if not 0 <= self.seed < 2**32:
            raise ValueError(f"seed must be in [0, 2**32); received {self.seed}.")
        if self.precision not in PRECISIONS:
            raise ValueError(
                f"precision must be one of {', '.join(PRECISIONS)}; received {self.precision!r}."
            )
        if not self.learning_rate > 0:
            raise ValueError(f"learning_rate must be above 0; received {self.learning_rate}.")
        if self.optimizer not in OPTIMIZERS:
            raise ValueError(
                f"optimizer must be one of {', '.join(OPTIMIZERS)}; received {self.optimizer!r}."
            )
        if not 0 < self.layer_decay <= 1:
            raise ValueError(f"layer_decay must be in (0, 1]; received {self.layer_decay}.")
        if self.layer_decay < 1 and self.optimizer != "adamw":
            raise ValueError(f"layer_decay goes with adamw; received {self.optimizer!r}.")
        for name in ("epochs", "batch_size"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1; received {getattr(self, name)}.")
        for name in ("warmup", "label_smoothing", "ema", "stochastic_depth"):
            if not 0 <= (getattr(self, name) or 0) < 1:
                raise ValueError(f"{name} must be in [0, 1); received {getattr(self, name)}.")
        if not self.weight_decay >= 0:
            raise ValueError(f"weight_decay must not be below 0; received {self.weight_decay}.")
        for name in ("clip_norm", "adam_ratio"):
            if not getattr(self, name) > 0:
                raise ValueError(f"{name} must be above 0; received {getattr(self, name)}.")

    def model_arguments(self):
        """What the model must be built with for this recipe."""
        depth = {} if self.stochastic_depth is None else {"stochastic_depth": self.stochastic_depth}
        return {"dtype": self.precision, **depth}


RECIPES = {
    # A first look, or small data. In so few epochs Muon gets further than AdamW.
    "quick": Recipe(
        epochs=12,
        optimizer="muon",
        learning_rate=7e-3,
        weight_decay=0.1,
        precision="mixed_bfloat16",
    ),
    # A nano model in about three hours on one core. With crop and flip alone it would learn the
    # training images by heart: 16 epochs of CIFAR-10 gave 90.8 % on them and 81.0 % on the others.
    # RandAugment and cutout as well leave it behind in so few epochs: ten of them and three of crop
    # and flip, with the learning rate going to 0, gave 77.2 %, less than crop and flip alone.
    "standard": Recipe(
        epochs=36,
        optimizer="muon",
        learning_rate=7e-3,
        weight_decay=0.1,
        precision="mixed_bfloat16",
        augmentation=Augmentation(mixup=0.2, cutmix=0.5),
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
    # From trained weights, to other classes or another size of image.
    "finetune": Recipe(
        epochs=12,
        batch_size=64,
        learning_rate=1e-3,
        weight_decay=0.05,
        precision="mixed_bfloat16",
    ),
    # To larger images of what the weights know, as ViT (appendix B.1.1) and MLP-Mixer do it: SGD,
    # no decay, no smoothing. Of their rates, 0.003 to 0.06 for batches of 512, one between.
    "resolution": Recipe(
        epochs=8,
        optimizer="sgd",
        learning_rate=0.01,
        weight_decay=0.0,
        label_smoothing=0.0,
        precision="mixed_bfloat16",
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

# What runs had whose recipe.json does not name it yet.
UNNAMED = dict.fromkeys(PATCH_OPTIONS)


def differences(before, settings):
    """Where the settings of a run that is there are not those asked for, as phrases."""
    before = {**UNNAMED, **before}
    return [
        f"{name} {before[name]!r} there, {value!r} here"
        for name, value in settings.items()
        if name in before and before[name] != value
    ]


def describe(settings):
    """The name of a run's recipe and, with their values, the settings that are not the recipe's.

    Args:
        settings: a run's recipe.json, a dict; epochs and seed are left out.
    """
    name = settings.get("recipe", "")
    if name not in RECIPES:
        return name
    usual, found = _flat(dataclasses.asdict(RECIPES[name])), _flat(settings)
    changed = [key for key in usual if key in found and found[key] != usual[key]]
    return ", ".join([name, *(f"{k}={found[k]}" for k in changed if k not in ("epochs", "seed"))])


def _flat(settings):
    return {**settings, **settings.get("augmentation", {}), "augmentation": None}
