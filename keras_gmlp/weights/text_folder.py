"""Text models as folders that the package transformers reads, both ways."""

import dataclasses
import json
from pathlib import Path

import numpy as np

from keras_gmlp.inference.opening import open_keras
from keras_gmlp.models.precision import in_float32
from keras_gmlp.tasks.confidence import Confidence
from keras_gmlp.tasks.registry import find_task
from keras_gmlp.utils.card import read_card, write_text_card
from keras_gmlp.utils.files import atomic_write, read_json, write_json
from keras_gmlp.utils.sources import WEIGHTS
from keras_gmlp.weights.bert import open_bert, write_bert
from keras_gmlp.weights.files import write_checkpoint

FILES = (WEIGHTS, "config.json", "tokenizer.json", "vocab.txt", "tokenizer_config.json")


def is_text_model(path, kind):
    """Returns whether what `find_model` found is a text model: ours, or one of transformers."""
    if kind == "keras":
        return "tokenizer" in read_card(path)
    settings = read_json(path / "config.json")
    return isinstance(settings, dict) and "model_type" in settings  # that of timm has none


def open_text_model(source):
    """Opens a text model of transformers as a `TextModel` on Keras."""
    model, tokenizer, card = open_bert(source)
    if card["architecture"] == "BertModel":
        raise ValueError(
            f"{source}: an encoder without a head; text.load_bert opens it, and training adds a "
            "head (--weights)."
        )
    opened = open_keras(model, Path(source), card)
    return opened.find_task().wrap(opened, tokenizer)


def save_text_model(opened, path):
    """Writes a `TextModel` as a `.keras` file with a card: task, tokenizer, class names."""
    entries = {"length": opened.length, "pairs": opened.pairs}
    if opened.confidence != Confidence():
        entries |= dataclasses.asdict(opened.confidence)
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_write(path) as temporary:
        in_float32(opened.model).save(temporary)
        write_text_card(temporary, opened.task, opened.tokenizer, opened.labels, entries)
    return path


def write_text_folder(opened, path):
    """Writes an original BERT as a folder; returns the class of transformers for it."""
    path = Path(path)
    if path.name != WEIGHTS:
        raise ValueError(f"{path}: expected a path that ends in {WEIGHTS}, such as bert/{WEIGHTS}.")
    for name in FILES:
        if (path.parent / name).exists():
            raise ValueError(f"{path.parent / name}: exists; give another folder.")
    architecture = find_task(opened.task).architecture
    found = architecture and write_bert(opened.model, architecture)
    if not found:
        raise ValueError(
            f"{opened.path}: not an original BERT of at most one label for a text, the only text "
            "model that is written for transformers; give an --out that ends in .keras."
        )
    arrays, config = found
    config["sep_token_id"] = opened.tokenizer.sep_id
    if opened.labels:
        config["id2label"] = {str(i): label for i, label in enumerate(opened.labels)}
        config["label2id"] = {label: i for i, label in enumerate(opened.labels)}
    path.parent.mkdir(parents=True, exist_ok=True)
    arrays = {name: np.ascontiguousarray(array, "float32") for name, array in arrays.items()}
    write_checkpoint(path, arrays, config)
    _write_tokenizer(opened.tokenizer, path.parent, opened.length)
    return architecture


def _write_tokenizer(tokenizer, folder, length):
    """Writes the two files in which transformers looks for a tokenizer."""
    text = tokenizer.to_bert().to_str(pretty=True)
    with atomic_write(folder / "tokenizer.json") as temporary:
        temporary.write_text(text, "utf-8")
    steps = json.loads(text)["normalizer"]
    write_json(
        folder / "tokenizer_config.json",
        {
            "tokenizer_class": "BertTokenizer",
            "do_lower_case": steps["lowercase"],
            "strip_accents": steps["strip_accents"],
            "model_max_length": length,
            **{f"{name}_token": f"[{name.upper()}]" for name in ("pad", "unk", "cls", "sep")},
            "mask_token": "[MASK]",
        },
    )
