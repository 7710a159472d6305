"""Training with the data on the device: the weights of a plain fit, in chunks of any length."""

import dataclasses

import keras
import numpy as np
import pytest
import tiny_run
from tiny_run import make_data, tiny_model

from keras_gmlp.data.batches.augmentation import Augmentation
from keras_gmlp.data.batches.device import DeviceBatches
from keras_gmlp.objectives.losses import CrossEntropy
from keras_gmlp.objectives.metrics import Accuracy
from keras_gmlp.objectives.optimizers import make_optimizer
from keras_gmlp.tasks.image_classification import ImageClassification
from keras_gmlp.training.pipeline import choose_pipeline, make_device_class
from keras_gmlp.training.train import train
from keras_gmlp.utils import environment

jax_only = pytest.mark.skipif(keras.backend.backend() != "jax", reason="the JAX path")

MIXED = Augmentation(cutout=0.3, mixup=0.4, cutmix=0.4, mix_until=0.5)
RECIPE = dataclasses.replace(tiny_run.RECIPE, pipeline="device")


def device_data():
    """Returns 24 images and their labels, the numbers of two epochs and the augmentation."""
    return ImageClassification(augmentation=MIXED).device_data(make_data(), 3, 2)


def plan(seed=1, **options):
    arrays, draw, _ = device_data()
    return DeviceBatches(arrays, draw, 4, seed, **options)


def compiled(model):
    model.compile(make_optimizer(RECIPE, 12), loss=CrossEntropy(0.1), metrics=[Accuracy()])
    return model


def fit_in_chunks(chunk, epochs=2):
    """Returns the weights and the metrics of each epoch."""
    (arrays, draw, augment), model = device_data(), tiny_model(depth=2, stochastic_depth=0.3)
    batches = DeviceBatches(arrays, draw, 4, seed=3, chunk=chunk)
    kind = make_device_class(keras.Model, augment)
    trained = kind(model.inputs, model.outputs)
    trained.arrays = batches.arrays
    compiled(trained).optimizer.build(trained.trainable_variables)
    trained.evaluate(*(np.asarray(a[:1]) for a in batches.arrays), verbose=0)
    start = keras.callbacks.LambdaCallback(lambda epoch, logs: batches.start_epoch(epoch))
    callbacks = [keras.callbacks.SwapEMAWeights(), start]
    history = trained.fit(batches, epochs=epochs, callbacks=callbacks, shuffle=False, verbose=0)
    return model.get_weights(), history.history


def fit_plainly(epochs=2):
    """The same batches, made one by one and given to a plain `fit`."""
    (arrays, draw, augment), model = device_data(), tiny_model(depth=2, stochastic_depth=0.3)
    plan = DeviceBatches(arrays, draw, 4, seed=3, chunk=1)

    def batches():
        for epoch in range(epochs):
            plan.start_epoch(epoch)
            for item in (plan[i] for i in range(len(plan))):
                (chosen,), (numbers,) = item["indices"], item["numbers"]
                batch = augment(*(array[chosen] for array in arrays), numbers)
                yield tuple(np.asarray(part) for part in batch)

    compiled(model)
    model.evaluate(*(array[:1] for array in arrays), verbose=0)
    model.reset_metrics()
    given = {"steps_per_epoch": len(plan), "epochs": epochs, "shuffle": False, "verbose": 0}
    history = model.fit(batches(), callbacks=[keras.callbacks.SwapEMAWeights()], **given)
    return model.get_weights(), history.history


@jax_only
@pytest.mark.parametrize(
    ("devices", "cache", "chosen", "expected"),
    [
        (["gpu"], "/cache", None, "/cache/keras_gmlp"),
        (["gpu"], "/cache", "", "/cache/keras_gmlp"),  # JAX would write to the working folder
        (["gpu"], "/cache", "/own", "/own"),
        (["gpu"], "relative", None, None),
        ([], "/cache", None, None),
    ],
)
def test_compilations_are_kept_in_the_cache_of_the_user(
    devices, cache, chosen, expected, monkeypatch
):
    import jax

    monkeypatch.setattr(environment, "accelerators", lambda: devices)
    monkeypatch.setenv("XDG_CACHE_HOME", cache)
    before = jax.config.jax_compilation_cache_dir
    try:
        jax.config.update("jax_compilation_cache_dir", chosen)
        environment.keep_compilations()
        assert jax.config.jax_compilation_cache_dir == expected
    finally:
        jax.config.update("jax_compilation_cache_dir", before)


@jax_only
def test_weights_in_chunks_equal_those_of_a_plain_fit():
    expected, losses = fit_plainly()
    weights, history = fit_in_chunks(4)  # which leaves a shorter chunk at the end
    for ours, theirs in zip(weights, expected, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(history["loss"], losses["loss"], rtol=1e-5)
    np.testing.assert_allclose(history["accuracy"], losses["accuracy"], rtol=1e-6)


@jax_only
@pytest.mark.parametrize("steps", [1, 9])
def test_epochs_of_any_length_are_parts_of_the_same_passes(steps):
    whole, part = plan(), plan(steps=steps)
    passes = []
    for epoch in range(4):
        whole.start_epoch(epoch)
        passes.append(whole.order)
    stream, seen = np.concatenate(passes), []
    for epoch in range(len(stream) // steps):
        part.start_epoch(epoch)
        seen.append(part.order)
    np.testing.assert_array_equal(np.concatenate(seen), stream[: len(seen) * steps])


def test_pipeline_is_chosen_by_backend_data_and_device(monkeypatch):
    auto = dataclasses.replace(RECIPE, pipeline="auto")
    assert choose_pipeline(auto, make_data()) == "host"  # on a CPU
    monkeypatch.setattr("keras_gmlp.training.pipeline.accelerators", lambda: ["a GPU"])
    on_jax = keras.backend.backend() == "jax"
    assert choose_pipeline(auto, make_data()) == ("device" if on_jax else "host")
    assert choose_pipeline(dataclasses.replace(RECIPE, pipeline="host"), make_data()) == "host"
    monkeypatch.setattr("keras_gmlp.data.images.samples.MEMORY_LIMIT", 10)
    assert choose_pipeline(auto, make_data()) == "host"
    with pytest.raises(ValueError, match="requires"):
        choose_pipeline(RECIPE, make_data())


def test_a_run_that_was_begun_on_a_device_goes_on_there_only(tmp_path):
    auto = dataclasses.replace(RECIPE, pipeline="auto")
    (tmp_path / "checkpoint").mkdir()
    (tmp_path / "checkpoint" / "000001.weights.h5").touch()
    (tmp_path / "recipe.json").write_text('{"pipeline": "device"}')
    if keras.backend.backend() == "jax":
        assert choose_pipeline(auto, make_data(), tmp_path) == "device"
    else:
        with pytest.raises(ValueError, match="pipeline=host"):
            train(tiny_model(), make_data(), auto, tmp_path, verbose=0)
    (tmp_path / "metrics.json").write_text("{}")  # complete: it is loaded on any backend
    assert choose_pipeline(auto, make_data(), tmp_path) == "device"
