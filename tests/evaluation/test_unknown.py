"""A calibrated model rejects what it never saw."""

import json

import keras
import numpy as np
from PIL import Image
from sklearn.datasets import load_digits

import keras_gmlp
from keras_gmlp import data
from keras_gmlp.evaluation.calibration import calibrate_run
from keras_gmlp.inference import images as inference
from keras_gmlp.objectives.losses import CrossEntropy
from keras_gmlp.utils.card import write_card


def test_digits_that_it_never_saw_are_rejected(tmp_path):
    """Trained on digits 0 to 4; 5 to 9 have higher energies, and the classes stay as they are."""
    digits = load_digits()
    for i, (pixels, label) in enumerate(zip(digits.images, digits.target, strict=True)):
        shade = np.repeat(pixels[..., None] * 255 / 16, 3, axis=-1).astype("uint8")
        path = tmp_path / "digits" / (str(label) if label < 5 else "_other") / f"{i}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(shade).save(path)
    name = str(tmp_path / "digits")
    held_out = data.hold_out(data.load(name, (8, 8)), 0.2)
    model = keras_gmlp.gMLP(64, 2, 128, input_shape=(8, 8, 3), patch_size=2, classes=5)
    model.compile(keras.optimizers.AdamW(3e-3), CrossEntropy(), jit_compile=False)
    model.fit(*held_out.train.arrays(), batch_size=64, epochs=20, verbose=0)
    run = tmp_path / "run"
    run.mkdir()
    model.save(run / "model.keras")
    write_card(run / "model.keras", model, held_out.labels)
    (run / "recipe.json").write_text(json.dumps({"data": name, "validation": 0.2}))
    images, labels = held_out.test.arrays()
    before = inference.load(run / "model.keras")
    result = calibrate_run(run)
    after = inference.load(run / "model.keras")
    logits = before.logits(images)
    np.testing.assert_array_equal(after.logits(images), logits)
    classes = after.confidence.probabilities(logits).argmax(-1)
    np.testing.assert_array_equal(classes, logits.argmax(-1))
    assert np.mean(classes == labels) > 0.9
    assert (result["split"], result["other_images"]) == ("validation", 896)
    assert result["auroc"] >= 0.9
    assert result["rejected"] <= 0.05 < result["other_rejected"]
    assert np.mean(after.confidence.is_known(logits)) > 0.85
