"""Odd tokenizers inside of `.tflite` files, with the hash that the card demands.

A `.keras` file is read by the same functions, after a child process parsed it.
"""

import hashlib
import json
import zipfile

from load_app import ROOT, load_app

from attack.models import read_flatbuffer, require_answers, write_members
from attack.mutations import mutate, mutate_json
from keras_gmlp.inference.text import load
from keras_gmlp.utils.card import CARD, TOKENIZER

MODEL = ROOT / "saved_models" / "amlp_nano-sst2" / "model.tflite"

REGEX = {"Regex": "(a+)+$"}
STEPS = {  # of other tokenizers, and some that take long
    "normalizer": (
        None,
        {"type": "Lowercase"},
        {"type": "Replace", "pattern": {"String": "a"}, "content": "a" * 1000},
        {"type": "Replace", "pattern": REGEX, "content": "b"},
        {"type": "Replace", "pattern": {"Regex": "("}, "content": "b"},
        {
            "type": "Sequence",
            "normalizers": [{"type": "Prepend", "prepend": "a" * 10_000}] * 100,
        },
    ),
    "pre_tokenizer": (
        None,
        {"type": "Whitespace"},
        {"type": "Split", "pattern": REGEX, "behavior": "Isolated", "invert": False},
        {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True},
    ),
    "decoder": (None, {"type": "BPEDecoder", "suffix": "</w>"}),
    "post_processor": ({"type": "BertProcessing", "sep": ["[SEP]", 99999], "cls": ["[CLS]", 7]},),
    "truncation": ({"direction": "Right", "max_length": 0, "strategy": "LongestFirst"},),
    "padding": ({"strategy": {"Fixed": 10**9}, "direction": "Right", "pad_id": 0},),
}

TEXTS = ("a gem", "[MASK] a bore [SEP] good", "a" * 40, "tối パンダ", "\u202e")


class Tokenizers:
    """Each case is a text classifier whose tokenizer is odd; it classifies a few texts."""

    def __init__(self, folder):
        with zipfile.ZipFile(MODEL) as archive:
            self.members = {name: archive.read(name) for name in archive.namelist()}
        self.quiet, self.model = load_app("cli").quiet, read_flatbuffer(MODEL)

    def make(self, rng, folder):
        text = change_tokenizer(self.members[TOKENIZER], rng)
        card = json.loads(self.members[CARD])
        card["tokenizer"] = hashlib.sha256(text).hexdigest()
        members = {**self.members, CARD: json.dumps(card), TOKENIZER: text}
        return write_members(folder / "model.tflite", self.model, members)

    def check(self, path):
        with self.quiet():  # as apps/classify_text.py loads it
            model = load(path, warn=lambda text: None)
        for results in model.classify(list(TEXTS)):
            require_answers((result["label"], result["score"]) for result in results)


def change_tokenizer(text, rng):
    """Returns a tokenizer.json with odd parts, an odd vocabulary, or damaged bytes."""
    change, value = rng.randrange(6), json.loads(text)
    if change == 0:
        return mutate(text, rng)
    if change == 1:
        name = rng.choice(list(STEPS))
        value[name] = rng.choice(STEPS[name])
    elif change == 2:
        vocabulary = value["model"]["vocab"]
        name = rng.choice((*list(vocabulary)[:6], rng.choice(list(vocabulary))))
        if rng.random() < 0.5:
            del vocabulary[name]
        number = rng.choice((-1, 0, 5, len(vocabulary), len(vocabulary) + 9, 2**31, 2**32, 1.5))
        vocabulary[rng.choice((name, "x" * 9, "", "\u0000", "##"))] = number
    elif change == 3:
        kind = rng.choice(("BPE", "Unigram", "WordLevel", "WordPiece"))
        model = {"type": kind, "vocab": value["model"]["vocab"], "unk_token": "[UNK]"}
        if kind == "Unigram":
            model |= {"vocab": [[name, -1.0] for name in model["vocab"]], "unk_id": 1}
        value["model"] = {**model, **({"merges": []} if kind == "BPE" else {})}
    else:  # the vocabulary is most of a tokenizer
        vocabulary = value["model"].pop("vocab")
        value = mutate_json(value, rng)
        if isinstance(value, dict) and isinstance(value.get("model"), dict):
            value["model"]["vocab"] = vocabulary
    return json.dumps(value).encode()
