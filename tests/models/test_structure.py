"""What a model says about its parts."""

import keras
import numpy as np

from keras_gmlp import image_classifier
from keras_gmlp.layers import Block, ResidualBlock
from keras_gmlp.models.structure import token_axes

TINY = {"dim": 8, "depth": 1, "input_shape": (8, 8, 3), "patch_size": 4, "classes": 3}


class Averaging(ResidualBlock):
    """Mixes tokens by their mean; has no weights over tokens."""

    def mix_tokens(self, x, mask=None):
        return keras.ops.mean(x, axis=1, keepdims=True) + 0 * x


class WithoutMask(Block):
    def call(self, inputs, training=None):
        return inputs


def test_mixer_without_weights_needs_no_build():
    model = image_classifier(Averaging, {"hidden_dim": 16}, **TINY)
    assert token_axes(model) == {}
    assert model.predict(np.zeros((1, 8, 8, 3)), verbose=0).shape == (1, 3)


def test_block_that_takes_no_mask_does_not_claim_to():
    assert Averaging(16).supports_masking
    assert not WithoutMask(16).supports_masking
