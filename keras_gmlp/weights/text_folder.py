"""Text models as folders that the package transformers reads, both ways."""

import dataclasses
import json
from pathlib import Path

import keras
import numpy as np
from keras import ops

from keras_gmlp.data.text.tokenizer import Tokenizer
from keras_gmlp.inference import text as inference
from keras_gmlp.models.precision import in_float32
from keras_gmlp.models.structure import learned_weights
from keras_gmlp.tasks.confidence import TEMPERATURE, THRESHOLD, Confidence, read_confidence
from keras_gmlp.tasks.registry import find_task
from keras_gmlp.utils.card import read_card, write_text_card
from keras_gmlp.utils.files import atomic_write, read_json, write_json
from keras_gmlp.utils.labels import check_labels
from keras_gmlp.utils.shipped import find_shipped
from keras_gmlp.weights.bert import PublishedText, open_bert, write_bert
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
    found = read_text_folder(source)
    if not found.has_head:
        raise ValueError(
            f"{source}: a BertModel, which has no head and answers nothing; give it one: "
            f"apps/train_text.py --task DATA --weights {source}"
        )
    opened = inference.from_keras(found.model, found.tokenizer, found.labels, found.length)
    return dataclasses.replace(opened, pairs=found.pairs, confidence=found.confidence)


def save_text_model(opened, path):
    """Writes a `TextModel` as a `.keras` file with a card: task, tokenizer, class names."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_write(path) as temporary:
        in_float32(opened.model).save(temporary)
        card = {"length": opened.length, "pairs": opened.pairs, **_confidence_entries(opened)}
        write_text_card(temporary, opened.task, opened.tokenizer, opened.labels, card)
    return path


def read_text_folder(source):
    """Opens a folder of transformers or of `write_text_folder` as a `PublishedText`."""
    path = Path(source).expanduser() / "config.json"
    settings = None if str(source).startswith(HUB) else read_json(path)
    if isinstance(settings, dict) and settings.get("model_type") == OWN:
        return _read_own(path, settings)
    found = open_bert(source)
    if found.tokenizer is None:
        raise ValueError(
            f"{source}: has no tokenizer; expected tokenizer.json or vocab.txt next to config.json."
        )
    return found


def _read_own(path, settings):
    """Opens a folder with a config.json that `write_text_folder` wrote for this package."""
    try:
        model = keras.models.model_from_json(json.dumps(settings["model"]))
        if not isinstance(model, keras.Model):
            raise ValueError(f"holds a {type(model).__name__}")
        labels = tuple(settings["labels"])
        check_labels(labels, "labels")
        fields = {"length": settings["length"], "pairs": settings["pairs"]}
        fields["confidence"] = read_confidence(settings)
    except Exception as error:  # Keras raises errors of many classes
        reason = " ".join(str(error).split())[:200]
        raise ValueError(
            f"{path}: not a config.json that apps/convert.py wrote ({reason})."
        ) from None
    weights, arrays = learned_weights(model), read_checkpoint(path.with_name(WEIGHTS)).arrays
    if set(weights) != set(arrays):
        some = ", ".join(sorted(set(weights) ^ set(arrays))[:3])
        raise ValueError(f"{path.with_name(WEIGHTS)}: does not fit config.json ({some}).")
    for name, weight in weights.items():
        if arrays[name].shape != tuple(weight.shape):
            raise ValueError(
                f"{path.with_name(WEIGHTS)}: {name} has shape {arrays[name].shape}; expected "
                f"{tuple(weight.shape)} as in config.json."
            )
        weight.assign(arrays[name])
    return PublishedText(model, Tokenizer.load(path.with_name("tokenizer.json")), labels, **fields)


def write_text_folder(opened, path):
    """Writes a text model as a folder; returns the class of transformers that opens it, or `None`.

    That class opens an original BERT: norms after the branches, learned positions. All other models
    get the weights by their paths and a config.json that `read_text_folder` opens.
    """
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
    else:
        weights = learned_weights(opened.model)
        arrays = {name: ops.convert_to_numpy(w) for name, w in weights.items()}
        config = {
            "model_type": OWN,
            "task": opened.task,
            "labels": list(opened.labels),
            "length": opened.length,
            "pairs": opened.pairs,
            **_confidence_entries(opened),
            "model": json.loads(in_float32(opened.model).to_json()),
        }
    arrays = {name: np.ascontiguousarray(array, "float32") for name, array in arrays.items()}
    write_checkpoint(path, arrays, config)
    _write_tokenizer(opened.tokenizer, path.parent, opened.length)
    return architecture if found else None


def _confidence_entries(opened):
    """Returns the entries of a card for what was calibrated, a dict; an empty one without it."""
    fitted = opened.confidence
    entries = {TEMPERATURE: fitted.temperature, THRESHOLD: fitted.energy_threshold}
    return {} if fitted == Confidence() else entries


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
