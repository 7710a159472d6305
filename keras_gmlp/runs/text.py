"""Runs on text: from a preset or a trained language model to a trained model."""

import dataclasses
import json
from pathlib import Path

import keras

from keras_gmlp.data.text.corpus import PreparedCorpus
from keras_gmlp.models.presets import find
from keras_gmlp.models.text_families import TEXT_PRESETS, build
from keras_gmlp.training import train as training
from keras_gmlp.training.recipes import find_recipe
from keras_gmlp.training.settings import override
from keras_gmlp.training.text_tasks import MaskedLM

# Arguments of a model that follow from other settings.
TAKEN_BY = {
    "vocabulary_size": "the tokenizer",
    "separator": "the tokenizer",
    "dtype": "the recipe's precision",
    "stochastic_depth": "the recipe",
    "name": "the preset",
}


@dataclasses.dataclass(frozen=True)
class LanguageRunSettings:
    """Everything a language model is trained from.

    Attributes:
        preset: Key of `keras_gmlp.text.PRESETS`.
        data: Folder that `python -m keras_gmlp.data.text.corpus` wrote.
        recipe: Name of a recipe: `"quick"`, `"standard"` or `"long"`.
        changes: Settings of the recipe that differ, a dict such as `{"mask_rate": 0.2}`.
        overrides: Arguments of the model that replace the preset's, a dict such as
            `{"max_length": 256}`.
        directory: Folder of the run; `None` for `runs/PRESET-DATA`.
    """

    preset: str = "gmlp_nano"
    data: str = "runs/text"
    recipe: str = "quick"
    changes: dict = dataclasses.field(default_factory=dict)
    overrides: dict = dataclasses.field(default_factory=dict)
    directory: str | None = None

    def __post_init__(self):
        if taken := sorted(set(self.overrides) & set(TAKEN_BY)):
            raise ValueError(f"{taken[0]} is no override: {TAKEN_BY[taken[0]]} sets it.")
        if self.directory is None:
            place = f"runs/{self.preset}-{Path(self.data).name}"
            object.__setattr__(self, "directory", place)

    def make_recipe(self):
        """Returns the `Recipe`: the named one with the changes."""
        return override(find_recipe(self.recipe, MaskedLM.name), self.changes)

    def check(self):
        """Raises a `ValueError` for settings that cannot work, before anything is loaded."""
        find(self.preset, TEXT_PRESETS)
        self.make_recipe()

    def record(self):
        """Returns the entries of `recipe.json` that come from these settings, a dict."""
        return {"preset": self.preset, "recipe": self.recipe, "overrides": self.overrides}


@dataclasses.dataclass
class PreparedLanguageRun:
    """A run whose text is open and whose model is built."""

    settings: LanguageRunSettings
    recipe: object
    data: PreparedCorpus
    model: keras.Model
    arguments: dict

    def train(self, **options):
        """Trains the model, or resumes; returns the metrics. Options are those of `train`."""
        extra = {**self.settings.record(), "arguments": self.arguments}
        place = self.settings.directory
        return training.train(self.model, self.data, self.recipe, place, extra=extra, **options)


def prepare_language_run(settings, seed_process=True):
    """Opens the text and builds the model of a run.

    Args:
        settings: `LanguageRunSettings`.
        seed_process: Whether to draw the initial weights from the recipe's seed. Keras then seeds
            the generators of the whole process (`keras.utils.set_random_seed`).

    Returns:
        A `PreparedLanguageRun`.

    Raises:
        ValueError: If the settings cannot work or the folder has no prepared text.
    """
    settings.check()
    recipe = settings.make_recipe()
    data = PreparedCorpus.open(settings.data)
    if seed_process:
        keras.utils.set_random_seed(recipe.seed)
    model = build(settings.preset, data.tokenizer, **settings.overrides, **recipe.model_arguments())
    tokenizer = {"vocabulary_size": data.tokenizer.size, "separator": data.tokenizer.sep_id}
    arguments = json.loads(json.dumps({**settings.overrides, **tokenizer}))
    return PreparedLanguageRun(settings, recipe, data, model, arguments)
