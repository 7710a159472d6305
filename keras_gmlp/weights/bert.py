"""BERTs of the package transformers: their weights and config.json, both ways."""

from pathlib import Path

import keras
import numpy as np
from keras import ops

from keras_gmlp.data.text.tokenizer import Tokenizer
from keras_gmlp.layers import TransformerBlock
from keras_gmlp.models.language_families import BERT
from keras_gmlp.models.language_model import encoder, text_classifier
from keras_gmlp.models.structure import learned_weights
from keras_gmlp.utils.errors import require_one_of
from keras_gmlp.utils.files import read_json
from keras_gmlp.utils.labels import check_labels
from keras_gmlp.utils.sources import find_model
from keras_gmlp.weights.conversion import assign, published_arrays, table_links
from keras_gmlp.weights.files import find_file, read_checkpoint, short_name
from keras_gmlp.weights.names import BERT as TABLE
from keras_gmlp.weights.names import BERT_HEADS as HEADS

WEIGHTS = ("model.safetensors", "pytorch_model.bin")
TOKENIZERS = ("tokenizer.json", "vocab.txt")

# Keys of the config.json: those with the value that this package computes, and those of arguments.
FIXED = {"model_type": "bert", "hidden_act": "gelu", "position_embedding_type": "absolute"}
ARGUMENTS = {
    "vocabulary_size": "vocab_size",
    "dim": "hidden_size",
    "depth": "num_hidden_layers",
    "num_heads": "num_attention_heads",
    "max_length": "max_position_embeddings",
    "segments": "type_vocab_size",
}

# By the weight that only this class has, in the order of the search.
MARKS = {
    "classifier.weight": "BertForSequenceClassification",
    "cls.predictions.bias": "BertForMaskedLM",
    "embeddings.word_embeddings.weight": "BertModel",
}
# With a head that is not read.
SAME = {"BertForPreTraining": "BertForMaskedLM", "BertForQuestionAnswering": "BertModel"}


def load_bert(source: str | Path) -> tuple[keras.Model, Tokenizer]:
    """Loads a BERT that the package transformers saved, with the head that it has.

    Args:
        source: Name on the Hugging Face hub, such as `"hf://google/bert_uncased_L-4_H-256_A-4"`,
            or a folder with config.json, tokenizer.json or vocab.txt, and model.safetensors or
            pytorch_model.bin.

    Returns:
        `(model, tokenizer)`. The model is a language model, see `keras_gmlp.text.BERT`, for
        BertForMaskedLM and BertForPreTraining; what `text_classifier` returns for
        BertForSequenceClassification; and for the others an encoder from `token_ids` to tokens
        `(batch, tokens, dim)`, which `text_classifier` takes, too. The tokenizer is a `Tokenizer`.

    Raises:
        ValueError: If the files cannot be read, are not those of a BERT, or lack weights. One line.

    Reference: "Well-Read Students Learn Better", https://arxiv.org/abs/1908.08962, the small BERTs.
    """
    return open_bert(source)[:2]


def open_bert(source):
    """Returns what `load_bert` does, and a card with the class names and the architecture."""
    folder, _ = find_model(source, ("published",))
    config = find_file(folder, "config.json")
    settings = read_json(config)
    arguments = _read_settings(settings, config)
    weights = find_file(folder, *WEIGHTS)
    tokenizer = _open_tokenizer(find_file(folder, *TOKENIZERS), config, source)
    arrays = {  # without "bert." and the names of old versions
        name.removeprefix("bert.").replace("gamma", "weight").replace("beta", "bias"): array
        for name, array in read_checkpoint(weights)[0].items()
    }
    name = _find_architecture(settings, arrays)
    own = {"separator": tokenizer.sep_id, "name": short_name(source).replace(".", "_")}
    model, labels = BERT(**arguments, **own), ()
    if name == "BertForSequenceClassification":
        labels = _read_labels(settings, len(arrays.get("classifier.weight", ())), config)
        model = text_classifier(model, len(labels))
    elif name == "BertModel":
        model = keras.Model(*encoder(model), name=model.name)
    links = table_links(model, (*TABLE, *HEADS[name]))
    assign(links, learned_weights(model), arrays, source, f"a {name}")
    return model, tokenizer, {"labels": list(labels), "architecture": name}


def write_bert(model, architecture):
    """Returns the weights and the config.json of an original BERT, or `None` for other models."""
    blocks = [layer for layer in model.layers if isinstance(layer, TransformerBlock)]
    is_original = blocks and all(b.norm_placement == "post" and not b.relative for b in blocks)
    if not is_original or not any(layer.name == "position" for layer in model.layers):
        return None
    weights = {path: ops.convert_to_numpy(w) for path, w in learned_weights(model).items()}
    vocabulary_size, dim = weights["token_embedding/embeddings"].shape
    # Without the layer, no segment has a vector of its own.
    weights.setdefault("segment/embedding", np.zeros((2, dim), "float32"))
    segments = len(weights["segment/embedding"])
    arrays = published_arrays(table_links(model, (*TABLE, *HEADS[architecture])), weights)
    arrays = {
        f"bert.{name}" if name.startswith(("embeddings", "encoder", "pooler")) else name: array
        for name, array in arrays.items()
    }
    longest = model.get_layer("position").max_tokens
    sizes = vocabulary_size, dim, len(blocks), blocks[0].num_heads, longest, segments
    config = {
        "architectures": [architecture],
        **dict(zip(ARGUMENTS.values(), sizes, strict=True)),
        "intermediate_size": weights["block_0/expand/kernel"].shape[1],
        "layer_norm_eps": model.get_layer("embedding_norm").epsilon,
        "pad_token_id": 0,
        "tie_word_embeddings": True,
        **FIXED,
    }
    return arrays, config


def _open_tokenizer(path, config, source):
    if path.suffix == ".json":
        return Tokenizer.load(path)
    steps = read_json(Path(config).with_name("tokenizer_config.json")) or {}
    uncased = "uncased" in str(source) or "-cased" not in str(source)
    lowercase = steps.get("do_lower_case", uncased)
    return Tokenizer.from_vocabulary(path, lowercase, steps.get("strip_accents"))


def _read_settings(settings, path):
    """Returns the arguments of `BERT` that a config.json describes."""
    stated, *_ = settings.get("architectures") or HEADS
    require_one_of(f"{path}: the architecture", stated, (*HEADS, *SAME))
    try:
        for name, expected in FIXED.items():
            if settings.get(name, expected) != expected:
                raise ValueError(f"{name} must be {expected!r}; received {settings[name]!r}")
        return {
            **{name: settings[key] for name, key in ARGUMENTS.items()},
            "mlp_ratio": settings["intermediate_size"] / settings["hidden_size"],
            "epsilon": settings.get("layer_norm_eps", 1e-12),
            "relative": False,
            "norm_placement": "post",
        }
    except (KeyError, TypeError, ValueError) as error:
        reason = f"no {error}" if isinstance(error, KeyError) else error
        raise ValueError(f"{path}: not the config.json of a BERT ({reason}).") from None


def _read_labels(settings, classes, path):
    """Returns the class names of a classifier in the order of its logits."""
    kind = settings.get("problem_type")
    if classes < 2 or kind not in (None, "single_label_classification"):
        raise ValueError(
            f"{path}: problem_type {kind!r} of {classes}; expected a classifier of one label."
        )
    try:
        names = {int(index): name for index, name in settings["id2label"].items()}
        labels = tuple(names[index] for index in range(classes))
    except (KeyError, ValueError, AttributeError, TypeError):
        labels = tuple(map(str, range(classes)))
    check_labels(labels, f"{path}: id2label")
    return labels


def _find_architecture(settings, arrays):
    found = next((name for mark, name in MARKS.items() if mark in arrays), "BertForMaskedLM")
    stated = (settings.get("architectures") or [found])[0]
    stated = SAME.get(stated, stated)
    return stated if stated != "BertModel" else found
