"""`RunSettings`: the preset, weights, data and recipe that a run is made from."""

import dataclasses
import functools
import json
import os
from pathlib import Path

from keras_gmlp.data.dividing import find_groups
from keras_gmlp.data.images.fits import require_fit
from keras_gmlp.data.images.table import name_folder
from keras_gmlp.data.validation import PARTS
from keras_gmlp.models.presets import lookup
from keras_gmlp.training.recipes import find_recipe
from keras_gmlp.training.settings import OPTIONS, override
from keras_gmlp.utils.errors import shortened
from keras_gmlp.utils.files import require_output
from keras_gmlp.utils.shipped import DEFAULT_BACKBONE, find_shipped, list_shipped
from keras_gmlp.weights.files import short_name

# Arguments of a model, of images or of text, that follow from other settings.
TAKEN_BY = {
    "input_shape": "the data's image size",
    "classes": "the data",
    "vocabulary_size": "the tokenizer",
    "separator": "the tokenizer",
    "dtype": "the recipe's precision",
    "stochastic_depth": "the recipe",
    "patch_size": "the option patch_size of images",
    "patch_window": "the option patch_window of images",
    "name": "the preset",
}

# Fields that an option of the programs spells in another way.
SPELLED = {"preset": "model", "name": "data", "overrides": "set_model"}
SPELLED |= {"held_out": "hold_out", "directory": "out"}

PLACE = "a name or a path, a string"  # what data must be
SHOWN = ("preset", "name", "data", "recipe", "directory")  # fields that a command always names
OWN = (*OPTIONS, "freeze", "teacher")  # settings of a recipe that have an option of their own


def require_backbone():
    """Returns the name of the included backbone for a user's own images."""
    if DEFAULT_BACKBONE not in list_shipped():
        raise ValueError(
            f"images of your own start from {DEFAULT_BACKBONE}, which is not in this installation: "
            "included models come with a clone of the repository. Clone it and run pip install "
            "-e . in it, or give other weights; --weights none trains from scratch."
        )
    return DEFAULT_BACKBONE


class Settings:
    """What a run is made from; a subclass is a frozen dataclass with recipe, changes, directory."""

    program = None  # that trains such runs
    task = None  # name of the task, which decides what a recipe's name means
    spelled = SPELLED

    def __post_init__(self):
        require(dict, "a dict", changes=self.changes)

    @functools.cached_property
    def _recipe(self):
        return override(find_recipe(self.recipe, self.task), self.changes)

    def make_recipe(self):
        """Returns the `Recipe`: the named one with the changes.

        Raises:
            ValueError: If there is no such recipe or setting, or a value is out of its range.
        """
        return self._recipe

    def with_changes(self, **changes):
        """Returns these settings with more changes of the recipe."""
        return dataclasses.replace(self, changes={**self.changes, **changes})

    def command(self):
        """Returns the options that repeat the run, a dict for `recipe.json`."""
        own = {name: self.changes.get(name) for name in OWN}
        own = {n: v for n, v in own.items() if v is not None and (n != "freeze" or v is True)}
        rest = {name: value for name, value in self.changes.items() if name not in own}
        return {"program": self.program, **list_options(self), **own, "set": rest}

    @classmethod
    def from_command(cls, options):
        """Returns the settings that options of the program describe, a dict."""
        changes = {name: options[name] for name in OWN if options.get(name) is not None}
        return read_options(cls, {**options, "changes": changes | (options.get("set") or {})})

    def to_json(self):
        """Returns the settings as a line of JSON; see `run.restore_settings`."""
        return json.dumps(self.command())

    def require_other_place(self, *weights):
        """Raises a `ValueError` if the folder of the run is where its weights are."""
        if os.path.realpath(self.directory) in map(os.path.realpath, weights):
            raise ValueError(
                f"{self.directory} is where the weights are; choose another directory."
            )


def list_options(settings):
    """Returns the fields that are set, and those of parts, by the names of the options."""
    found = {}
    for field in dataclasses.fields(settings):
        name, value = field.name, getattr(settings, field.name)
        if dataclasses.is_dataclass(value):
            found |= list_options(value)
        elif name in SHOWN or (name != "changes" and value not in (field.default, {})):
            found[getattr(settings, "spelled", SPELLED).get(name, name)] = value
    return found


def read_options(kind, options):
    """Returns settings, or a part of them, from the options of a program."""
    values, spelled = {}, getattr(kind, "spelled", SPELLED)
    for field in dataclasses.fields(kind):
        option = spelled.get(field.name, field.name)
        if dataclasses.is_dataclass(field.type):
            values[field.name] = read_options(field.type, options)
        elif options.get(option) is not None:
            values[field.name] = options[option]
    return kind(**values)


@dataclasses.dataclass(frozen=True)
class ModelSettings:
    """Which model to train.

    Attributes:
        preset: Key of `keras_gmlp.PRESETS`; `None` for the weights' own, or `"gmlp_n4_32"`.
        weights: Weights to start from, as in `keras_gmlp.build`; `None` for random ones.
        patch_size: Side of a patch in pixels; `None` for the preset's or the weights'.
        patch_window: Side in pixels of the window that a token is computed from; `None` for the
            patch.
        overrides: Further arguments of the model that replace the preset's, a dict such as
            `{"stem": "convolutions", "depth": 4}`.
    """

    preset: str | None = None
    weights: str | None = None
    patch_size: int | None = None
    patch_window: int | None = None
    overrides: dict = dataclasses.field(default_factory=dict)

    def __post_init__(self):
        for name, value in self.patches().items():
            if value < 1:
                raise ValueError(f"{name} must be at least 1; received {value}.")
        if self.preset is None and self.weights is None:
            object.__setattr__(self, "preset", "gmlp_n4_32")
        check_overrides(self.overrides)

    def patches(self):
        """Returns `patch_size` and `patch_window`, a dict of those that are set."""
        patches = {"patch_size": self.patch_size, "patch_window": self.patch_window}
        return {name: value for name, value in patches.items() if value is not None}


@dataclasses.dataclass(frozen=True)
class DataSettings:
    """Which data to train on.

    Attributes:
        name: As in `keras_gmlp.data.load`.
        image_size: Side of the images in pixels, or `(height, width)`; `None` for the model's.
        fraction: Share of the training samples, in (0, 1].
        data_dir: Folder of TensorFlow Datasets; `None` for its own.
        validation: Share of these training samples that is held out for validation, in (0, 1);
            `None` for none.
        groups: Regular expression that finds the group of an image in its path; see `data.load`.
        folds: Number of folds of these training samples, for cross-validation; `None` for none.
        fold: Number of the fold, from 1, that is tested in place of the test samples.
        fit: How images of another aspect ratio become the model's, as in `data.load`; `None` for
            that of the weights or of a packed set, else `"crop"`.
    """

    name: str = "digits"
    image_size: int | tuple[int, int] | None = None
    fraction: float = 1.0
    data_dir: str | None = None
    validation: float | None = None
    groups: str | None = None
    folds: int | None = None
    fold: int | None = None
    fit: str | None = None

    def __post_init__(self):
        require(str, PLACE, data=self.name)
        if self.validation is not None and not 0 < self.validation < 1:
            raise ValueError(f"validation must be between 0 and 1; received {self.validation}.")
        given = (self.folds, self.fold) != (None, None)
        if given and not 1 <= (self.fold or 0) <= (self.folds or 0):
            raise ValueError(
                f"fold must be from 1 to folds; received fold {self.fold} of folds {self.folds}."
            )
        if self.groups is not None:
            find_groups((), self.groups)
        if isinstance(self.image_size, list):  # from JSON
            object.__setattr__(self, "image_size", tuple(self.image_size))
        if self.size is not None and len(self.size) != 2:
            raise ValueError(
                f"image_size must be a side, or a height and a width; received {self.size}."
            )
        if self.size is not None and min(self.size) < 1:
            raise ValueError(f"image_size must be at least 1; received {self.image_size}.")
        if self.fit is not None:
            require_fit(self.fit)
        if not 0 < self.fraction <= 1:
            raise ValueError(f"fraction must be in (0, 1]; received {self.fraction}.")

    @property
    def size(self):
        """`(height, width)` of `image_size`, or `None`."""
        if self.image_size is None or isinstance(self.image_size, tuple):
            return self.image_size
        return self.image_size, self.image_size


def require(kind, expected, **settings):
    """Raises a `ValueError` if the value of a setting has another type."""
    for name, value in settings.items():
        if not isinstance(value, kind):
            found = shortened(repr(value), 60)
            raise ValueError(f"{name} must be {expected}; received {found}.")


def check_overrides(overrides):
    """Raises a `ValueError` if an argument of the model follows from other settings."""
    require(dict, "a dict", overrides=overrides)
    if taken := sorted(set(overrides) & set(TAKEN_BY)):
        raise ValueError(f"{taken[0]} is no override: {TAKEN_BY[taken[0]]} sets it.")


@dataclasses.dataclass(frozen=True)
class RunSettings(Settings):
    """Everything a training run is made from.

    Attributes:
        model: `ModelSettings`, or a preset's name.
        data: `DataSettings`, or a data set's name.
        recipe: Name of a recipe; `None` for `"finetune"` with weights and `"quick"` without.
        changes: Settings of the recipe that differ, a dict such as `{"epochs": 3, "mixup": 0.2}`.
        directory: Folder of the run; `None` for `runs/MODEL-DATA`.
    """

    model: ModelSettings = ModelSettings()
    data: DataSettings = DataSettings()
    recipe: str | None = None
    changes: dict = dataclasses.field(default_factory=dict)
    directory: str | None = None

    program = "train"

    def __post_init__(self):
        super().__post_init__()
        for name, kind in (("model", ModelSettings), ("data", DataSettings)):
            if isinstance(given := getattr(self, name), str):
                object.__setattr__(self, name, kind(given))
            else:
                require(kind, f"a name or {kind.__name__}", **{name: given})
        if self.recipe is None:
            object.__setattr__(self, "recipe", "finetune" if self.model.weights else "quick")
        if self.directory is None:
            weights, preset = self.model.weights, self.model.preset
            model = short_name(weights) if weights else preset
            object.__setattr__(self, "directory", f"runs/{model}-{name_folder(self.data.name)}")

    @functools.cached_property
    def _recipe(self):
        changes = {"fit_head": 1.0} if self.leaves_head else {}  # until one is chosen
        recipe = override(find_recipe(self.recipe), {**changes, **self.changes})
        heads = {"freeze": recipe.freeze, "fit_head": getattr(recipe.task, "fit_head", 0)}
        name = next(filter(heads.get, heads), None)
        if name and not self.model.weights:
            raise ValueError(
                f"{name} trains the head of a trained model: give --weights (weights=...)."
            )
        return recipe

    @property
    def leaves_head(self):
        """Whether this is a fine-tuning of no epochs: a head that is fitted alone."""
        alone = bool(self.model.weights) and self.changes.get("epochs") == 0
        return alone and self.recipe == "finetune"

    def check(self):
        """Raises a `ValueError` for settings that cannot work, before anything is loaded."""
        self.make_recipe()
        if self.model.preset is not None:
            lookup(self.model.preset)
        if self.model.weights:
            weights = Path(find_shipped(self.model.weights))
            own = [weights.parent] * (weights.name == "model.keras")
            self.require_other_place(weights, *own)
        require_output(self.directory, self.data.name)

    def record(self):
        """Returns the entries of `recipe.json` that come from these settings, a dict."""
        model = dataclasses.asdict(self.model)
        data = {name: getattr(self.data, name) for name in (*PARTS, "groups")}
        return {"preset": model.pop("preset"), "recipe": self.recipe, **data, **model}
