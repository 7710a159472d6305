"""Runs on a few tiny images: what they leave behind, and what a kill leaves behind."""

import dataclasses
import json
import shutil
from pathlib import Path

import keras
import numpy as np
import pytest
import tensorflow as tf
from check_layer import to_numpy
from read_table import read_table
from tiny_run import (
    PIPELINES,
    RECIPE,
    Kill,
    KillWithin,
    make_data,
    tiny_model,
    train_killed,
    train_tiny,
)

import keras_gmlp
from keras_gmlp.data import evaluation_batches
from keras_gmlp.layers import WhiteningConvolution
from keras_gmlp.objectives.optimizers import make_optimizer
from keras_gmlp.tasks.image_classification import ImageClassification
from keras_gmlp.training.callbacks import DivergedError
from keras_gmlp.training.checkpoints import RunCheckpoint
from keras_gmlp.training.pipeline import prepare_fit
from keras_gmlp.training.recipes import RECIPES, Recipe
from keras_gmlp.training.train import train
from keras_gmlp.utils.files import directory_lock

MUON = dataclasses.replace(RECIPE, epochs=3, optimizer="muon", learning_rate=0.03)

pytestmark = pytest.mark.eager


def history(directory):
    return read_table(directory / "history.csv")


@dataclasses.dataclass
class CompleteRun:
    """What a run left, and how often its batches on the host were begun."""

    pipeline: str
    directory: Path
    weights: list = None
    metrics: dict = None
    begun: int = 0

    def expect_the_same(self, directory):
        """Resumes the run in another folder, and expects the same end."""
        weights, _ = train_tiny(directory, self.pipeline, recipe=MUON)
        for ours, theirs in zip(weights, self.weights, strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-6, atol=1e-6)
        # Each epoch once, with the metrics of the whole epoch.
        for ours, theirs in zip(history(directory), history(self.directory), strict=True):
            for name in ours.keys() - {"seconds"}:
                assert float(ours[name]) == pytest.approx(float(theirs[name]), rel=1e-5)


@pytest.fixture(scope="module", params=PIPELINES)
def run(request, tmp_path_factory):
    run = CompleteRun(request.param, tmp_path_factory.mktemp("run"))
    begun = tf.Variable(0, dtype=tf.int64)

    def count(self, *arguments, original=ImageClassification.training_batches):
        batches = original(self, *arguments)
        once = tf.data.Dataset.range(1).map(lambda _: begun.assign_add(1))
        counted = once.flat_map(lambda _: batches)
        return counted.apply(tf.data.experimental.assert_cardinality(len(batches)))

    with pytest.MonkeyPatch.context() as patch:
        if keras.backend.backend() == "tensorflow":  # as the mark `eager`, for the same rounding
            patch.setattr(keras.Model, "run_eagerly", property(lambda _: True, lambda *_: None))
        patch.setattr(ImageClassification, "training_batches", count)
        extra = {"preset": "tiny"}
        run.weights, run.metrics = train_tiny(run.directory, run.pipeline, recipe=MUON, extra=extra)
    run.begun = int(begun)
    return run


@pytest.mark.once
def test_arrays_train_by_the_name_of_a_recipe_and_are_saved_in_float32(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    recipe = dataclasses.replace(RECIPES["quick"], epochs=1)
    monkeypatch.setitem(RECIPES, "quick", recipe)
    images, labels = np.zeros((20, 8, 8, 3), "uint8"), np.arange(20) % 2
    model = tiny_model(**recipe.model_arguments())
    metrics = keras_gmlp.train(model, (images, labels), "quick", verbose=0)
    (directory,) = (tmp_path / "runs").iterdir()
    assert directory.name.startswith(f"{model.name}-arrays-")
    assert (metrics["epochs"], metrics["test_accuracy"]) == (1, 0.5)
    assert recipe.precision == "mixed_bfloat16"
    reloaded = keras.saving.load_model(directory / "model.keras")
    assert {layer.dtype_policy.name for layer in reloaded.layers} == {"float32"}
    with pytest.raises(ValueError, match="quik"):
        keras_gmlp.train(model, (images, labels), "quik")


def test_run_leaves_everything(run):
    directory, metrics = run.directory, run.metrics
    names = {"README.md", "curves.png", "history.csv", "labels.txt", "metrics.json"}
    assert {path.name for path in directory.iterdir()} == names | {"model.keras", "recipe.json"}
    assert metrics["test_accuracy"] == 1.0
    assert metrics == json.loads((directory / "metrics.json").read_text())
    assert (directory / "labels.txt").read_text() == "dark\nbright\n"
    assert "| `model.keras` | 1.0 |" in (directory / "README.md").read_text("utf-8")
    assert [row["epoch"] for row in history(directory)] == ["0", "1", "2"]
    _, median, _ = sorted(float(row["seconds"]) for row in history(directory))
    assert metrics["images_per_second"] == pytest.approx(24 / max(median, 0.01), rel=0.01, abs=0.05)
    recipe = json.loads((directory / "recipe.json").read_text())
    assert (recipe["preset"], recipe["data"]) == ("tiny", "shades")
    assert recipe["augmentation"]["mixup"] == 0.5
    assert recipe["environment"]["backend"] == keras.backend.backend()
    assert "keras" in recipe["environment"]["versions"]
    # Keras may look at a batch before the first epoch, which would count as an epoch.
    assert run.begun == (3 if run.pipeline == "host" else 0)


def test_saved_model_is_the_average_that_was_tested(run):
    reloaded = keras.saving.load_model(run.directory / "model.keras")
    test = evaluation_batches(make_data(), 8)
    loss, accuracy = reloaded.evaluate(test, verbose=0)
    assert accuracy == run.metrics["test_accuracy"]
    # Validation saw the averaged weights, smoothed labels aside: the same accuracy.
    assert float(history(run.directory)[-1]["val_accuracy"]) == pytest.approx(accuracy)
    assert loss == pytest.approx(run.metrics["test_loss"], abs=1e-5)


def test_complete_run_is_loaded_and_other_settings_are_refused(run):
    given = {"pipeline": run.pipeline, "extra": {"preset": "tiny"}}
    weights, metrics = train_tiny(run.directory, recipe=MUON, **given)
    assert metrics == run.metrics
    reloaded = keras.saving.load_model(run.directory / "model.keras")
    for ours, theirs in zip(weights, reloaded.get_weights(), strict=True):
        np.testing.assert_array_equal(ours, theirs)
    other = dataclasses.replace(MUON, epochs=5, seed=1)
    with pytest.raises(ValueError, match="epochs 3 there, 5 here"):
        train_tiny(run.directory, recipe=other, **given)


def test_run_goes_on_to_the_same_end(run, tmp_path, monkeypatch):
    """After a kill in an epoch, and one between the row of an epoch and its checkpoint."""
    found = train_killed(monkeypatch, tmp_path, 1, run.pipeline, recipe=MUON)
    assert found == ["000001.weights.h5"]
    first = (tmp_path / "history.csv").read_text().splitlines()[1]
    with open(tmp_path / "history.csv", "a") as file:
        file.write(f"1{first[1:]}\n2,0.")
    (tmp_path / "checkpoint" / ".99.000002.weights.h5").write_bytes(b"half a checkpoint")
    run.expect_the_same(tmp_path)


@pytest.mark.once
def test_layer_whose_weights_follow_from_the_data_is_set_once(tmp_path, monkeypatch):
    data, layer = make_data(), WhiteningConvolution(2)
    layer.adapt([data.train.arrays()[0] / 127.5 - 1])
    sizes = {"widths": (6,), "input_shape": (8, 8, 3), "classes": 2}
    killed, resumed = (keras_gmlp.ConvNet(**sizes) for _ in range(2))
    with pytest.raises(Kill):
        train(killed, data, RECIPE, tmp_path, verbose=0, callbacks=[KillWithin(1)])
    monkeypatch.delattr(WhiteningConvolution, "adapt")  # the checkpoint holds the kernel
    train(resumed, data, RECIPE, tmp_path, verbose=0)
    found, expected = (to_numpy(each.kernel) for each in (resumed.get_layer("stem"), layer))
    np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-4)


class StopAfterTwo(keras.callbacks.Callback):
    def on_epoch_end(self, epoch, logs=None):
        assert logs["seconds"] >= 0  # called after the run's own callbacks
        self.model.stop_training = epoch == 1


@pytest.mark.once
def test_restart_trains_anew_and_a_callback_of_the_user_may_end_the_run(run, tmp_path):
    directory = shutil.copytree(run.directory, tmp_path / "run")
    (directory / "saved_model" / "variables").mkdir(parents=True)
    given = {"restart": True, "callbacks": [StopAfterTwo()]}
    _, metrics = train_tiny(directory, **given, recipe=dataclasses.replace(RECIPE, epochs=4))
    assert metrics["epochs"] == len(history(directory)) == 2
    assert "seconds" in metrics
    assert not (directory / "saved_model").exists()
    again = train_tiny(directory, recipe=dataclasses.replace(RECIPE, epochs=4))[1]
    assert again == metrics  # complete


@pytest.mark.once
@pytest.mark.parametrize("changes", [{}, {"optimizer": "muon", "precision": "mixed_float16"}])
def test_space_asked_for_holds_a_checkpoint(tmp_path, monkeypatch, changes):
    recipe, data = dataclasses.replace(RECIPE, **changes), make_data()
    asked, name = [], "keras_gmlp.training.checkpoints.require_space"
    monkeypatch.setattr(name, lambda path, size, reserve: asked.append(size))
    checkpoint = RunCheckpoint(tmp_path)
    checkpoint.set_model(model := tiny_model(**recipe.model_arguments()))
    prepare_fit(model, data, recipe)
    model.evaluate(evaluation_batches(data, 8), verbose=0)
    model.optimizer.build(model.trainable_variables)
    checkpoint.on_epoch_end(0)
    written = (tmp_path / "000001.weights.h5").stat().st_size
    assert written < asked[0] < 3 * written


@pytest.mark.once
def test_diverged_run_says_where_and_keeps_no_broken_checkpoint(tmp_path):
    recipe = dataclasses.replace(RECIPE, learning_rate=1e30, warmup=0.5)
    with pytest.raises(DivergedError, match="learning rate"):
        train(tiny_model(), make_data(), recipe, tmp_path, verbose=0)
    assert not (tmp_path / "model.keras").exists()
    for path in (tmp_path / "checkpoint").glob("*.h5"):
        model = tiny_model()
        model.load_weights(path)
        assert all(np.isfinite(w).all() for w in model.get_weights())


@pytest.mark.once
def test_second_process_is_kept_out(tmp_path, monkeypatch):
    monkeypatch.setattr("keras_gmlp.training.train.LOCK_TIMEOUT", 0.0)
    with directory_lock(tmp_path), pytest.raises(ValueError, match="another process"):
        train_tiny(tmp_path)


@pytest.mark.once
def test_model_that_does_not_fit_the_data(tmp_path):
    with pytest.raises(ValueError, match="input_shape"):
        train(tiny_model(input_shape=(8, 8, 1)), make_data(), RECIPE, tmp_path)
    with pytest.raises(ValueError, match="classes=2"):
        train(tiny_model(classes=3), make_data(), RECIPE, tmp_path)


SHELL = {"dim": 8, "depth": 1, "input_shape": (8, 8, 3), "patch_size": 4, "classes": 2}


@pytest.mark.once  # which weights decay, by their names
@pytest.mark.parametrize(
    "settings", [{}, {"optimizer": "muon"}, {"optimizer": "sgd"}, {"layer_decay": 0.5}]
)
def test_only_kernels_decay(settings):
    models = [
        keras_gmlp.gMLP(hidden_dim=12, **SHELL),
        keras_gmlp.ResMLP(**SHELL),
        keras_gmlp.EAMLP(num_heads=4, **SHELL),
        keras_gmlp.ViT(num_heads=2, distillation_token=True, **SHELL),
    ]
    variables = [v for model in models for v in model.trainable_variables]
    for variable in variables:
        variable.assign(np.ones(variable.shape))
    recipe = Recipe(**settings, weight_decay=0.5, learning_rate=0.1, warmup=0.0)
    made = make_optimizer(recipe, 100)
    made.build(variables)
    # With no gradient only the decay moves a weight. Two steps: the first is the warm-up's, at 0.
    zeros = [keras.ops.zeros(v.shape) for v in variables]
    for _ in range(2):
        made.apply(zeros, variables)
    decayed = [v.path for v in variables if np.abs(keras.ops.convert_to_numpy(v) - 1).max() > 1e-3]
    assert decayed == [v.path for v in variables if v.name == "kernel"]


@pytest.mark.once
def test_schedule_warms_up_and_ends_at_zero():
    made = make_optimizer(Recipe(learning_rate=0.2, warmup=0.1), total_steps=1000)
    rate = made._learning_rate
    assert float(rate(0)) == 0.0
    assert float(rate(50)) == pytest.approx(0.1)
    assert float(rate(100)) == pytest.approx(0.2)
    assert float(rate(550)) == pytest.approx(0.1, abs=1e-4)  # half of the cosine
    assert float(rate(1000)) == pytest.approx(0.0, abs=1e-6)
