"""`RunSettings`: everything a run is made from, under the names of the programs' options."""

import dataclasses
import functools
import os
from pathlib import Path
from typing import Self

from keras_gmlp.data.datasets import find_path, holds_files
from keras_gmlp.data.dividing import find_groups
from keras_gmlp.data.images.packed import is_packed
from keras_gmlp.data.images.resizing import FITS
from keras_gmlp.data.images.table import name_folder
from keras_gmlp.data.run_folder import Run
from keras_gmlp.data.text.labelled_texts import TextSource, name_columns
from keras_gmlp.models.presets import IMAGE_PRESETS, TEXT_PRESETS, lookup
from keras_gmlp.training.recipes import Recipe, find_recipe, override
from keras_gmlp.utils.errors import check_ranges, require_one_of, shortened
from keras_gmlp.utils.files import require_output
from keras_gmlp.utils.sources import DEFAULT_BACKBONE, find_shipped
from keras_gmlp.weights.files import short_name

SCRATCH = "none"  # in place of weights
ZOOMS = [1, 0.75, 0.5]  # of the included backbone on a user's own images

# Arguments of a model, of images or of text, that follow from the data and other settings.
TAKEN = ("input_shape", "classes", "vocabulary_size", "separator", "dtype", "stochastic_depth")
TAKEN += ("patch_size", "patch_window", "name")

# Settings of the recipe that have a field; the others are in `set`.
OF_RECIPE = ("epochs", "batch_size", "learning_rate", "seed", "precision", "patience")
OF_RECIPE += ("freeze", "teacher")

SHARE = (lambda share: 0 < share < 1, "between 0 and 1")
RANGES = {
    **dict.fromkeys(("validation", "hold_out"), SHARE),
    "fraction": (lambda share: 0 < share <= 1, "in (0, 1]"),
    **dict.fromkeys(("patch_size", "patch_window"), (lambda side: side > 0, "at least 1 pixel")),
    "dropout": (lambda rate: 0 <= rate < 1, "in [0, 1)"),
    "image_size": (
        lambda size: size > 0 if isinstance(size, int) else len(size) == 2 and min(size) > 0,
        "a side, or a height and a width, of at least 1",
    ),
}

# The fields of each kind of run, by the field that names its data.
KINDS = {
    "data": (
        *("model", "weights", "patch_size", "patch_window", "set_model", "image_size", "fit"),
        *("fraction", "validation", "groups", "folds", "fold"),
    ),
    "prepared": ("model", "set_model"),
    "task": ("weights", "column", "label", "test", "hold_out", "validation", "dropout"),
}
TASKS = {"data": None, "prepared": "masked_lm", "task": "text_classification"}


@dataclasses.dataclass(frozen=True)
class RunSettings:
    """Everything a training run is made from.

    A run trains on the images in `data`, pre-trains a language model on the text in `prepared`, or
    fine-tunes the one in `weights` on a `task`. The fields are the options of the programs.

    Attributes:
        model: Key of `keras_gmlp.PRESETS`, or for `prepared` of `keras_gmlp.text.PRESETS`; `None`
            for that of the weights, or `"gmlp_n4_32"` and `"gmlp_nano"`.
        weights: Weights to start from: for images as in `keras_gmlp.build`, and `"none"` for random
            ones; `None` for the included `"gmlp_photo_64"` if a folder, a table or a packed set is
            given without a model or another recipe, else for random ones. For a task the folder
            of a run that trained a language model, the name of an included one, or an original
            BERT, such as `"hf://google/bert_uncased_L-4_H-256_A-4"`.
        patch_size: Side of a patch in pixels; `None` for the preset's or the weights'.
        patch_window: Side in pixels of the window that a token is computed from; `None` for the
            patch.
        set_model: Further arguments of the model that replace the preset's, a dict such as
            `{"stem": "convolutions", "depth": 4}`.
        data: Images, as in `keras_gmlp.data.load`. Defaults to `"digits"`.
        prepared: Folder that `keras_gmlp.text.prepare_corpus` wrote.
        task: Labelled texts, as in `keras_gmlp.text.load_text`, such as `"sst2"`.
        column, label: Columns of the texts, a name or two for pairs, and of their labels.
        test: File of the texts to test on.
        hold_out: Share of the training texts to test on instead of the test texts, to choose
            settings, in (0, 1); `None` for the test texts.
        dropout: Rate in the encoder and the head of texts, in [0, 1).
        image_size: Side of the images in pixels, or `(height, width)`; `None` for the model's.
        fraction: Share of the training images, in (0, 1].
        data_dir: Folder of TensorFlow Datasets; `None` for its own.
        validation: Share of the training samples that is held out and tested after each epoch, in
            (0, 1); `None` for none.
        groups: Regular expression that finds the group of an image in its path; see `data.load`.
        folds: Number of folds of these training images, for cross-validation; `None` for none.
        fold: Number of the fold, from 1, that is tested in place of the test images.
        fit: How images of another aspect ratio become the model's, as in `data.load`; `None` for
            that of the weights or of a packed set, else `"crop"`.
        recipe: Name of a recipe; `None` for `"finetune"` with weights and `"quick"` without.
        epochs, batch_size, learning_rate, seed, precision, patience, freeze, teacher: Settings of
            the recipe that differ, as in `Recipe` and `ImageClassification`.
        set: Further settings of the recipe that differ, a dict such as `{"mixup": 0.2}`.
        out: Folder of the run; `None` for `runs/MODEL-DATA`.

    Raises:
        ValueError: If a value is of another type or out of its range, or belongs to another kind of
            run. One line.
    """

    model: str | None = None
    weights: str | None = None
    patch_size: int | None = None
    patch_window: int | None = None
    set_model: dict = dataclasses.field(default_factory=dict)
    data: str | None = None
    prepared: str | None = None
    task: str | None = None
    column: str | list | None = None
    label: str | None = None
    test: str | None = None
    hold_out: float | None = None
    dropout: float = 0.1
    image_size: int | tuple | list | None = None
    fraction: int | float = 1.0
    data_dir: str | None = None
    validation: float | None = None
    groups: str | None = None
    folds: int | None = None
    fold: int | None = None
    fit: str | None = None
    recipe: str | None = None
    epochs: int | None = None
    batch_size: int | None = None
    learning_rate: int | float | None = None
    seed: int | None = None
    precision: str | None = None
    patience: int | None = None
    freeze: bool = False
    teacher: str | None = None
    set: dict = dataclasses.field(default_factory=dict)
    out: str | None = None

    def __post_init__(self):
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if not isinstance(value, field.type):
                kind = getattr(field.type, "__name__", field.type)
                found = shortened(repr(value), 60)
                raise ValueError(f"{field.name} must be {kind}; received {found}.")
        fill = functools.partial(object.__setattr__, self)
        if self.kind == "data":
            fill("data", "digits" if self.data is None else self.data)
            self._fill_start(fill)
        if self.weights == SCRATCH:
            fill("weights", None)
        self._check_kind()
        self._check_ranges()
        if isinstance(self.column, str):
            fill("column", [self.column])
        if isinstance(self.image_size, list):  # from JSON
            fill("image_size", tuple(self.image_size))
        if self.model is None and self.weights is None:
            fill("model", "gmlp_n4_32" if self.kind == "data" else "gmlp_nano")
        if self.recipe is None:
            fill("recipe", "finetune" if self.weights else "quick")
        if self.out is None:
            fill("out", f"runs/{self._name_model()}-{self._name_data()}")

    def _fill_start(self, fill):
        """Fills in what a user's own images start from, unless a model is described."""
        own = holds_files(self.data) or is_packed(find_path(self.data))
        described = self.model or self.set_model or self.patches
        if own and self.weights is None and not described and self.recipe in (None, "finetune"):
            fill("weights", DEFAULT_BACKBONE)
        usual = own and self.weights == DEFAULT_BACKBONE
        if usual and self.model is None and self.image_size is None:  # they have more pixels
            fill("set_model", {"zooms": ZOOMS, **self.set_model})

    def _check_kind(self):
        if len(given := [kind for kind in KINDS if getattr(self, kind) is not None]) > 1:
            raise ValueError(f"{given[0]} and {given[1]} are of different runs; give one of them.")
        if self.task is not None and self.weights is None:
            raise ValueError("a task requires weights, those of a language model.")
        usual = {field.name: field.default for field in dataclasses.fields(self)}
        for kind, names in KINDS.items():
            for name in names:
                own = name in KINDS[self.kind]
                if not own and getattr(self, name) not in (usual[name], {}):
                    raise ValueError(f"{name} is a setting of {kind}, not of {self.kind}.")
        if taken := [name for name in TAKEN if name in self.set_model]:
            raise ValueError(
                f"{taken[0]} follows from the data or an option; leave it out of set_model."
            )

    def _check_ranges(self):
        check_ranges(self, RANGES)
        given = (self.folds, self.fold) != (None, None)
        if given and not 1 <= (self.fold or 0) <= (self.folds or 0):
            raise ValueError(
                f"fold must be from 1 to folds; received fold {self.fold} of folds {self.folds}."
            )
        if self.groups is not None:
            find_groups((), self.groups)
        if self.fit is not None:
            require_one_of("fit", self.fit, FITS)

    @property
    def kind(self) -> str:
        """The field that names the data: `"data"`, `"prepared"` or `"task"`."""
        return next((kind for kind in KINDS if getattr(self, kind) is not None), "data")

    @property
    def size(self) -> tuple[int, int] | None:
        """`(height, width)` of `image_size`, or `None`."""
        size = self.image_size
        return (size, size) if isinstance(size, int) else size

    @property
    def patches(self) -> dict[str, int]:
        """`patch_size` and `patch_window`, a dict of those that are set."""
        patches = {"patch_size": self.patch_size, "patch_window": self.patch_window}
        return {name: value for name, value in patches.items() if value is not None}

    @property
    def changes(self) -> dict:
        """The settings of the recipe that differ from the named one, a dict."""
        own = {name: getattr(self, name) for name in OF_RECIPE}
        own = {n: v for n, v in own.items() if v is not None and v is not False}
        return {**own, **self.set}

    @property
    def leaves_head(self) -> bool:
        """Whether this is a fine-tuning of no epochs: only a head is fitted."""
        return bool(self.weights) and self.recipe == "finetune" and self.changes.get("epochs") == 0

    @property
    def text_source(self) -> TextSource:
        """The `TextSource` of the texts of a task."""
        columns = name_columns(self.column, self.label, self.test)
        places = self.hold_out or 0.0, self.data_dir, self.validation or 0.0
        return TextSource(self.task, columns, *places)

    def make_recipe(self) -> Recipe:
        """Returns the `Recipe`: the named one with the changes.

        Raises:
            ValueError: If there is no such recipe or setting, or a value is out of its range.
        """
        changes = {"fit_head": 1.0} if self.leaves_head else {}  # until one is chosen
        recipe = find_recipe(self.recipe, TASKS[self.kind])
        recipe = override(recipe, {**changes, **self.changes})
        heads = {"freeze": recipe.freeze, "fit_head": getattr(recipe.task, "fit_head", 0)}
        name = next(filter(heads.get, heads), None)
        if name and not self.weights:
            raise ValueError(
                f"{name} trains the head of a trained model: give --weights (weights=...)."
            )
        return recipe

    def with_changes(self, **changes) -> Self:
        """Returns these settings with more changes of the recipe."""
        own = {name: changes.pop(name) for name in OF_RECIPE if name in changes}
        return dataclasses.replace(self, **own, set={**self.set, **changes})

    def check(self) -> None:
        """Raises a `ValueError` for settings that cannot work, before anything is loaded."""
        recipe = self.make_recipe()
        if self.kind == "task" and recipe.stochastic_depth is not None:
            raise ValueError(
                "stochastic_depth is for pre-training; fine-tuning keeps that of the weights. "
                "Leave it out."
            )
        if self.model is not None:
            lookup(self.model, IMAGE_PRESETS if self.kind == "data" else TEXT_PRESETS)
        if self.weights:
            weights = Path(find_shipped(self.weights))
            places = [weights, *[weights.parent] * (weights.name == "model.keras")]
            if os.path.realpath(self.out) in map(os.path.realpath, places):
                raise ValueError(f"{self.out} is where the weights are; choose another directory.")
        require_output(self.out, getattr(self, self.kind), self.test)

    def to_dict(self) -> dict:
        """Returns the settings that are not the default, a dict for JSON."""
        return {
            field.name: value
            for field in dataclasses.fields(self)
            if (value := getattr(self, field.name)) not in (field.default, {})
        }

    def record(self) -> dict:
        """Returns what a run can resume with only, a dict for `recipe.json`."""
        others = ("model", "image_size", "fit")  # recorded of the model and of the data
        names = [name for name in KINDS[self.kind] if name not in others]
        return {name: getattr(self, name) for name in ("recipe", *names)}

    def _name_model(self):
        if self.weights is None:
            return self.model
        if self.kind == "data":
            return short_name(self.weights)
        preset = Run(self.weights).recipe.get("preset")
        return preset or os.path.basename(os.path.realpath(self.weights))

    def _name_data(self):
        if self.kind == "task":
            return short_task(self.task)
        return name_folder(self.data) if self.kind == "data" else Path(self.prepared).name


def short_task(data):
    """Returns the name of a task's data as it stands in the name of a folder."""
    path = Path(data)
    return path.stem if path.exists() else data.removeprefix("glue/").replace("/", "-")
