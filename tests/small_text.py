"""Small text models with random weights, and a tokenizer of their few words."""

import numpy as np

from keras_gmlp.data.text.tokenizer import Tokenizer
from keras_gmlp.models.language_families import BERT, aMLP, gMLP
from keras_gmlp.models.language_model import text_classifier
from keras_gmlp.utils.card import write_text_card

LINES = [
    "Paris is the capital of France, and Rome is the capital of Italy.",
    "The films of this winter: a gem, a bore, and a bad joke.",
    "Who lives in Rome? A cat lives in the old house by the river.",
]
LENGTH = 48
LABELS = ("bad", "good")
TINY = {"vocabulary_size": 40, "max_length": 12, "dim": 8, "depth": 2}
LANGUAGE_MODELS = {
    "gmlp": lambda **kwargs: gMLP(hidden_dim=16, **TINY, **kwargs),
    "free": lambda **kwargs: gMLP(hidden_dim=16, toeplitz=False, **TINY, **kwargs),
    "amlp": lambda **kwargs: aMLP(hidden_dim=16, attention_size=4, **TINY, **kwargs),
    "relative": lambda **kwargs: BERT(num_heads=2, **TINY, **kwargs),
    "only biases": lambda **kwargs: BERT(num_heads=2, content=False, **TINY, **kwargs),
    "original": lambda **kwargs: BERT(
        num_heads=2, relative=False, segments=2, norm_placement="post", **TINY, **kwargs
    ),
}


def small_tokenizer():
    return Tokenizer.train(LINES, vocabulary_size=200)


def small_text_model(task, tokenizer, family=gMLP):
    """Returns a model of a few thousand random weights, larger than the initial ones."""
    sizes = {"dim": 8, "depth": 2, "hidden_dim": 16, "max_length": LENGTH}
    if family is aMLP:
        sizes["attention_size"] = 4
    model = family(tokenizer.size, separator=tokenizer.sep_id, **sizes)
    if task == "text_classification":
        model = text_classifier(model, len(LABELS))
    generator = np.random.default_rng(1)
    for weight in model.trainable_weights:
        weight.assign(generator.normal(0.0, 0.4, weight.shape))
    return model


def save_small_model(path, task, tokenizer):
    """Saves a small text model as a `.keras` file with a card; returns the model and its labels."""
    model = small_text_model(task, tokenizer)
    labels = LABELS if task == "text_classification" else ()
    model.save(path)
    write_text_card(path, task, tokenizer, labels, {"length": LENGTH})
    return model, labels
