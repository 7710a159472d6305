"""A model as a TFLite flatbuffer of built-in operators, in four precisions.

Runs Keras on TensorFlow, whose converter it is.
"""

import tempfile
import warnings

import numpy as np

from keras_gmlp.export.quantization import prepare_for_int8
from keras_gmlp.utils.errors import first_line

PRECISIONS = ("float32", "float16", "dynamic", "int8")


def convert(model, precision, calibration=None, batch=1):
    """The flatbuffer, with one signature from `image` to `logits`.

    Args:
        model: a float32 `keras.Model` from images in [0, 255] to logits.
        precision: `"float32"`; `"float16"`, of the weights; `"dynamic"`, weights of 8 bits and
            activations in float; or `"int8"`, all in 8-bit integers from uint8 pixels on, but
            the logits.
        calibration: for `"int8"`, uint8 images `(samples, height, width, channels)` like those
            to come, which tell the range of each activation. Some hundreds do.
        batch: images that the file takes at once. Fixed: runtimes in browsers reject an open one.

    Raises:
        ValueError: an unknown precision; no calibration images, or ones of another shape; for
            `"int8"`, a layer norm without scale or shift or of another axis than the last.
        RuntimeError: the conversion failed.
    """
    import tensorflow as tf

    if precision not in PRECISIONS:
        raise ValueError(
            f"precision must be one of {', '.join(PRECISIONS)}; received {precision!r}."
        )
    shape = tuple(model.input_shape[1:])
    if precision == "int8":
        _check_calibration(calibration, shape)
        model = prepare_for_int8(model, calibration)
    module = own_weights(model)
    spec = tf.TensorSpec((batch, *shape), tf.float32, name="image")
    module.serve = tf.function(
        lambda image: {"logits": model(image, training=False)}, input_signature=[spec]
    )
    with tempfile.TemporaryDirectory() as scratch:
        # Straight from a function the converter writes a small file that answers NaN.
        tf.saved_model.save(module, scratch, signatures={"serving_default": module.serve})
        converter = tf.lite.TFLiteConverter.from_saved_model(scratch)
        converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS]
        if precision != "float32":
            converter.optimizations = [tf.lite.Optimize.DEFAULT]
        if precision == "float16":
            converter.target_spec.supported_types = [tf.float16]
        if precision == "int8":
            converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS_INT8]
            converter.inference_input_type = tf.uint8
            converter.representative_dataset = lambda: _samples(calibration, batch)
        try:
            with warnings.catch_warnings():
                # Of the interpreter that the converter itself calibrates with.
                warnings.filterwarnings("ignore", r"\s*Warning: tf\.lite\.Interpreter", UserWarning)
                return converter.convert()
        except Exception as error:  # the converter raises errors of every kind, many lines long
            reason = first_line(error)
            raise RuntimeError(f"{precision}: the conversion failed ({reason}).") from error


def own_weights(model):
    """A module that owns the model's variables and not the model.

    With the model, its optimizer would be saved too, and the converter would find no weights.
    """
    import tensorflow as tf

    module = tf.Module()
    module.weights = [variable.value for variable in model.variables]
    return module


def _check_calibration(calibration, shape):
    if calibration is None or not len(calibration):
        raise ValueError("int8 needs calibration images: some hundreds of those trained on.")
    if calibration.dtype != np.uint8 or calibration.shape[1:] != shape:
        raise ValueError(
            f"Calibration images must be uint8 of shape {shape}; received {calibration.dtype} of "
            f"shape {calibration.shape[1:]}."
        )


def _samples(calibration, batch):
    """Batches in float32. The first has 0 and 255 in it, so that a pixel is its own integer."""
    images = calibration.astype("float32")
    images[0].flat[:2] = 0, 255
    for start in range(0, len(images), batch):
        yield {"image": np.resize(images[start : start + batch], (batch, *images.shape[1:]))}
