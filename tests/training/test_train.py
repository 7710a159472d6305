"""Runs on a few tiny images: what they leave behind, and what a kill leaves behind."""

import dataclasses
import errno
import json
import shutil

import keras
import numpy as np
import pytest
import tensorflow as tf
from check_layer import to_numpy
from read_table import read_table
from tiny_run import CountedSplit, Kill, tiny_model

import keras_gmlp
from keras_gmlp.data import hold_out
from keras_gmlp.data.batches.augmentation import Augmentation
from keras_gmlp.data.images.image_data import ImageData
from keras_gmlp.objectives.optimizers import make_optimizer
from keras_gmlp.tasks.image_classification import ImageClassification
from keras_gmlp.training.callbacks import DivergedError, StopWhenDiverged, TimeLimitError
from keras_gmlp.training.checkpoints import RunCheckpoint
from keras_gmlp.training.pipeline import prepare_fit
from keras_gmlp.training.recipes import Recipe, find_recipe
from keras_gmlp.training.train import train
from keras_gmlp.utils.files import directory_lock

RECIPE = Recipe(
    epochs=4,
    batch_size=8,
    learning_rate=0.01,
    task=ImageClassification(augmentation=Augmentation(mixup=0.5)),
)

pytestmark = pytest.mark.eager


@pytest.fixture(scope="module")
def data():
    """Dark images of class 0, bright ones of class 1."""
    rng = np.random.default_rng(0)
    labels = np.arange(40, dtype="int64") % 2
    images = rng.integers(0, 60, (40, 8, 8, 3)) + 190 * labels[:, None, None, None]
    whole = tf.data.Dataset.from_tensor_slices((images.astype("uint8"), labels))
    return ImageData("shades", ("dark", "bright"), (8, 8, 3), whole.take(32), whole.skip(32))


def history(directory):
    return read_table(directory / "history.csv")


@pytest.fixture(scope="module")
def run(data, tmp_path_factory):
    """The folder of a complete run and what `train` returned."""
    directory = tmp_path_factory.mktemp("run")
    keras.utils.set_random_seed(0)
    preset = {"preset": "tiny"}
    return directory, train(tiny_model(), data, RECIPE, directory, verbose=0, extra=preset)


@pytest.mark.once
def test_arrays_train_by_the_name_of_a_recipe(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    images, labels = np.zeros((20, 8, 8, 3), "uint8"), np.arange(20) % 2
    model = tiny_model(**find_recipe("quick").model_arguments())
    metrics = keras_gmlp.train(model, (images, labels), "quick", verbose=0)
    (directory,) = (tmp_path / "runs").iterdir()
    assert directory.name.startswith(f"{model.name}-arrays-")
    assert (metrics["epochs"], metrics["test_accuracy"]) == (12, 0.5)
    with pytest.raises(ValueError, match=r"requires images of shape \(8, 8, 3\); arrays-.* has"):
        keras_gmlp.train(model, (images[:, 1:], labels), "quick")
    with pytest.raises(ValueError, match="Unknown recipe 'quik'"):
        keras_gmlp.train(model, (images, labels), "quik")


def test_run_leaves_everything(run):
    directory, metrics = run
    names = {"README.md", "curves.png", "history.csv", "labels.txt", "metrics.json"}
    assert {path.name for path in directory.iterdir()} == names | {"model.keras", "recipe.json"}
    assert metrics["test_accuracy"] == 1.0
    assert metrics == json.loads((directory / "metrics.json").read_text())
    assert (directory / "labels.txt").read_text() == "dark\nbright\n"
    assert "| Keras, float32 | 100.00 % |" in (directory / "README.md").read_text("utf-8")
    assert [row["epoch"] for row in history(directory)] == ["0", "1", "2", "3"]
    _, shorter, longer, _ = sorted(float(row["seconds"]) for row in history(directory))
    median = max((shorter + longer) / 2, 0.01)
    assert metrics["images_per_second"] == pytest.approx(32 / median, rel=0.01)
    recipe = json.loads((directory / "recipe.json").read_text())
    assert (recipe["preset"], recipe["data"]) == ("tiny", "shades")
    assert recipe["augmentation"]["mixup"] == 0.5
    assert recipe["environment"]["backend"] == keras.backend.backend()
    assert "keras" in recipe["environment"]["versions"]


def test_saved_model_is_the_average_that_was_tested(data, run):
    directory, metrics = run
    reloaded = keras.saving.load_model(directory / "model.keras")
    loss, accuracy = reloaded.evaluate(data.test.dataset().batch(8), verbose=0)
    assert accuracy == metrics["test_accuracy"]
    # Validation saw the averaged weights, smoothed labels aside: the same accuracy.
    assert float(history(directory)[-1]["val_accuracy"]) == pytest.approx(accuracy)
    assert loss == pytest.approx(metrics["test_loss"], abs=1e-5)


@pytest.mark.once
def test_epochs_are_tested_on_validation_images_and_test_images_are_read_once(data, tmp_path):
    test = CountedSplit(*(array[::-1] for array in data.test.arrays()))
    held = hold_out(dataclasses.replace(data, test=test), share=0.25)
    recipe = dataclasses.replace(RECIPE, epochs=2)
    model = tiny_model()
    metrics = train(model, held, recipe, tmp_path, verbose=0)
    assert test.reads == 1
    images, labels = held.validation.arrays()
    assert len(labels) == 8
    right = np.mean(to_numpy(model(images)).argmax(-1) == labels)
    assert metrics["validation_accuracy"] == pytest.approx(right, abs=1e-6)
    assert float(history(tmp_path)[-1]["val_accuracy"]) == pytest.approx(right, abs=1e-6)
    card = (tmp_path / "README.md").read_text("utf-8")
    assert f"the Keras model has {100 * right:.2f} %" in card


class StopAfterTwo(keras.callbacks.Callback):
    def on_epoch_end(self, epoch, logs=None):
        assert logs["seconds"] >= 0  # called after the run's own callbacks
        self.model.stop_training = epoch == 1


@pytest.mark.once
def test_a_callback_of_the_user_may_end_the_run(data, tmp_path):
    metrics = train(tiny_model(), data, RECIPE, tmp_path, verbose=0, callbacks=[StopAfterTwo()])
    assert metrics["epochs"] == len(history(tmp_path)) == 2
    assert "seconds" in metrics
    again = train(tiny_model(), data, RECIPE, tmp_path, verbose=0)
    assert again == metrics  # complete


@pytest.fixture
def train_killed(monkeypatch):
    """Trains as `train` does and dies after the first step of an epoch."""

    def run(epoch, *arguments):
        def die(self, batch, logs=None):
            if self.epoch == epoch:
                raise Kill

        with monkeypatch.context() as patch:
            patch.setattr(StopWhenDiverged, "on_train_batch_end", die)
            with pytest.raises(Kill):
                train(*arguments, verbose=0)

    return run


def test_killed_run_goes_on_to_the_same_end(data, tmp_path, train_killed):
    recipe = dataclasses.replace(RECIPE, optimizer="muon")  # with AdamW inside
    # Random states must resume too. The first of two blocks is never dropped.
    arguments = {"depth": 2, "stochastic_depth": 0.3, "dropout": 0.1}
    whole = tiny_model(**arguments)
    train(whole, data, recipe, tmp_path / "whole", verbose=0)

    for epoch in (1, 3):
        train_killed(epoch, tiny_model(**arguments), data, recipe, tmp_path / "killed")
    resumed = tiny_model(**arguments)
    train(resumed, data, recipe, tmp_path / "killed", verbose=0)

    assert [row["epoch"] for row in history(tmp_path / "killed")] == ["0", "1", "2", "3"]
    for ours, theirs in zip(resumed.get_weights(), whole.get_weights(), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-3, atol=1e-5)


def test_batches_are_read_once_an_epoch(data, tmp_path, monkeypatch):
    """Keras may look at a batch before the first epoch, which would count as an epoch."""
    begun = tf.Variable(0, dtype=tf.int64)

    def count(self, *arguments, original=ImageClassification.training_batches):
        batches = original(self, *arguments)
        once = tf.data.Dataset.range(1).map(lambda _: begun.assign_add(1))
        counted = once.flat_map(lambda _: batches)
        return counted.apply(tf.data.experimental.assert_cardinality(len(batches)))

    monkeypatch.setattr(ImageClassification, "training_batches", count)
    train(tiny_model(), data, dataclasses.replace(RECIPE, epochs=2), tmp_path, verbose=0)
    assert int(begun) == 2


@pytest.mark.once
def test_full_disk_ends_a_run_before_its_checkpoint(data, tmp_path, monkeypatch):
    monkeypatch.setattr("shutil.disk_usage", lambda path: (2000, 1000, 1000))
    with pytest.raises(OSError, match=r"no space left: [\d,]+ bytes needed, 1,000 free") as caught:
        train(tiny_model(), data, RECIPE, tmp_path, verbose=0)
    assert caught.value.errno == errno.ENOSPC
    assert not history(tmp_path)


@pytest.mark.once
def test_disk_that_reports_no_space_at_all_does_not_end_a_run(tmp_path, monkeypatch):
    monkeypatch.setattr("shutil.disk_usage", lambda path: (0, 0, 0))  # as some file systems do
    checkpoint, model = RunCheckpoint(tmp_path), tiny_model()
    assert checkpoint.restore(model) == 0
    assert model.optimizer.built  # before the first step
    checkpoint.set_model(model)
    checkpoint.on_train_begin()
    checkpoint.on_epoch_end(0)
    assert checkpoint.restore(tiny_model()) == 1


@pytest.mark.parametrize("changes", [{}, {"optimizer": "muon", "precision": "mixed_float16"}])
def test_space_asked_for_holds_a_checkpoint(data, tmp_path, monkeypatch, changes):
    recipe = dataclasses.replace(RECIPE, **changes)
    asked, name = [], "keras_gmlp.training.checkpoints.require_space"
    monkeypatch.setattr(name, lambda path, size, reserve: asked.append(size))
    checkpoint = RunCheckpoint(tmp_path)
    checkpoint.set_model(model := tiny_model(**recipe.model_arguments()))
    prepare_fit(model, data, recipe, batch_size=8)
    model.evaluate(data.test.dataset().batch(8), verbose=0)
    model.optimizer.build(model.trainable_variables)
    checkpoint.on_epoch_end(0)
    written = (tmp_path / "000001.weights.h5").stat().st_size
    assert written < asked[0] < 3 * written


@pytest.mark.once
def test_row_without_checkpoint_is_trained_again(data, tmp_path, train_killed):
    """A kill between the history's row and the whole checkpoint must not leave the row twice."""
    train_killed(2, tiny_model(), data, RECIPE, tmp_path)
    with open(tmp_path / "history.csv", "a") as file:
        file.write("2,0.5,0.1,0.5,0.1,0.5\n3,0.")
    (tmp_path / "checkpoint" / ".99.000003.weights.h5").write_bytes(b"half a checkpoint")
    train(tiny_model(), data, RECIPE, tmp_path, verbose=0)
    assert [row["epoch"] for row in history(tmp_path)] == ["0", "1", "2", "3"]


@pytest.mark.once
def test_failed_save_keeps_the_last_checkpoint(data, tmp_path, monkeypatch):
    full = {"after": 2}

    def save_weights(self, path, original=keras.Model.save_weights):
        full["after"] -= 1
        if full["after"] < 0:
            path.write_bytes(b"half a file")
            raise OSError(28, "No space left on device")
        original(self, path)

    with monkeypatch.context() as patch:
        patch.setattr(keras.Model, "save_weights", save_weights)
        with pytest.raises(OSError, match="No space left"):
            train(tiny_model(), data, RECIPE, tmp_path, verbose=0)
    assert [p.name for p in (tmp_path / "checkpoint").iterdir()] == ["000002.weights.h5"]
    train(tiny_model(), data, RECIPE, tmp_path, verbose=0)
    assert [row["epoch"] for row in history(tmp_path)] == ["0", "1", "2", "3"]


def test_complete_run_is_loaded_and_other_settings_are_refused(data, run):
    directory, first = run
    model = tiny_model()
    again = train(model, data, RECIPE, directory, verbose=0, extra={"preset": "tiny"})
    assert again == first
    reloaded = keras.saving.load_model(directory / "model.keras")
    for ours, theirs in zip(model.get_weights(), reloaded.get_weights(), strict=True):
        np.testing.assert_array_equal(ours, theirs)
    other = dataclasses.replace(RECIPE, epochs=5, seed=1)
    with pytest.raises(ValueError, match=r"epochs 4 there, 5 here; seed 0 there, 1 here"):
        train(tiny_model(), data, other, run[0], verbose=0, extra={"preset": "tiny"})


@pytest.mark.once
def test_restart_trains_anew(data, run, tmp_path):
    directory = shutil.copytree(run[0], tmp_path / "run")
    recipe = dataclasses.replace(RECIPE, epochs=1)
    metrics = train(tiny_model(), data, recipe, directory, restart=True, verbose=0)
    assert metrics["epochs"] == len(history(directory)) == 1


@pytest.mark.once
def test_damaged_checkpoint_says_what_to_do_and_errors_of_the_system_pass(
    data, tmp_path, monkeypatch
):
    with pytest.raises(TimeLimitError):
        train(tiny_model(), data, RECIPE, tmp_path, verbose=0, time_limit=0)
    damaged = tmp_path / "checkpoint" / "000002.weights.h5"
    damaged.write_bytes(b"no HDF5")
    with pytest.raises(ValueError, match=r"000002\.weights\.h5: cannot be loaded .*--restart"):
        train(tiny_model(), data, RECIPE, tmp_path, verbose=0)

    damaged.unlink()

    def fail(*_):  # an error of the system is not taken for damage
        raise PermissionError(errno.EACCES, "Permission denied", "000001.weights.h5")

    model = tiny_model()
    monkeypatch.setattr(model, "load_weights", fail)
    with pytest.raises(PermissionError):
        train(model, data, RECIPE, tmp_path, verbose=0)


def test_diverged_run_says_where_and_keeps_no_broken_checkpoint(data, tmp_path):
    recipe = dataclasses.replace(RECIPE, learning_rate=1e30, warmup=0.5)
    with pytest.raises(DivergedError, match=r"epoch \d, by step \d.*Lower the learning rate"):
        train(tiny_model(), data, recipe, tmp_path, verbose=0)
    assert not (tmp_path / "model.keras").exists()
    for path in (tmp_path / "checkpoint").glob("*.h5"):
        model = tiny_model()
        model.load_weights(path)
        assert all(np.isfinite(w).all() for w in model.get_weights())


def test_mixed_precision_run_saves_float32(data, tmp_path):
    recipe = dataclasses.replace(RECIPE, precision="mixed_bfloat16", epochs=2)
    train(tiny_model(**recipe.model_arguments()), data, recipe, tmp_path, verbose=0)
    reloaded = keras.saving.load_model(tmp_path / "model.keras")
    assert {layer.dtype_policy.name for layer in reloaded.layers} == {"float32"}


@pytest.mark.once
def test_second_process_is_kept_out(data, tmp_path, monkeypatch):
    monkeypatch.setattr("keras_gmlp.training.train.LOCK_TIMEOUT", 0.0)
    with directory_lock(tmp_path), pytest.raises(ValueError, match="another process uses"):
        train(tiny_model(), data, RECIPE, tmp_path, verbose=0)


@pytest.mark.once
def test_model_that_does_not_fit_the_data(data, tmp_path):
    with pytest.raises(ValueError, match=r"Build the model with input_shape=\(8, 8, 3\)"):
        train(tiny_model(input_shape=(8, 8, 1)), data, RECIPE, tmp_path)
    with pytest.raises(ValueError, match="classes=2"):
        train(tiny_model(classes=3), data, RECIPE, tmp_path)


SHELL = {"dim": 8, "depth": 1, "input_shape": (8, 8, 3), "patch_size": 4, "classes": 2}


OPTIMIZERS = [{}, {"optimizer": "muon"}, {"optimizer": "sgd"}, {"layer_decay": 0.5}]
if keras.backend.backend() == "jax":  # where Keras' own code decays, as under TensorFlow
    del OPTIMIZERS[1:]


@pytest.fixture(scope="module")
def families():
    return [
        keras_gmlp.gMLP(hidden_dim=12, **SHELL),
        keras_gmlp.MLPMixer(**SHELL),
        keras_gmlp.ResMLP(**SHELL),
        keras_gmlp.EAMLP(num_heads=4, **SHELL),
        keras_gmlp.FeedForwardOnly(**SHELL),
        keras_gmlp.ViT(num_heads=2, distillation_token=True, **SHELL),
    ]


@pytest.mark.once  # which weights decay, by their names
@pytest.mark.parametrize("settings", OPTIMIZERS)
def test_kernels_alone_decay_in_every_family(settings, families):
    variables = [v for model in families for v in model.trainable_variables]
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


def test_schedule_warms_up_and_ends_at_zero():
    made = make_optimizer(Recipe(learning_rate=0.2, warmup=0.1), total_steps=1000)
    rate = made._learning_rate
    assert float(rate(0)) == 0.0
    assert float(rate(50)) == pytest.approx(0.1)
    assert float(rate(100)) == pytest.approx(0.2)
    assert float(rate(550)) == pytest.approx(0.1, abs=1e-4)  # half of the cosine
    assert float(rate(1000)) == pytest.approx(0.0, abs=1e-6)
