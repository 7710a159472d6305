"""The data and the model of a run on text."""

import dataclasses
import json

from keras_gmlp.data.run_folder import Run
from keras_gmlp.data.text.corpus import PreparedCorpus
from keras_gmlp.data.text.labelled_texts import open_texts
from keras_gmlp.models.presets import build
from keras_gmlp.utils.sources import TRAINABLE, find_model


def build_language_model(settings, recipe):
    """Returns the text, the model of the preset and its origin."""
    data = PreparedCorpus.open(settings.prepared)
    model = build(settings.model, data.tokenizer, **settings.set_model, **recipe.model_arguments())
    tokenizer = {"vocabulary_size": data.tokenizer.size, "separator": data.tokenizer.sep_id}
    arguments = json.loads(json.dumps({**settings.set_model, **tokenizer}))
    return data, model, {"preset": settings.model, "arguments": arguments}


def adapt_language_model(settings, recipe):
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
    return data, model, {"preset": Run(settings.weights).recipe.get("preset")}
