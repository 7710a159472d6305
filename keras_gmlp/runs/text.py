"""Runs on text: a language model from a preset, or a classifier from a trained language model."""

import dataclasses
import json
import os
from pathlib import Path

from keras_gmlp.data.run_folder import Run
from keras_gmlp.data.text.chosen_splits import TextSource
from keras_gmlp.data.text.corpus import PreparedCorpus
from keras_gmlp.models.presets import TEXT_PRESETS, build, lookup
from keras_gmlp.models.saved import model_path
from keras_gmlp.runs.settings import PLACE, SPELLED, Settings, check_overrides, require
from keras_gmlp.utils.files import require_output
from keras_gmlp.utils.shipped import find_shipped
from keras_gmlp.weights.files import is_bert


@dataclasses.dataclass(frozen=True)
class LanguageRunSettings(Settings):
    """Everything a language model is trained from.

    Attributes:
        preset: Key of `keras_gmlp.text.PRESETS`.
        data: Folder that `text.prepare_corpus` wrote.
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

    program, spelled = "train_text", {**SPELLED, "data": "prepared"}
    task = "masked_lm"

    def __post_init__(self):
        super().__post_init__()
        require(str, PLACE, data=self.data)
        check_overrides(self.overrides)
        if self.directory is None:
            place = f"runs/{self.preset}-{Path(self.data).name}"
            object.__setattr__(self, "directory", place)

    def check(self):
        """Raises a `ValueError` for settings that cannot work, before anything is loaded."""
        lookup(self.preset, TEXT_PRESETS)
        self.make_recipe()
        require_output(self.directory, self.data)

    def record(self):
        """Returns the entries of `recipe.json` that come from these settings, a dict."""
        return {"preset": self.preset, "recipe": self.recipe, "overrides": self.overrides}

    def build(self, recipe):
        """Returns the text, the model and its origin."""
        data = PreparedCorpus.open(self.data)
        arguments = {**self.overrides, **recipe.model_arguments()}
        model = build(self.preset, data.tokenizer, **arguments)
        tokenizer = {"vocabulary_size": data.tokenizer.size, "separator": data.tokenizer.sep_id}
        arguments = json.loads(json.dumps({**self.overrides, **tokenizer}))
        return data, model, {"preset": self.preset, "arguments": arguments}


@dataclasses.dataclass(frozen=True)
class FineTuningSettings(Settings):
    """Everything a classifier of texts is trained from.

    Attributes:
        weights: Folder of a run that trained a language model, the name of an included one, or an
            original BERT, as `load_bert` takes it, such as
            `"hf-hub:google/bert_uncased_L-4_H-256_A-4"`.
        data: Labelled texts, as `keras_gmlp.data.text.load_text` takes them, such as `"sst2"`.
        columns: Arguments of `load_text` that name columns or the test texts, a dict.
        held_out: Share of the training texts to test on instead of the test texts, to choose
            settings; 0 for the test texts.
        validation: Share of the training texts that is tested after each epoch in place of the
            test texts, which are then read at the end only; 0 for none. With the setting
            `patience`, the best epoch counts.
        dropout: Rate in the encoder and the head.
        recipe: Name of a recipe, `"finetune"`.
        changes: Settings of the recipe that differ, a dict such as `{"learning_rate": 1e-4}`.
        directory: Folder of the run; `None` for `runs/MODEL-DATA`.
        data_dir: Folder of TensorFlow Datasets; `None` for its own.
    """

    weights: str
    data: str
    columns: dict = dataclasses.field(default_factory=dict)
    held_out: float = 0.0
    validation: float = 0.0
    dropout: float = 0.1
    recipe: str = "finetune"
    changes: dict = dataclasses.field(default_factory=dict)
    directory: str | None = None
    data_dir: str | None = None

    program, spelled = "train_text", {**SPELLED, "data": "task"}
    task = "text_classification"

    def __post_init__(self):
        super().__post_init__()
        require(str, PLACE, data=self.data)
        for name in ("held_out", "validation", "dropout"):
            if not 0 <= getattr(self, name) < 1:
                raise ValueError(f"{name} must be in [0, 1); received {getattr(self, name)}.")
        if self.directory is None:
            model = self.read_preset() or os.path.basename(os.path.realpath(self.weights))
            object.__setattr__(self, "directory", f"runs/{model}-{short_task(self.data)}")

    def read_preset(self):
        """Returns the preset of the run that trained the weights, or `None`."""
        return Run(self.weights).recipe.get("preset")

    def check(self):
        """Raises a `ValueError` for settings that cannot work, before anything is loaded."""
        recipe = self.make_recipe()
        if recipe.stochastic_depth is not None:
            raise ValueError(
                "stochastic_depth is for pre-training; fine-tuning keeps that of the weights. "
                "Leave it out."
            )
        self.require_other_place(find_shipped(self.weights))
        require_output(self.directory, self.data, self.columns.get("test"))

    def record(self):
        """Returns the entries of `recipe.json` that come from these settings, a dict."""
        names = ("weights", "columns", "held_out", "dropout", "recipe", "validation")
        return {name: getattr(self, name) for name in names}

    def command(self):
        """Returns the options that repeat the run, a dict for `recipe.json`."""
        found = super().command()
        columns = dict(found.pop("columns", {}))
        if text := columns.pop("text", None):
            columns["column"] = [text] if isinstance(text, str) else list(text)
        return {**found, **columns}

    @classmethod
    def from_command(cls, options):
        """Returns the settings that options of the program describe, a dict."""
        columns = {key: options[key] for key in ("label", "test") if options.get(key) is not None}
        if text := options.get("column"):
            columns["text"] = text[0] if len(text) == 1 else text
        return super().from_command({**options, "columns": columns})

    def source(self):
        """Returns the `TextSource` of the texts."""
        places = self.held_out, self.data_dir, self.validation
        return TextSource(self.data, self.columns, *places)

    def build(self, recipe):
        """Returns the texts, the model and its origin."""
        from keras_gmlp.inference import text as inference
        from keras_gmlp.models.language_model import adapt
        from keras_gmlp.models.structure import longest_text
        from keras_gmlp.weights.text_folder import read_text_folder

        if is_bert(self.weights):
            trained, tokenizer = read_text_folder(self.weights)[:2]
        else:
            opened = inference.load(model_path(self.weights, "text"))
            trained, tokenizer = opened.model, opened.tokenizer
        data = recipe.task.open_data(tokenizer, self.source())
        longest = longest_text(trained)
        longer = recipe.task.length if longest and recipe.task.length > longest else None
        encoder = adapt(trained, longer, self.dropout, recipe.precision)
        model = recipe.task.add_head(encoder, data, self.dropout)
        return data, model, {"preset": self.read_preset()}


def short_task(data):
    """Returns the name of a task's data as it stands in the name of a folder."""
    path = Path(data)
    return path.stem if path.exists() else data.removeprefix("glue/").replace("/", "-")
