"""Odd cards in `.tflite` files, and odd config.json files next to published weights."""

import hashlib
import json

import numpy as np
from load_app import load_app
from safetensors.numpy import save_file

from attack.models import TFLITE, read_flatbuffer, require_answers, write_members
from attack.mutations import mutate, mutate_json, write_json
from keras_gmlp.inference import images as inference
from keras_gmlp.utils.card import CARD, DIGEST, LABELS
from keras_gmlp.weights.files import read_checkpoint

CONFIG = {
    "architecture": "gmlp_s16_224",
    "num_classes": 3,
    "global_pool": "avg",
    "model_args": {"img_size": [16, 16], "in_chans": 3},
    "pretrained_cfg": {
        "input_size": [3, 16, 16],
        "crop_pct": 0.9,
        "crop_mode": "center",
        "interpolation": "bicubic",
        "mean": [0.5, 0.5, 0.5],
        "std": [0.5, 0.5, 0.5],
        "label_names": ["a", "b", "c"],
    },
}

METADATA = {
    "image_shape": [32, 32, 3],
    "pixels": [0, 255],
    "crop": 0.9,
    "interpolation": "bicubic",
    "test_accuracy": 0.9,
    "temperature": 1.2,
    "energy_threshold": -3.0,
    "named": True,
    "preset": "gmlp_n4_32",
    "arguments": {"classes": 10},
}


class Cards:
    """Each case is a card, which classification and the page's list read, or a config.json."""

    def __init__(self, folder):
        self.model = read_flatbuffer(TFLITE)
        self.digest = hashlib.sha256(self.model).hexdigest()
        self.quiet, self.serve = load_app("cli").quiet, load_app("serve")
        self.image = TFLITE.parents[2] / "docs" / "cat.jpg"

    def make(self, rng, folder):
        card = CONFIG if rng.random() < 0.4 else {**METADATA, DIGEST: self.digest}
        text = write_json(mutate_json(card, rng), rng, 0.3)
        if card is CONFIG:
            save_file({"w": np.zeros((2, 2), "float32")}, folder / "model.safetensors")
            (folder / "config.json").write_bytes(text)
            return folder / "model.safetensors"
        path, labels = folder / "model.tflite", "".join(f"{i}\n" for i in range(10)).encode()
        labels = mutate(labels, rng) if rng.random() < 0.3 else labels
        return write_members(path, self.model, {CARD: text, LABELS: labels})

    def check(self, path):
        if path.suffix == ".safetensors":
            read_checkpoint(path)
            return
        models = self.serve.describe_models(path.parent, lambda line: None)
        json.dumps(models, allow_nan=False)
        with self.quiet():  # as apps/classify.py loads it
            classifier = inference.load(path)
        require_answers(classifier.classify(self.image))
