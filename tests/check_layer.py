"""Checks of the contract that every layer keeps."""

import inspect
import itertools
import pathlib
import tempfile

import keras
import numpy as np


def check_layer(
    layer_class,
    arguments,
    input_shape,
    *,
    attention=None,
    integers=None,
    without_gradient=(),
    policy="mixed_float16",
):
    """Checks a training step and precision; on PyTorch configuration, shapes and saving too."""
    # attention: the shape of a second input; integers: the shapes of inputs of small integers, by
    # name; without_gradient: ends of the paths of weights that no loss has a gradient for.
    shapes = {"inputs": input_shape}
    if attention is not None:
        shapes["attention"] = attention
    shapes |= {name: IntegerShape(shape) for name, shape in (integers or {}).items()}
    _check_training(layer_class(**arguments), shapes, tuple(without_gradient))
    layer = layer_class(**arguments, dtype=policy)
    _check_precision(layer, shapes)
    if keras.backend.backend() == "torch":  # the same on every backend; PyTorch compiles nothing
        _check_config(layer_class, arguments)
        _check_building(layer_class(**arguments), shapes)
        _check_shapes(layer_class(**arguments), shapes)
        _check_saving(layer, shapes)


class IntegerShape(tuple):
    """The shape of an input of integers."""


def redraw_weights(layer, stddev=0.5):
    """Draws all trainable weights, so that no initial value hides a fault; returns them by path."""
    generator = np.random.default_rng(1)
    redrawn = {}
    for weight in layer.trainable_weights:
        value = generator.normal(0.0, stddev, weight.shape).astype("float32")
        weight.assign(value)
        redrawn[weight.path.split("/", 1)[1]] = value.astype("float64")
    return redrawn


def draw(*shape, scale=1.0):
    return (scale * np.random.normal(size=shape)).astype("float32")


def check_stochastic_depth(layer, inputs, branches):
    """Checks that each branch is dropped independently for whole samples and rescaled elsewhere."""
    rate, batch = layer.stochastic_depth, len(inputs)
    outputs = to_numpy(layer(inputs, training=True))
    outcomes = []
    for kept in itertools.product((0, 1), repeat=len(branches)):
        expected = inputs
        for keep, branch in zip(kept, branches, strict=True):
            expected = expected + keep * branch(expected) / (1 - rate)
        chosen = np.isclose(outputs, expected, rtol=1e-4, atol=1e-4).all(axis=(1, 2))
        chance = (1 - rate) ** sum(kept) * rate ** (len(kept) - sum(kept))
        assert abs(chosen.mean() - chance) < 4 * np.sqrt(chance * (1 - chance) / batch)
        outcomes.append(chosen)
    np.testing.assert_array_equal(sum(map(np.int64, outcomes)), np.ones(batch))


def check_dropout(layer, inputs):
    """Checks that dropout hits single channels of a branch and rescales the others."""
    rate = layer.dropout
    branch = to_numpy(layer(inputs, training=False)) - inputs
    outputs = to_numpy(layer(inputs, training=True))
    dropped = outputs == inputs
    np.testing.assert_allclose(
        outputs[~dropped], (inputs + branch / (1 - rate))[~dropped], rtol=1e-5, atol=1e-4
    )
    assert abs(dropped.mean() - rate) < 4 * np.sqrt(rate * (1 - rate) / dropped.size)


def check_padding(layer, inputs, weights, reference):
    """Checks that a padded batch gives what each sample gives without its padding."""
    lengths = np.arange(len(inputs)) % inputs.shape[1] + 1
    mask = np.arange(inputs.shape[1]) < lengths[:, None]
    outputs = to_numpy(layer(inputs, mask=mask))
    assert np.isfinite(outputs).all()
    for sample, length in enumerate(lengths):
        expected = reference(inputs[sample, None, :length], cut_weights(weights, layer, length))
        np.testing.assert_allclose(outputs[sample, :length], expected[0], rtol=1e-4, atol=1e-5)
    garbage = 100 * np.random.default_rng(4).normal(size=inputs.shape)
    changed = np.where(mask[..., None], inputs, garbage).astype("float32")
    np.testing.assert_allclose(
        to_numpy(layer(changed, mask=mask))[mask], outputs[mask], rtol=1e-6, atol=1e-6
    )
    everything = to_numpy(layer(inputs, mask=np.ones_like(mask)))
    np.testing.assert_allclose(everything, to_numpy(layer(inputs)), rtol=1e-5, atol=1e-5)


def cut_weights(weights, layer, tokens):
    """Keeps the entries for the first tokens, along the axes that the block declares."""
    slices = {
        path: tuple(slice(tokens) if kind else slice(None) for kind in axes)
        for path, axes in layer.token_axes.items()
    }
    return {path: weight[slices.get(path, ...)] for path, weight in weights.items()}


def silence(layer):
    """Sets all trainable weights of a layer to zero."""
    for weight in layer.trainable_weights:
        weight.assign(np.zeros(weight.shape))


def to_numpy(tensor):
    return keras.ops.convert_to_numpy(tensor)


def _check_config(layer_class, arguments):
    layer = layer_class(**arguments, name="checked")
    config = layer.get_config()
    restored = layer_class.from_config(config)
    assert restored.get_config() == config
    assert restored.name == "checked"
    base = set(inspect.signature(keras.layers.Layer.__init__).parameters)
    ours = [c for c in layer_class.__mro__ if c.__module__.startswith("keras_gmlp")]
    own = {name for c in ours for name in inspect.signature(c.__init__).parameters} - base
    assert own <= set(config) <= own | base


def _check_building(layer, shapes):
    assert layer.weights == []
    layer.build(*map(tuple, shapes.values()))
    built = [weight.path for weight in layer.weights]
    assert built
    _call(layer, _draw(shapes))
    assert [weight.path for weight in layer.weights] == built


def _check_shapes(layer, shapes):
    computed = layer.compute_output_shape(*((None, *shape[1:]) for shape in shapes.values()))
    assert _functional(layer, shapes).output_shape == tuple(computed)
    batch = shapes["inputs"][0]
    assert tuple(_call(layer, _draw(shapes)).shape) == (batch, *computed[1:])


def _check_training(layer, shapes, without_gradient):
    model = _functional(layer, shapes)
    # Initial values of zero would block the gradient of earlier layers in the first step.
    redraw_weights(layer)
    eager = keras.backend.backend() == "tensorflow"  # whose compiler takes most of the time
    model.compile(keras.optimizers.SGD(1.0), "mse", run_eagerly=eager)
    before = {weight.path: to_numpy(weight) for weight in model.trainable_weights}
    targets = np.random.normal(size=(shapes["inputs"][0], *model.output_shape[1:]))
    history = model.fit(_draw(shapes), targets.astype("float32"), verbose=0)
    assert np.isfinite(history.history["loss"][0])
    unchanged = {
        weight.path
        for weight in model.trainable_weights
        if np.array_equal(to_numpy(weight), before[weight.path])
    }
    assert {path for path in unchanged if not path.endswith(without_gradient)} == set()


def _check_precision(layer, shapes):
    _call(layer, _draw(shapes))
    redraw_weights(layer)
    outputs = _call(layer, _draw(shapes))
    assert keras.backend.standardize_dtype(outputs.dtype) == layer.compute_dtype
    assert np.isfinite(to_numpy(keras.ops.cast(outputs, "float32"))).all()
    assert {weight.dtype for weight in layer.trainable_weights} == {"float32"}
    # A part without the policy may go unnoticed; Keras has no public name that lists parts.
    assert {part.compute_dtype for part in layer._flatten_layers()} == {layer.compute_dtype}


def _check_saving(layer, shapes):
    model, inputs = _functional(layer, shapes), _draw(shapes)
    with tempfile.TemporaryDirectory() as directory:
        path = pathlib.Path(directory, "model.keras")
        model.save(path)
        loaded = keras.saving.load_model(path)
    assert loaded.get_layer(layer.name).dtype_policy.name == layer.dtype_policy.name
    expected, found = (to_numpy(keras.ops.cast(m(inputs), "float32")) for m in (model, loaded))
    np.testing.assert_array_equal(found, expected, strict=True)


def _functional(layer, shapes):
    inputs = {
        name: keras.Input(shape[1:], dtype=_dtype(shape), name=name)
        for name, shape in shapes.items()
    }
    return keras.Model(inputs, _call(layer, inputs))


def _call(layer, tensors):
    others = {name: tensor for name, tensor in tensors.items() if name != "inputs"}
    return layer(tensors["inputs"], **others)


def _draw(shapes):
    return {
        name: np.random.normal(scale=3, size=shape).astype("int32") % 4
        if isinstance(shape, IntegerShape)
        else np.random.normal(size=shape).astype("float32")
        for name, shape in shapes.items()
    }


def _dtype(shape):
    return "int32" if isinstance(shape, IntegerShape) else None
