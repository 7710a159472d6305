"""Of a calibrated run, all files give the same probabilities and reject the same pictures."""

import json
import shutil

import numpy as np
import pytest
import tensorflow as tf
from colours import LABELS, save_colour_model
from pictures import write_pictures
from PIL import Image
from scipy.special import log_softmax, softmax

from keras_gmlp import data
from keras_gmlp.evaluation.calibration import calibrate_run
from keras_gmlp.export.verify import check_export, export_run
from keras_gmlp.tasks.confidence import Confidence, energies
from keras_gmlp.training.model_card import write_model_card
from keras_gmlp.utils.card import read_card
from keras_gmlp.weights.loading import load

FILES = ("model.keras", "model_float32.tflite", "saved_model")  # with equal logits


@pytest.fixture(scope="module")
def photos(tmp_path_factory):
    """Thirty shades of each colour, one in ten nearer to another, and forty greys of no class."""
    root, rng = tmp_path_factory.mktemp("photos"), np.random.default_rng(0)
    for place, label in enumerate(LABELS):
        for i in range(30):
            shown = (place + (i % 10 == 3)) % 3
            colour = rng.integers(0, 90, 3) + 120 * (np.arange(3) == shown)
            write_pictures(root / label, [f"{i}.png"], tuple(map(int, colour)), (8, 8))
    for i in range(40):
        grey = int(rng.integers(20, 60))
        write_pictures(root / "_other", [f"{i}.png"], (grey, grey, grey), (8, 8))
    return root


@pytest.fixture(scope="module")
def exported(photos, tmp_path_factory):
    """The folder of a run that was exported before it was calibrated, and after."""
    directory = tmp_path_factory.mktemp("run")
    save_colour_model(directory)
    recipe = {"data": str(photos), "validation": 0.5, "labels": LABELS, "image_shape": [8, 8, 3]}
    recipe["temperature"] = 1.0  # of a teacher, which does not scale probabilities
    (directory / "recipe.json").write_text(json.dumps(recipe))
    (directory / "metrics.json").write_text('{"test_accuracy": 0.9}')
    write_model_card(directory)
    export_run(directory, ["tflite_float32"])
    result = calibrate_run(directory, reject=0.1)
    export_run(directory, ["saved_model", "mediapipe"])
    return directory, result


@pytest.fixture
def run(exported, tmp_path):
    return shutil.copytree(exported[0], tmp_path / "run")


@pytest.fixture
def calibrate(app):
    """Runs the program; returns its result and its note, or `None` and the line of its error."""

    def calibrate(*arguments):
        code, out, note = app("calibrate", *arguments, "--json")
        if code == 0:
            return json.loads(out), note
        assert code == 1
        assert note.startswith("calibrate: ")
        assert note.count("\n") == 1
        return None, note

    return calibrate


def validation_images(photos):
    return data.hold_out(data.load(str(photos), (8, 8)), 0.5).validation.arrays()


def test_every_format_obeys(exported, photos, tmp_path, app):
    run, result = exported
    images, labels = validation_images(photos)
    logits = load(run / "model.keras").logits(images)
    assert (result["split"], result["images"], result["reject"]) == ("validation", len(labels), 0.1)
    assert result["rejected"] == pytest.approx(3 / 36, abs=1e-6)
    assert result["rejected"] < result["other_rejected"]
    assert result["auroc"] > 0.9
    temperature, threshold = result["temperature"], result["energy_threshold"]
    places = np.array([LABELS.index(label) for label in sorted(LABELS)])[labels]
    before, after = (
        log_softmax(logits / divisor, axis=1)[range(len(labels)), places].mean()
        for divisor in (1, temperature)
    )
    assert after > before
    for i in (0, 1, 2):
        Image.fromarray(images[i]).save(tmp_path / f"{i}.png")
    write_pictures(tmp_path, ["grey.png"], (30, 30, 30), (8, 8))
    for name in FILES:
        classifier = load(run / name)
        for i in (0, 1, 2):
            best, *_ = rows = classifier.answer(tmp_path / f"{i}.png")
            expected = softmax(logits[i] / temperature)
            found = [row["score"] for label in LABELS for row in rows if row["label"] == label]
            np.testing.assert_allclose(found, expected, atol=1e-5)
            assert best["known"] == (energies(logits[i], temperature) <= threshold)
            assert best["index"] == logits[i].argmax()
        assert not classifier.answer(tmp_path / "grey.png")[0]["known"]
    code, out, _ = app("classify", tmp_path / "grey.png", "--model", run)
    assert (code, out.splitlines()[1:]) == (0, ["  not one of the classes I know"])
    _, out, _ = app("classify", tmp_path / "grey.png", "--model", run, "--json")
    assert json.loads(out)["predictions"][0]["known"] is False


def test_exports_keep_the_calibration(exported, photos):
    run, result = exported
    images, labels = validation_images(photos)
    for name in ("model_mediapipe.tflite", "saved_model"):
        card = read_card(run / name)
        assert card["temperature"] == result["temperature"]
        assert card["energy_threshold"] == result["energy_threshold"]
    logits = load(run / "model.keras").logits(images)
    expected = softmax(logits / result["temperature"], axis=1)
    served = tf.saved_model.load(str(run / "saved_model")).signatures["serving_default"]
    found = served(image=tf.constant(images, tf.float32))
    np.testing.assert_allclose(found["probabilities"], expected, atol=1e-5)
    np.testing.assert_allclose(found["logits"], logits, atol=1e-4)
    checked = check_export(run / "model_mediapipe.tflite", images, logits, labels)
    assert checked["max_probability_difference"] < 0.02
    assert load(run / "model_mediapipe.tflite").confidence == Confidence()


def test_record_and_model_card(run, calibrate, app):
    def contents():
        return {path: path.read_bytes() for path in run.rglob("*") if path.is_file()}

    result, note = calibrate(run)
    assert "mediapipe" not in note  # has this temperature
    before = contents()
    assert calibrate(run) == (result, note)
    assert contents() == before
    metrics = json.loads((run / "metrics.json").read_text())
    assert metrics["calibration"] == result
    assert metrics["test_accuracy"] == 0.9
    text = (run / "README.md").read_text("utf-8")
    assert f"| temperature | {round(result['temperature'], 4)} |" in text
    _, out, note = app("calibrate", run, "--split", "test")
    assert "of 40 other pictures" in out
    assert "model_mediapipe.tflite, saved_model" in note  # whose probabilities are their own
    mediapipe = run / "model_mediapipe.tflite"
    assert mediapipe.read_bytes() == before[mediapipe]


def test_evaluation_shows_what_is_rejected(run, photos, tmp_path, calibrate, app):
    result, _ = calibrate(run, "--data", photos, "--split", "test", "--reject", "0.2")
    for name in FILES:
        _, out, _ = app("evaluate", run / name, "--data", photos, "--json", "--out", tmp_path)
        assert json.loads(out)["models"][0]["rejected"] == result["rejected"]
    rows = (tmp_path / "predictions.csv").read_text().splitlines()
    unknown = sum(row.endswith(",0") for row in rows[1:])
    assert unknown == round(result["rejected"] * result["images"]) == 3


def test_no_threshold_on_other_data(run, photos, tmp_path, app):
    code, out, _ = app("calibrate", run, "--reject", "none")
    assert (code, "AUROC" in out) == (0, True)
    assert load(run / "model.keras").confidence.energy_threshold is None
    new = shutil.copytree(photos, tmp_path / "new")
    shutil.rmtree(new / "_other")
    result = calibrate_run(run, str(new), reject=None)
    assert (result["split"], result["images"]) == ("all", 90)
    assert not {"auroc", "energy_threshold", "rejected"} & set(result)


def test_what_cannot_be_calibrated_is_refused_before_a_change(run, photos, tmp_path, calibrate):
    _, line = calibrate(run, "--data", f"{photos}/", "--split", "all")
    assert "trained on" in line
    recipe = json.loads((run / "recipe.json").read_text())
    (run / "recipe.json").write_text(json.dumps({**recipe, "validation": None}))
    before = (run / "model.keras").read_bytes()
    assert "validation images" in calibrate(run)[1]
    for name in LABELS:
        shutil.copytree(photos / name, tmp_path / "new" / f"not {name}")
    assert "none of its classes" in calibrate(run, "--data", tmp_path / "new")[1]
    (run / "model_own.tflite").write_bytes(b"TFL3")
    assert "model_own.tflite" in calibrate(run)[1]
    assert (run / "model.keras").read_bytes() == before
