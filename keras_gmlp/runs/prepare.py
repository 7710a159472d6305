"""From the settings of a run to a `PreparedRun`: its data are open and its model is built."""

import dataclasses
import json

import keras

from keras_gmlp import data
from keras_gmlp.data.datasets import check_path
from keras_gmlp.data.run_folder import Run
from keras_gmlp.data.text.corpus import PreparedCorpus
from keras_gmlp.data.text.labelled_texts import open_texts
from keras_gmlp.data.validation import PARTS, divide_training
from keras_gmlp.layers.zoomed_views import view_share
from keras_gmlp.models import presets
from keras_gmlp.runs.settings import RunSettings
from keras_gmlp.training.callbacks import require_validation
from keras_gmlp.training.recipes import Recipe
from keras_gmlp.utils.sources import TRAINABLE, find_model
from keras_gmlp.weights import pretrained


@dataclasses.dataclass(frozen=True)
class PreparedRun:
    """A run whose data are loaded and whose model is built."""

    settings: RunSettings  # with the preset of the weights
    recipe: Recipe
    data: object
    model: keras.Model
    origin: dict  # `preset` and `arguments` of the `build` that rebuilds the model, if known
    transfer: object = None  # the report on the weights that were transferred
    source: pretrained.Pretrained | None = None  # the trained model that the weights come from

    @property
    def testable(self):
        """Whether the model knows the classes before training."""
        return self.transfer is not None and not self.transfer.fresh


def prepare(settings, dataset=None):
    """Loads the data and builds the model of a run; the seed also seeds the generators of Keras."""
    settings.check()
    if settings.kind != "data":
        recipe = settings.make_recipe()
        keras.utils.set_random_seed(recipe.seed)
        make = _adapt_language_model if settings.task else _build_language_model
        found, *built = make(settings, recipe)
        recipe = dataclasses.replace(recipe, task=recipe.task.match(found))
        return PreparedRun(settings, recipe, found, *built)
    if dataset is None:
        check_path(settings.data)  # before weights are downloaded
    source = None
    if settings.weights:
        source = pretrained.load(settings.weights, settings.model)
        fit = settings.fit or source.preparation.get("fit")
        settings = dataclasses.replace(settings, model=source.preset, fit=fit)
    dataset = load_data(settings, source.model.input_shape[1:] if source else None, dataset)
    return build(settings, source, dataset)


def build(settings, source, dataset):
    """Builds the preset's model, or adapts the one of the weights, for the data."""
    recipe = settings.make_recipe()
    recipe = dataclasses.replace(recipe, task=recipe.task.match(dataset))
    require_validation(recipe, dataset)
    keras.utils.set_random_seed(recipe.seed)
    chosen = {"input_shape": dataset.image_shape, **settings.patches, **settings.set_model}
    chosen |= recipe.model_arguments()
    if source:
        model, transfer = source.adapt(dataset.labels, **chosen)
    else:
        classes = len(dataset.labels)
        model, transfer = pretrained.build(settings.model, classes=classes, **chosen), None
    # What a loaded model was built with; None if its file does not say.
    origin = {"preset": settings.model}
    arguments = getattr(source, "arguments", None) if source else {}
    if arguments is not None:
        arguments = {**arguments, **chosen, "classes": len(dataset.labels)}
        for training_only in ("dtype", "stochastic_depth"):  # the saved model is float32
            arguments.pop(training_only, None)
        origin["arguments"] = json.loads(json.dumps(arguments))  # as the card holds them
    return PreparedRun(settings, recipe, dataset, model, origin, transfer, source)


def load_data(settings, image_shape=None, dataset=None):
    """Loads the data of a run, and divides the training images."""
    groups = settings.groups
    if dataset is None:
        shape = image_shape or presets.lookup(settings.model)[1]["input_shape"]
        share = view_share(settings.set_model.get("zooms"))
        size = settings.size or tuple(round(side / share) for side in shape[:2])
        channels = image_shape[2] if image_shape else None
        place = settings.data, size, settings.data_dir
        dataset = data.load(*place, channels, groups, settings.fit)
    return divide_training(dataset, **{n: getattr(settings, n) for n in PARTS}, groups=groups)


def _build_language_model(settings, recipe):
    """Returns the text, the model of the preset and its origin."""
    data = PreparedCorpus.open(settings.prepared)
    model = presets.build(
        settings.model, data.tokenizer, **settings.set_model, **recipe.model_arguments()
    )
    tokenizer = {"vocabulary_size": data.tokenizer.size, "separator": data.tokenizer.sep_id}
    arguments = json.loads(json.dumps({**settings.set_model, **tokenizer}))
    return data, model, {"preset": settings.model, "arguments": arguments}


def _adapt_language_model(settings, recipe):
    """Returns the texts of a task, the trained encoder with a new head, and its origin."""
    from keras_gmlp.models.language_model import adapt, text_classifier
    from keras_gmlp.models.structure import longest_text
    from keras_gmlp.weights.bert import load_bert
    from keras_gmlp.weights.loading import load

    path, kind = find_model(settings.weights, TRAINABLE)
    if kind == "published":
        trained, tokenizer = load_bert(path)
    else:
        opened = load(path)
        trained, tokenizer = opened.model, opened.tokenizer
    data = dataclasses.replace(open_texts(settings.text_source), tokenizer=tokenizer)
    longest = longest_text(trained)
    longer = recipe.task.length if longest and recipe.task.length > longest else None
    encoder = adapt(trained, longer, settings.dropout, recipe.precision)
    model = text_classifier(encoder, len(data.labels), settings.dropout)
    return data, model, {"preset": Run(path).recipe.get("preset")}
