"""Odd files of the classifiers that the web page learns."""

import numpy as np

from attack.models import ROOT, require_answers
from attack.mutations import mutate_json, write_json
from keras_gmlp.inference import images as inference
from keras_gmlp.inference.page_head import KIND, add_head
from keras_gmlp.inference.similarity import make_embedder
from keras_gmlp.utils.card import DIGEST, read_card

MODEL = ROOT / "saved_models" / "gmlp_photo_64" / "model_features.tflite"


class Heads:
    """Each case is the file of a classifier, which answers for a picture."""

    def __init__(self, folder):
        self.classifier = inference.load(MODEL)
        self.image = ROOT / "docs" / "cat.jpg"
        embed = make_embedder(self.classifier)
        features = embed(np.zeros((1, *self.classifier.image_shape), "uint8")).shape[1]
        row = [0.01 * (n % 7) for n in range(features)]
        self.head = {
            "kind": KIND,
            "model": "gmlp_photo_64",
            DIGEST: read_card(MODEL)[DIGEST],
            "labels": ["a", "b"],
            "weights": [row, row[::-1]],
            "bias": [0.0, 0.1],
            "parts": [[1, 0.5, 0.5], [0.75, 0.5, 0.5]],
        }

    def make(self, rng, folder):
        head = dict(self.head)
        weights = head.pop("weights")
        # Half of the changes outside of the weights, which are most of the file.
        head = mutate_json(head, rng) if rng.random() < 0.6 else head
        weights = mutate_json(weights, rng) if rng.random() < 0.4 else weights
        head = {**head, "weights": weights} if isinstance(head, dict) else head
        path = folder / "head.json"
        path.write_bytes(write_json(head, rng, 0.2))
        return path

    def check(self, path):
        require_answers(add_head(self.classifier, path).classify(self.image))
