"""Original BERT: weights of the Hugging Face hub into `text.BERT`."""

from pathlib import Path

from keras_gmlp.data.text.tokenizer import Tokenizer
from keras_gmlp.models.language_families import BERT
from keras_gmlp.models.structure import learned_weights
from keras_gmlp.utils.files import read_json
from keras_gmlp.weights.conversion import assign, table_links
from keras_gmlp.weights.files import HUB, download, read_checkpoint, short_name
from keras_gmlp.weights.names import BERT as TABLE

WEIGHTS = ("model.safetensors", "pytorch_model.bin")

# Keys of the config.json, and the value that this package computes.
FIXED = {"hidden_act": "gelu", "position_embedding_type": "absolute"}


def load_bert(source):
    """Loads an original BERT with its masked-token head.

    Args:
        source: Name on the Hugging Face hub, such as `"hf-hub:google/bert_uncased_L-4_H-256_A-4"`,
            or a folder with config.json, vocab.txt and model.safetensors or pytorch_model.bin.

    Returns:
        `(model, tokenizer)`: a language model, see `keras_gmlp.text.BERT`, and its `Tokenizer`, or
        `None` if there is no vocab.txt.

    Raises:
        ValueError: If the files cannot be read, are not those of a BERT, or lack weights. One line.

    Reference: "Well-Read Students Learn Better", https://arxiv.org/abs/1908.08962, the small BERTs.
    """
    weights, config, vocabulary = _find_files(str(source))
    settings = read_json(config)
    arrays = read_checkpoint(weights).arrays
    arguments = _read_settings(settings, config)
    model = BERT(**arguments, name=short_name(source).replace(".", "_"))
    _assign(model, arrays, source)
    if vocabulary is None:
        return model, None
    lowercase = (read_json(Path(config).with_name("tokenizer_config.json")) or {}).get(
        "do_lower_case", "uncased" in str(source) or "-cased" not in str(source)
    )
    return model, Tokenizer.from_vocabulary(vocabulary, lowercase)


def _find_files(source):
    """Returns the paths of weights, config and vocabulary."""
    if source.startswith(HUB):
        weights = download(source, *WEIGHTS)
        return weights, download(source, "config.json"), download(source, "vocab.txt")
    folder = Path(source).expanduser()
    if not folder.is_dir():
        raise ValueError(
            f"{source}: no such folder; expected one with config.json and model.safetensors, or "
            f"{HUB}NAME."
        )
    found = [folder / name for name in WEIGHTS if (folder / name).is_file()]
    config, vocabulary = folder / "config.json", folder / "vocab.txt"
    if not found or not config.is_file():
        lacking = "config.json" if found else " or ".join(WEIGHTS)
        raise ValueError(f"{source}: has no {lacking}; expected the files of a BERT.")
    return found[0], config, vocabulary if vocabulary.is_file() else None


def _read_settings(settings, path):
    """Returns the arguments of `BERT` that a config.json describes."""
    try:
        for name, expected in FIXED.items():
            if settings.get(name, expected) != expected:
                raise ValueError(f"{name} must be {expected!r}; received {settings[name]!r}")
        return {
            "vocabulary_size": settings["vocab_size"],
            "dim": settings["hidden_size"],
            "depth": settings["num_hidden_layers"],
            "num_heads": settings["num_attention_heads"],
            "mlp_ratio": settings["intermediate_size"] / settings["hidden_size"],
            "max_length": settings["max_position_embeddings"],
            "segments": settings["type_vocab_size"],
            "separator": settings.get("sep_token_id", 102),
            "epsilon": settings.get("layer_norm_eps", 1e-12),
            "relative": False,
            "norm_placement": "post",
        }
    except (KeyError, TypeError, ValueError) as error:
        reason = f"no {error}" if isinstance(error, KeyError) else error
        raise ValueError(f"{path}: not the config.json of a BERT ({reason}).") from None


def _assign(model, arrays, source):
    """Assigns arrays by their names, which have "bert." in front or are those of old versions."""
    arrays = {
        name.removeprefix("bert.").replace("gamma", "weight").replace("beta", "bias"): array
        for name, array in arrays.items()
    }
    links = table_links(model, TABLE)
    lacking = [name for link in links for name in link.theirs if name not in arrays]
    if lacking:
        raise ValueError(
            f"{source}: lacks {lacking[0]} and {len(lacking) - 1} more; expected the weights of a "
            "BERT with its masked-token head (BertForPreTraining or BertForMaskedLM)."
        )
    assign(links, learned_weights(model), arrays, source, model.name)
