"""RandAugment against keras-cv's public layers, and its determinism."""

import numpy as np
import pytest
import tensorflow as tf

from keras_gmlp.data.batches.augmentation import Augmentation, draw_operations, make_draw
from keras_gmlp.data.batches.namespaces import tensorflow_namespace
from keras_gmlp.data.batches.rand_augment import OPERATIONS, apply_operations

TENSORFLOW = tensorflow_namespace()


def photos(count=6, channels=3):
    """Smooth images of whole levels up to 254 (solarize always inverts 255)."""
    random = np.random.default_rng(0)
    coarse = random.uniform(20, 235, (count, 4, 4, channels))
    images = tf.image.resize(coarse, (20, 24), "bicubic").numpy()
    return np.round(images.clip(0, 254)).astype("float32")


def apply(name, images, strength=0.0, signed=0.0):
    """One operation, with the same strength for all images."""
    count = len(images)
    index = np.full(count, OPERATIONS.index(name), "int32")
    draws = (np.full(count, value, "float32") for value in (strength, signed))
    return apply_operations(tf.constant(images), index, *draws, TENSORFLOW).numpy()


def make_layer(name, strength, signed):
    """Returns the layer of keras-cv; translations count in the other direction."""
    import keras_cv  # takes seconds, which processes that run other tests need not wait

    layers, same, levels = keras_cv.layers, keras_cv.core.ConstantFactorSampler, (0, 255)
    return {
        "auto_contrast": lambda: layers.AutoContrast(levels),
        "equalize": lambda: layers.Equalization(levels),
        "solarize": lambda: layers.Solarization(
            levels, same(110 * strength), same(255 * (1 - strength))
        ),
        "color": lambda: layers.RandomColorDegeneration(same(strength)),
        "contrast": lambda: layers.RandomContrast(levels, (-signed, signed)),
        "brightness": lambda: layers.RandomBrightness((signed, signed), levels),
        "shear_x": lambda: layers.RandomShear(x_factor=same(strength)),
        "shear_y": lambda: layers.RandomShear(y_factor=same(strength)),
        "translate_x": lambda: layers.RandomTranslation(0, (-signed, -signed)),
        "translate_y": lambda: layers.RandomTranslation((-signed, -signed), 0),
    }[name]()


@pytest.mark.parametrize("name", OPERATIONS)
def test_same_pixels_as_keras_cv(name):
    for strength, signed in ((0.0, 0.0), (0.4, -0.3), (0.7, 0.55), (1.0, 1.0)):
        images = np.concatenate([photos(), np.full((1, 20, 24, 3), 90, "float32")])
        layer = make_layer(name, strength, signed)
        if name.startswith("shear"):  # keras-cv draws the direction by itself, for each image
            expected = layer(np.tile(images[:1], (20, 1, 1, 1)), training=True).numpy()
            ways = [apply(name, images[:1], strength, sign)[0] for sign in (-1.0, 1.0)]
            for image in expected:
                assert min(np.abs(image - way).max() for way in ways) < 1e-2
            continue
        expected = layer(images, training=True).numpy()
        np.testing.assert_allclose(apply(name, images, strength, signed), expected, atol=1e-2)


def test_each_image_gets_the_operation_and_the_strength_drawn_for_it():
    images, count = photos(40), 40
    numbers = make_draw(Augmentation(rand_augment=0.5), 3, count)(5, 0, np.arange(count))
    draws = next(draw_operations(tf.constant(numbers), 0.5, TENSORFLOW))
    index, strength, signed = (drawn.numpy() for drawn in draws)
    result = apply_operations(tf.constant(images), index, strength, signed, TENSORFLOW).numpy()
    names = [*OPERATIONS, None]
    for i in range(count):
        alone = images[i : i + 1]
        if names[index[i]]:
            alone = apply(names[index[i]], alone, strength[i], signed[i])
        np.testing.assert_allclose(result[i], alone[0], atol=1e-3)
    assert len(set(index)) > 8
