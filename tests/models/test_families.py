import keras
import numpy as np
import pytest
from check_layer import redraw_weights, to_numpy
from random_models import pixels, tiny
from refused import refused

import keras_gmlp


@pytest.mark.once
@pytest.mark.parametrize(("shape", "tokens"), [((8, 8, 1), 4), ((4, 12, 3), 3)])
def test_grey_and_rectangular_images(shape, tokens):
    model = tiny(input_shape=shape)
    redraw_weights(model)
    assert model.get_layer("stem").output.shape == (None, tokens, 8)
    logits = to_numpy(model(pixels(4, *shape)))
    assert logits.shape == (4, 3)
    assert np.abs(logits[0] - logits[1]).max() > 1e-3


@pytest.mark.parametrize(
    ("family", "policy"), [("gmlp", "mixed_float16"), ("deit", "mixed_bfloat16")]
)
def test_logits_are_float32_under_mixed_precision(family, policy):
    model = tiny(family, dtype=policy)
    redraw_weights(model, stddev=0.2)
    assert model.get_layer("block_0").compute_dtype == policy.removeprefix("mixed_")
    images = pixels(4, 8, 8, 3)
    logits = model(images)
    assert keras.backend.standardize_dtype(logits.dtype) == "float32"
    exact = tiny(family)
    exact.set_weights(model.get_weights())
    np.testing.assert_allclose(to_numpy(logits), to_numpy(exact(images)), atol=0.1)


def test_learns_from_indices_then_saved_from_rows(tmp_path):
    indices = np.array([0, 1, 2, 0])
    # Black, grey and white are easy to classify.
    images = (127 * indices[:, None, None, None] * np.ones((4, 8, 8, 3))).astype("uint8")
    model = tiny("vit", depth=1, stochastic_depth=0.1, dropout=0.1, mean=(0.1, 0.2, 0.3))
    history = model.fit(images, indices, epochs=20, verbose=0).history
    assert set(history) == {"accuracy", "loss"}
    # The head starts at zero, so all classes are equally likely at first.
    assert history["loss"][0] == pytest.approx(np.log(3), rel=1e-5)
    assert history["loss"][-1] < 0.95 * history["loss"][0]
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    logits = to_numpy(loaded(images))
    np.testing.assert_array_equal(logits, to_numpy(model(images)))
    assert loaded.optimizer.weight_decay == 0.05
    given, checked = (images, np.eye(3, dtype="float32")[indices]), (images, indices)
    history = loaded.fit(*given, validation_data=checked, verbose=0).history
    assert int(loaded.optimizer.iterations) == 21
    assert np.abs(to_numpy(loaded(images)) - logits).max() > 0
    assert history["val_loss"][0] == pytest.approx(loaded.evaluate(*checked, verbose=0)[0])


@pytest.mark.once
@pytest.mark.parametrize(("family", "leading"), [("gmlp", 0), ("vit", 1), ("deit", 2)])
def test_without_top_the_model_returns_tokens_or_a_vector_of_the_patches(family, leading):
    tokens, images = tiny(family, include_top=False), pixels(4, 8, 8, 3)
    outputs = to_numpy(tokens(images))
    assert outputs.shape == (4, leading + 4, 8)
    # The last layer is a norm with its initial values.
    np.testing.assert_allclose(outputs.mean(axis=-1), np.zeros((4, leading + 4)), atol=1e-5)
    redraw_weights(tokens)
    patches = to_numpy(tokens(images))[:, leading:]
    for pooling in ("avg", "mean", "max", "attention"):
        model = tiny(family, include_top=False, pooling=pooling)
        model.set_weights([*tokens.get_weights(), *model.get_weights()[len(tokens.weights) :]])
        expected = patches.max(axis=1) if pooling == "max" else patches.mean(axis=1)
        np.testing.assert_allclose(to_numpy(model(images)), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.once
@pytest.mark.parametrize(
    ("preset", "arguments", "shape"),
    [
        ("vit_conv_n4_32", {"depth": 1}, (64, 128)),  # without the pooling of its preset
        ("resnet_56_32", {"depth": 8, "pooling": "avg"}, (64,)),
        ("convnet_8_32", {}, (3, 3, 256)),
    ],
)
def test_preset_without_top_pools_as_asked(preset, arguments, shape):
    model = keras_gmlp.build(preset, include_top=False, **arguments)
    assert model.output_shape == (None, *shape)


@pytest.mark.once
def test_arguments_reach_every_block_and_stochastic_depth_grows_linearly():
    for family, arguments, expected in (
        ("mixer", {}, {}),
        ("amlp", {"gating": "linear"}, {"gating": "linear", "attention_size": 2}),
        ("vit", {"num_heads": 4, "mlp_ratio": 3}, {"num_heads": 4, "hidden_dim": 24}),
        ("resmlp", {"layer_scale": 1e-5}, {"layer_scale": 1e-5, "hidden_dim": 32}),
        ("eamlp", {"expansion": 2, "mlp_ratio": 2}, {"expansion": 2, "hidden_dim": 16}),
        ("ff_only", {"token_hidden_dim": 7}, {"token_hidden_dim": 7, "hidden_dim": 32}),
        ("ff_only", {"token_hidden_dim": None}, {"token_hidden_dim": 4 * 5}),  # a class token too
    ):
        model = tiny(family, depth=3, stochastic_depth=0.2, dropout=0.3, **arguments)
        for i in range(3):
            config = model.get_layer(f"block_{i}").get_config()
            assert config.items() >= {**expected, "dropout": 0.3}.items()
            assert config["stochastic_depth"] == pytest.approx(0.1 * i)


@pytest.mark.once
def test_refused_arguments():
    for family, arguments, message in (
        ("gmlp", {"zooms": (1, 0.5), "class_token": True}, "zooms"),
        ("vit", {"class_token": False, "distillation_token": True}, "class_token"),
        ("vit", {"stem": "t2t"}, "t2t"),
    ):
        with refused(message):
            tiny(family, **arguments)


@pytest.mark.once
def test_one_class_is_refused():
    model = tiny(classes=1)
    with pytest.raises(ValueError, match="classes=2"):
        model.fit(pixels(4, 8, 8, 3), np.array([0, 1, 0, 1]), verbose=0)
