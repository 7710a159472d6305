"""A model and pictures for the page, made where there is no data set."""

import numpy as np
from PIL import Image
from web_page import encoded


def full_integer():
    """A model of one matrix that takes uint8."""
    import tensorflow as tf

    matrix = tf.constant(np.random.default_rng(0).normal(size=(192, 3)), tf.float32)

    @tf.function(input_signature=[tf.TensorSpec((1, 8, 8, 3), tf.float32)])
    def classify(image):
        return tf.reshape(image / 255, (1, 192)) @ matrix

    module = tf.Module()
    concrete = [classify.get_concrete_function()]
    converter = tf.lite.TFLiteConverter.from_concrete_functions(concrete, module)
    converter.optimizations = [tf.lite.Optimize.DEFAULT]
    converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS_INT8]
    converter.inference_input_type = tf.uint8
    levels = np.linspace(0, 255, 192, dtype="float32").reshape(1, 8, 8, 3)
    converter.representative_dataset = lambda: ([np.roll(levels, n, 1)] for n in range(8))
    return converter.convert()


def noisy_digits(count):
    """PNG files of handwritten digits, in many sizes and tints."""
    from sklearn.datasets import load_digits

    random = np.random.default_rng(0)
    files = []
    for digit in load_digits().images[:count]:
        tint = random.uniform(0, 255, (2, 1, 1, 3))
        image = tint[0] + (tint[1] - tint[0]) * digit[..., None] / 16
        size = random.integers(20, 100, 2)
        large = Image.fromarray(image.astype("uint8")).resize(size, Image.Resampling.BICUBIC)
        noisy = np.asarray(large) + random.normal(0, 8, (*size[::-1], 3))
        files.append(encoded(Image.fromarray(noisy.clip(0, 255).astype("uint8"))))
    return files
