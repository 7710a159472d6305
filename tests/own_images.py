"""A folder of tiny coloured pictures and a model to start from, for tests of fine-tuning."""

import numpy as np
from PIL import Image

import keras_gmlp
from keras_gmlp.runs import choosing
from keras_gmlp.utils import sources
from keras_gmlp.weights.pretrained import Pretrained

SIZES = {"dim": 16, "depth": 1, "hidden_dim": 32, "patch_size": 4, "input_shape": (8, 8, 3)}
MEANS = {"blue": (80, 80, 150), "green": (80, 150, 80), "red": (150, 80, 80)}


def write_start(path, seed=1):
    """Writes a `.keras` file with random weights for three other classes."""
    arguments = {**SIZES, "classes": 3}
    model = keras_gmlp.build("gmlp_n4_32", **arguments)
    rng = np.random.default_rng(seed)
    # Keras draws other initial matrices in each process; norms and biases stay the same.
    centres = [w if w.ndim == 1 else np.zeros_like(w) for w in model.get_weights()]
    drawn = [rng.normal(w, 0.05 if w.ndim == 1 else 0.3).astype(w.dtype) for w in centres]
    model.set_weights(drawn)
    start = Pretrained(model, "gmlp_n4_32", ("a", "b", "c"), {}, str(path), arguments=arguments)
    start.save(path)
    return str(path)


def write_folder(place, train=20, test=4, validation=0, noise=110, classes=3):
    """Writes noisy pictures of 8 by 8 pixels; the mean colour is the class."""
    rng = np.random.default_rng(0)
    for split, count in (("train", train), ("test", test), ("val", validation)):
        for label, mean in list(MEANS.items())[:classes]:
            for number in range(count):
                pixels = rng.normal(mean, noise, (8, 8, 3)).clip(0, 255).astype("uint8")
                path = place / split / label / f"{number:02}.png"
                path.parent.mkdir(parents=True, exist_ok=True)
                Image.fromarray(pixels).save(path)
    return str(place)


def replace_backbone(models, monkeypatch):
    """Writes a tiny model in place of the included backbone, which trains for an epoch."""
    (models / sources.DEFAULT_BACKBONE).mkdir(parents=True)
    write_start(models / sources.DEFAULT_BACKBONE / "model.keras")
    monkeypatch.setattr(sources, "SHIPPED", models)
    monkeypatch.setattr(choosing, "plan_training", lambda images: {"epochs": 1, "batch_size": 8})
