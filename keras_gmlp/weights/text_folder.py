"""Text models as folders that the package transformers reads, both ways."""

import json
from pathlib import Path

import keras
import numpy as np
from keras import ops

from keras_gmlp.data.text.tokenizer import Tokenizer
from keras_gmlp.inference import text as inference
from keras_gmlp.inference.opening import open_keras
from keras_gmlp.models.precision import in_float32
from keras_gmlp.models.structure import learned_weights
from keras_gmlp.tasks.confidence import TEMPERATURE, THRESHOLD, Confidence
from keras_gmlp.tasks.registry import find_task
from keras_gmlp.utils.card import read_card, write_text_card
from keras_gmlp.utils.files import atomic_write, read_json, write_json
from keras_gmlp.utils.labels import check_labels
from keras_gmlp.utils.shipped import find_shipped
from keras_gmlp.weights.bert import open_bert, write_bert
from keras_gmlp.weights.conversion import KINDS, assign
from keras_gmlp.weights.files import HUB, download, is_bert, read_checkpoint, write_checkpoint

OWN = "keras_gmlp"  # the model_type of models that transformers does not have
WEIGHTS = "model.safetensors"
FILES = (WEIGHTS, "config.json", "tokenizer.json", "vocab.txt", "tokenizer_config.json")


def is_text_model(source):
    """Returns whether a source is a text model: of transformers, or of this package."""
    if str(source).startswith(HUB):
        return _describes_text(download(str(source), "config.json"))
    path = Path(find_shipped(source)).expanduser()
    if path.is_dir() and not (path / "model.keras").exists():
        return _describes_text(path / "config.json")
    path = path / "model.keras" if path.is_dir() else path
    return path.suffix == ".keras" and path.is_file() and "tokenizer" in read_card(path)


def _describes_text(config):
    settings = read_json(config)
    return isinstance(settings, dict) and "model_type" in settings  # that of timm has none


def open_text_model(source):
    """Opens a text model of transformers or of this package as a `TextModel` on Keras."""
    if not is_bert(find_shipped(source)):
        path = Path(find_shipped(source))
        return inference.load(path / "model.keras" if path.is_dir() else path)
    model, tokenizer, card = read_text_folder(source)
    if card.get("architecture") == "BertModel":
        raise ValueError(
            f"{source}: a BertModel, which has no head and answers nothing; give it one: "
            f"apps/train_text.py --task DATA --weights {source}"
        )
    opened = open_keras(model, Path(source), card)
    return opened.find_task().wrap(opened, tokenizer)


def save_text_model(opened, path):
    """Writes a `TextModel` as a `.keras` file with a card: task, tokenizer, class names."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_write(path) as temporary:
        in_float32(opened.model).save(temporary)
        write_text_card(
            temporary, opened.task, opened.tokenizer, opened.labels, _card_entries(opened)
        )
    return path


def read_text_folder(source):
    """Opens a folder of transformers or of `write_text_folder`: model, tokenizer and card."""
    path = Path(source).expanduser() / "config.json"
    settings = None if str(source).startswith(HUB) else read_json(path)
    if isinstance(settings, dict) and settings.get("model_type") == OWN:
        return _read_own(path, settings)
    model, tokenizer, card = open_bert(source)
    if tokenizer is None:
        raise ValueError(
            f"{source}: has no tokenizer; expected tokenizer.json or vocab.txt next to config.json."
        )
    return model, tokenizer, card


def _read_own(path, settings):
    """Opens a folder with a config.json that `write_text_folder` wrote for this package."""
    try:
        model = keras.models.model_from_json(json.dumps(settings["model"]))
        if not isinstance(model, keras.Model):
            raise ValueError(f"holds a {type(model).__name__}")
        check_labels(settings["labels"], "labels")
    except Exception as error:  # Keras raises errors of many classes
        reason = " ".join(str(error).split())[:200]
        raise ValueError(
            f"{path}: not a config.json that apps/convert.py wrote ({reason})."
        ) from None
    weights, (arrays, _) = learned_weights(model), read_checkpoint(path.with_name(WEIGHTS))
    if differing := sorted(set(weights) ^ set(arrays))[:3]:
        raise ValueError(
            f"{path.with_name(WEIGHTS)}: does not fit config.json ({', '.join(differing)})."
        )
    links = [link for name in weights for link in KINDS["array"](name, name)]
    assign(links, weights, arrays, path.with_name(WEIGHTS), "the model in config.json")
    return model, Tokenizer.load(path.with_name("tokenizer.json")), settings


def write_text_folder(opened, path):
    """Writes a text model as a folder; returns the class of transformers for it, or `None`."""
    path = Path(path)
    if path.name != WEIGHTS:
        raise ValueError(f"{path}: expected a path that ends in {WEIGHTS}, such as bert/{WEIGHTS}.")
    for name in FILES:
        if (path.parent / name).exists():
            raise ValueError(f"{path.parent / name}: exists; give another folder.")
    path.parent.mkdir(parents=True, exist_ok=True)
    architecture = find_task(opened.task).architecture
    found = architecture and write_bert(opened.model, architecture)
    if found:
        arrays, config = found
        config["sep_token_id"] = opened.tokenizer.sep_id
        if opened.labels:
            config["id2label"] = {str(i): label for i, label in enumerate(opened.labels)}
            config["label2id"] = {label: i for i, label in enumerate(opened.labels)}
    else:  # only an original BERT has one
        weights = learned_weights(opened.model)
        arrays = {name: ops.convert_to_numpy(w) for name, w in weights.items()}
        config = {
            "model_type": OWN,
            "task": opened.task,
            "labels": list(opened.labels),
            **_card_entries(opened),
            "model": json.loads(in_float32(opened.model).to_json()),
        }
    arrays = {name: np.ascontiguousarray(array, "float32") for name, array in arrays.items()}
    write_checkpoint(path, arrays, config)
    _write_tokenizer(opened.tokenizer, path.parent, opened.length)
    return architecture if found else None


def _card_entries(opened):
    """Returns the entries of a card besides task, tokenizer and class names, a dict."""
    entries, fitted = {"length": opened.length, "pairs": opened.pairs}, opened.confidence
    if fitted != Confidence():
        entries |= {TEMPERATURE: fitted.temperature, THRESHOLD: fitted.energy_threshold}
    return entries


def _write_tokenizer(tokenizer, folder, length):
    """Writes the three files in which transformers looks for a tokenizer."""
    text = tokenizer.to_bert().to_str(pretty=True)
    with atomic_write(folder / "tokenizer.json") as temporary:
        temporary.write_text(text, "utf-8")
    with atomic_write(folder / "vocab.txt") as temporary:
        temporary.write_text("".join(f"{token}\n" for token in tokenizer.tokens), "utf-8")
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
