import keras
import numpy as np
import pytest
from check_layer import redraw_weights, to_numpy

from keras_gmlp import ResMLP, fold, gMLP, image_classifier
from keras_gmlp.layers.resmlp import Affine, FoldedResMLPBlock, LayerScale, ResMLPBlock

TINY = {"dim": 8, "depth": 2, "input_shape": (8, 8, 3), "patch_size": 4, "classes": 3}


@pytest.mark.once
def test_affine_and_layer_scale_at_the_start():
    affine, scale = Affine(), LayerScale(0.25)
    inputs = np.array([[[1.0, -2.0], [3.0, 4.0]]], "float32")
    np.testing.assert_array_equal(to_numpy(affine(inputs)), inputs)
    np.testing.assert_array_equal(to_numpy(scale(inputs)), inputs / 4)


@pytest.mark.once
def test_fold_keeps_the_logits_of_a_hundred_images_in_fewer_layers(tmp_path):
    model = ResMLP(**TINY)
    redraw_weights(model)
    before = model.get_weights()
    images = np.random.default_rng(2).integers(0, 256, (100, 8, 8, 3), dtype="uint8")
    expected = to_numpy(model(images))
    folded = fold(model)
    logits = to_numpy(folded(images))
    assert np.abs(expected).max() > 1
    np.testing.assert_allclose(logits, expected, rtol=1e-5, atol=1e-4)
    assert all(np.array_equal(a, b) for a, b in zip(before, model.get_weights(), strict=True))
    kinds = {type(layer) for layer in folded._flatten_layers()}
    assert FoldedResMLPBlock in kinds
    assert not {Affine, LayerScale, ResMLPBlock} & kinds
    folded.save(tmp_path / "folded.keras")
    loaded = keras.saving.load_model(tmp_path / "folded.keras")
    np.testing.assert_array_equal(to_numpy(loaded(images)), logits)


@pytest.mark.once
def test_fold_refuses_what_is_no_resmlp_with_a_head():
    post = {"hidden_dim": 14, "norm_placement": "post"}
    for model in (
        gMLP(hidden_dim=12, **TINY),
        ResMLP(**TINY, include_top=False),
        image_classifier(ResMLPBlock, post, norm=Affine, **TINY),
    ):
        with pytest.raises(ValueError, match="fold takes a ResMLP"):
            fold(model)
