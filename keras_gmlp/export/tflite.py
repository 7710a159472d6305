"""Converts a model to a TFLite flatbuffer of built-in operators, in four precisions."""

import functools
import tempfile
import warnings
from pathlib import Path

import keras
import numpy as np

from keras_gmlp.analysis.explanation import has_exact_maps, map_grid, map_tokens
from keras_gmlp.export.quantization import prepare_for_int8
from keras_gmlp.inference.opening import DEFAULT_SIGNATURE, FEATURES_SIGNATURE
from keras_gmlp.models.language_model import text_features
from keras_gmlp.models.structure import features
from keras_gmlp.utils.errors import first_line
from keras_gmlp.utils.files import atomic_write


def write_tflite(model, path, options, precision="dynamic", has_features=False):
    """Writes a file of a precision with its card, and with a second signature for features."""
    more, body, is_text = {}, None, options.task is not None
    if has_features:
        body = text_features(model) if is_text else features(model)
        more["features"] = body.output_shape[-1]
        if not is_text and has_exact_maps(model):
            more["maps"] = list(map_grid(model))
    inputs = [(t.name, options.signature[t.name], "int32") for t in model.inputs if is_text]
    flatbuffer = convert(model, precision, options.calibration, inputs, body, options.traces)
    with atomic_write(path) as temporary:
        temporary.write_bytes(flatbuffer)
        options.write_card(temporary, model, **more)


write_tflite_float16 = functools.partial(write_tflite, precision="float16")
write_tflite_float32 = functools.partial(write_tflite, precision="float32")
write_tflite_int8 = functools.partial(write_tflite, precision="int8")
write_features = functools.partial(write_tflite, has_features=True)


def convert(model, precision, calibration=None, inputs=None, body=None, traces=None):
    """Converts a model to a flatbuffer with a signature to `logits`, and one of `body` if given."""
    # `traces` is a folder that keeps the traced model for further conversions of the same model.
    import tensorflow as tf

    inputs = inputs or [("image", (1, *model.input_shape[1:]), "float32")]
    if precision == "int8":
        if calibration.dtype != np.uint8:
            raise ValueError(f"calibration images must be uint8; received {calibration.dtype}.")
        model = prepare_for_int8(model, calibration)

    def serve(*arrays):
        return {"logits": model(keras.tree.pack_sequence_as(model.input, arrays), training=False)}

    specs = [tf.TensorSpec(shape, dtype, name=name) for name, shape, dtype in inputs]
    more = {}
    if body is not None:  # a language model has an input that the features do not take
        own = [spec for spec in specs if len(specs) == 1 or spec.name == body.inputs[0].name]
        more[FEATURES_SIGNATURE] = _features_function(model, body), own
    if traces is None or precision == "int8":  # whose model is another one
        samples = functools.partial(_samples, calibration)
        return convert_function(model, serve, specs, precision, samples, more)
    folder = Path(traces, f"signatures{1 + len(more)}")
    if not (folder / "saved_model.pb").exists():
        _save(model, serve, specs, folder, more)
    return _convert_folder(folder, precision)


def _features_function(model, body):
    """Returns a function from inputs to features and, if they are exact, class maps."""
    if not has_exact_maps(model):
        return lambda inputs: {"features": body(inputs, training=False)}
    tokens = model.get_layer("pool").input
    body = keras.Model(model.input, [body.output, tokens])

    def compute(image):
        vectors, tokens = body(image, training=False)
        return {"features": vectors, "maps": map_tokens(model, tokens)}

    return compute


def convert_function(model, function, specs, precision, samples=None, more=None):
    """Converts a function of a model to a flatbuffer."""
    with tempfile.TemporaryDirectory() as folder:
        _save(model, function, specs, folder, more)
        return _convert_folder(folder, precision, samples)


def _save(model, function, specs, folder, more=None):
    """Writes the functions of `convert_function` as a SavedModel: it traces the model."""
    import tensorflow as tf

    module = own_weights(model)
    # The converter sorts them by name, and runtimes run the first if they are given no name. With
    # an attribute `serve` of the module it would drop all but the default.
    signatures = {
        name: tf.function(each, input_signature=own)
        for name, (each, own) in {DEFAULT_SIGNATURE: (function, specs), **(more or {})}.items()
    }
    tf.saved_model.save(module, str(folder), signatures=signatures)


def _convert_folder(folder, precision, samples=None):
    """Converts what `_save` wrote. Converted from a function, the file is small and returns NaN."""
    import tensorflow as tf

    converter = tf.lite.TFLiteConverter.from_saved_model(str(folder))
    converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS]
    if precision != "float32":
        converter.optimizations = [tf.lite.Optimize.DEFAULT]
    if precision == "float16":
        converter.target_spec.supported_types = [tf.float16]
    if precision == "int8":
        converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS_INT8]
        converter.inference_input_type = tf.uint8
        converter.representative_dataset = samples
    try:
        with warnings.catch_warnings():
            # From the interpreter with which the converter calibrates.
            warnings.filterwarnings("ignore", r"\s*Warning: tf\.lite\.Interpreter", UserWarning)
            return converter.convert()
    except Exception as error:  # the converter's errors have many classes and lines
        reason = first_line(error)
        raise RuntimeError(f"{precision}: the conversion failed ({reason}).") from error


def own_weights(model):
    """Returns a `tf.Module` that owns the variables of a model, but not the model."""
    import tensorflow as tf

    module = tf.Module()
    module.weights = [variable.value for variable in model.variables]
    return module


def _samples(calibration):
    """Yields float32 images; the first holds 0 and 255, so that pixels keep their integers."""
    images = calibration.astype("float32")
    images[0].flat[:2] = 0, 255
    for image in images:
        yield {"image": image[None]}
