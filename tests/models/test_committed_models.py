"""Every image model in saved_models/ gives the logits it gave before the modules moved."""

import json
from pathlib import Path

import keras
import numpy as np
import pytest

from keras_gmlp import load_model
from keras_gmlp.utils.card import read_card

SAVED_MODELS = Path(__file__).resolve().parents[2] / "saved_models"
# Made in float64 by version 0.1.0, so that no processor's rounding shows.
LOGITS = json.loads(Path(__file__).with_name("reference_logits.json").read_text())


def in_float64(model):
    """The same model computed in float64; external attention still casts to float32 inside."""
    clone = keras.models.model_from_json(model.to_json().replace('"float32"', '"float64"'))
    clone.set_weights(model.get_weights())
    return clone


def test_every_committed_image_model_has_logits():
    paths = SAVED_MODELS.glob("*/model.keras")
    paths = [path for path in paths if not path.with_name("tokenizer.json").exists()]
    assert {path.relative_to(SAVED_MODELS).as_posix() for path in paths} == set(LOGITS)


@pytest.mark.parametrize("name", LOGITS)
def test_logits_are_the_same(name):
    model = load_model(SAVED_MODELS / name, compile=False)
    shape = (2, *model.input_shape[1:])
    images = np.random.default_rng(0).integers(0, 256, shape).astype("float64")
    logits = keras.ops.convert_to_numpy(in_float64(model)(images, training=False))
    np.testing.assert_allclose(logits, LOGITS[name], atol=1e-6, rtol=0)


def test_included_models_for_programs_are_calibrated_and_reject():
    """The models that programs and the page open, which are those with a TFLite file."""
    paths = {path.parent for path in SAVED_MODELS.glob("*/model*.tflite")}
    folders = [path for path in paths if not (path / "tokenizer.json").exists()]
    assert len(folders) == 3
    for folder in folders:
        fitted = json.loads((folder / "metrics.json").read_text())["calibration"]
        for path in folder.glob("model*.*"):
            card = read_card(path)
            for name in ("temperature", "energy_threshold"):
                assert card[name] == fitted[name], path
