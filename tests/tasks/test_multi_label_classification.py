"""Images with any number of labels: data, metric, thresholds, training, export and programs."""

import json

import keras
import numpy as np
import pytest
from colours import colour_model
from load_app import load_app
from PIL import Image
from sklearn.metrics import average_precision_score, f1_score

import keras_gmlp
from keras_gmlp import data
from keras_gmlp.data.images import samples
from keras_gmlp.data.validation import make_folds
from keras_gmlp.export.verify import export_run
from keras_gmlp.inspection.check import check_folder
from keras_gmlp.objectives.metrics import MeanAveragePrecision, choose_thresholds
from keras_gmlp.tasks.image_classification import ImageClassification
from keras_gmlp.tasks.multi_label_classification import MultiLabelClassification
from keras_gmlp.training.recipes import Recipe
from keras_gmlp.utils.card import read_card, write_card
from keras_gmlp.weights.loading import load

COLOURS = ("blue", "green", "red")


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """Sixty pictures with any of three colours, each with its own labels in a table."""
    root, rows = tmp_path_factory.mktemp("colours"), ["path,label"]
    random = np.random.default_rng(0)
    for number in range(60):
        present = random.random(3) < 0.5
        labels = "|".join(np.array(COLOURS[::-1])[present])  # red, green, blue as in a pixel
        pixels = np.full((8, 8, 3), 255 * present, "uint8")
        Image.fromarray(pixels).save(root / f"{number:02}.png")
        rows.append(f"{number:02}.png,{labels}")
    (root / "colours.csv").write_text("\n".join(rows) + "\n")
    return root / "colours.csv"


@pytest.fixture(scope="module")
def run(table, tmp_path_factory):
    """A trained run on the colours."""
    if keras.backend.backend() == "jax":
        pytest.skip("trained on the other backends; on JAX, too, the metric is tested")
    directory = tmp_path_factory.mktemp("runs") / "run"
    opened = data.hold_out(data.load(table, (8, 8)), 0.25)
    model = keras_gmlp.gMLP(
        input_shape=(8, 8, 3), patch_size=4, dim=16, depth=1, hidden_dim=16, classes=3
    )
    task = ImageClassification(augmentation=data.Augmentation(crop=0, flip=False, mixup=0.2))
    recipe = Recipe(epochs=4, batch_size=2, learning_rate=0.02, precision="float32", task=task)
    metrics = keras_gmlp.train(model, opened, recipe, directory, verbose=0)
    return directory, opened, metrics


def test_table_of_several_labels(table):
    opened = data.load(table, (8, 8))
    assert opened.labels == COLOURS
    rows = opened.label_rows()[opened.train.labels]
    images, _ = opened.train.arrays()
    np.testing.assert_array_equal(images[:, 0, 0, ::-1] > 0, rows)
    assert {tuple(row) for row in rows} == {tuple(row) for row in opened.label_rows()}  # all eight
    held = data.hold_out(opened, 0.25)
    for split in held.splits().values():
        assert held.label_rows()[split.labels].any(0).all()
    images, rows = next(iter(data.evaluation_batches(held)))
    np.testing.assert_array_equal(np.asarray(images)[:, 0, 0, ::-1] > 0, np.asarray(rows))

    augmentation = data.Augmentation(crop=0, flip=False, mixup=1.0)
    images, rows = next(iter(data.training_batches(opened, 16, augmentation)))
    shares = np.asarray(images)[:, 0, 0, ::-1] / 255
    np.testing.assert_allclose(np.asarray(rows), shares, atol=1e-5)
    assert ((shares > 0.01) & (shares < 0.99)).any()  # mixed images have mixed labels


@pytest.mark.once
def test_column_named_labels_and_packed_sets(table, tmp_path):
    lines = table.read_text().splitlines()
    single = [line for line in lines if "|" not in line]
    (table.parent / "one.csv").write_text("\n".join(["path,labels", *single[1:]]))
    opened = data.load(table.parent / "one.csv", (8, 8))
    assert opened.label_sets == ((), (0,), (1,), (2,))
    data.pack(opened, tmp_path / "packed")
    packed = data.load(tmp_path / "packed")
    assert packed.label_sets == opened.label_sets
    np.testing.assert_array_equal(packed.test.labels, opened.test.labels)


@pytest.mark.parametrize("batch", [7, 200])
def test_average_precision_is_that_of_scikit_learn(batch):
    random = np.random.default_rng(1)
    rows = (random.random((200, 4)) < [0.5, 0.1, 0.9, 0.0]).astype("float32")
    logits = np.round(random.normal(size=(200, 4)) + rows, 1).astype("float32")  # with ties
    metric = MeanAveragePrecision(4)
    for start in range(0, 200, batch):
        metric.update_state(rows[start : start + batch], logits[start : start + batch])
    expected = np.mean([average_precision_score(rows[:, i], logits[:, i]) for i in range(3)])
    np.testing.assert_allclose(float(metric.result()), expected, atol=1e-5)
    metric.reset_state()
    assert float(metric.result()) == 0


@pytest.mark.once
def test_thresholds_have_the_best_f1():
    random = np.random.default_rng(2)
    rows = (random.random((60, 3)) < [0.5, 0.2, 0.0]).astype("float32")
    probabilities = np.round(random.random((60, 3)) * 0.6 + 0.4 * rows, 2)
    thresholds = choose_thresholds(rows, probabilities)
    for truth, scores, threshold in zip(rows.T[:2], probabilities.T, thresholds, strict=False):
        best = max(f1_score(truth, scores >= score) for score in scores)
        assert f1_score(truth, scores >= threshold) == best
        assert threshold not in scores
    assert thresholds[2] == 0.5


def test_run_learns_and_records(run):
    directory, opened, metrics = run
    assert metrics["test_mean_average_precision"] > 0.9
    assert "test_accuracy" not in metrics
    recipe = json.loads((directory / "recipe.json").read_text())
    assert recipe["task"] == "multi_label_classification"
    classifier = load(directory)
    logits = classifier.logits(opened.validation.arrays()[0])
    rows = opened.label_rows()[opened.validation.labels]
    probabilities = keras.ops.convert_to_numpy(keras.ops.sigmoid(logits))
    # In batches of another size some processors add in another order: the sixth digit differs.
    expected = choose_thresholds(rows, probabilities)
    assert classifier.task == recipe["task"]
    assert classifier.confidence.thresholds == pytest.approx(expected, abs=2e-6)
    assert "model.find_labels(" in (directory / "README.md").read_text()


@pytest.mark.once
def test_label_without_training_images_is_refused():
    sets = ((0, 2), (0,), (1, 2), (1,))
    split = samples.from_pixels(np.zeros((4, 4, 4, 3), "uint8"), np.arange(4))
    opened = data.ImageData("few", ("a", "b", "c"), (4, 4, 3), split, split, label_sets=sets)
    with pytest.raises(ValueError, match="label c"):
        data.hold_out(opened, 0.5)


@pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="exported on TensorFlow")
def test_exported_file_gives_the_labels_that_apply(run, app):
    directory, opened, metrics = run
    result = export_run(directory, ["tflite"], opened)["tflite"]
    score = metrics["test_mean_average_precision"]
    assert abs(result["mean_average_precision"] - score) < 0.02
    assert read_card(directory / "model.tflite")["thresholds"]
    path = opened.test.paths[0].decode()
    for name in ("model.keras", "model.tflite"):
        classifier = load(directory / name)
        found = classifier.find_labels(path)
        everything = classifier.classify(path, 3)
        assert len(everything) == 3
        least = dict(zip(classifier.labels, classifier.confidence.thresholds, strict=True))
        assert found == [pair for pair in everything if pair[1] >= least[pair[0]]]
        _, out, _ = app("classify", path, "--model", directory / name, "--json")
        applying = [row["label"] for row in json.loads(out)["predictions"] if row["applies"]]
        assert applying == [label for label, _ in found]
        code, out, _ = app("classify", path, "--model", directory / name)
        printed = [line.split()[0] for line in out.splitlines()[1:]]
        assert (code, printed) == (0, applying or ["no"])
    with pytest.raises(ValueError, match="mediapipe"):
        export_run(directory, ["mediapipe"], opened)
    assert "thresholds" in load_app("serve").read_metadata(directory / "model.tflite")


@pytest.mark.once
def test_card_with_other_thresholds(tmp_path):
    model = colour_model()
    model.save(tmp_path / "model.keras")
    write_card(tmp_path / "model.keras", model, COLOURS, {"thresholds": [0.5, 0.5, "1"]})
    with pytest.raises(ValueError, match="threshold"):
        load(tmp_path)
    older = tmp_path / "older.keras"  # whose card names no task
    model.save(older)
    write_card(older, model, COLOURS, {"thresholds": [0.5, 0.5, 1]})
    assert load(older).task == "multi_label_classification"


@pytest.mark.once
def test_what_several_labels_do_not_allow(table):
    opened = data.load(table, (8, 8))
    for refuse in (lambda: make_folds(opened), lambda: check_folder(table)):
        with pytest.raises(ValueError, match="any number of labels"):
            refuse()
    with pytest.raises(ValueError, match="several labels"):
        MultiLabelClassification(balance=0.5)
