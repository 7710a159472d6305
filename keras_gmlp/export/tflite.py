"""Converts a model to a TFLite flatbuffer of built-in operators, in four precisions."""

import functools
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
    import tensorflow as tf

    specs = [tf.TensorSpec(*each) for each in options.list_inputs(model)]
    computed, samples = model, None
    if precision == "int8":
        if options.calibration.dtype != np.uint8:
            found = options.calibration.dtype
            raise ValueError(f"calibration images must be uint8; received {found}.")
        computed = prepare_for_int8(model, options.calibration)
        samples = functools.partial(_samples, options.calibration)

    def serve(*arrays):
        rows = keras.tree.pack_sequence_as(model.input, arrays)
        return {"logits": computed(rows, training=False)}

    signatures, more = {DEFAULT_SIGNATURE: (serve, specs)}, {}
    if has_features:
        body = features(model) if options.task is None else text_features(model)
        more["features"] = body.output_shape[-1]
        if options.task is None and has_exact_maps(model):
            more["maps"] = list(map_grid(model))
        # A language model has an input that the features do not take.
        own = [s for s in specs if len(specs) == 1 or s.name == body.inputs[0].name]
        signatures[FEATURES_SIGNATURE] = _features_function(model, body), own
    folder = Path(options.traces, "int8" if precision == "int8" else "-".join(signatures))
    flatbuffer = convert(computed, signatures, precision, folder, samples)
    with atomic_write(path) as temporary:
        temporary.write_bytes(flatbuffer)
        options.write_card(temporary, model, **more)


write_tflite_float16 = functools.partial(write_tflite, precision="float16")
write_tflite_float32 = functools.partial(write_tflite, precision="float32")
write_tflite_int8 = functools.partial(write_tflite, precision="int8")
write_features = functools.partial(write_tflite, has_features=True)


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


def convert(model, signatures, precision, folder, samples=None):
    """Converts functions of a model, with the specs of their inputs, to a flatbuffer."""
    # The folder keeps the traced model for further conversions. Converted from a function, without
    # it, the file is small and returns NaN.
    import tensorflow as tf

    if not (folder / "saved_model.pb").exists():
        # The converter sorts the signatures by name, and runtimes run the first if they are given
        # no name. With an attribute `serve` of the module it would drop all others.
        made = {n: tf.function(f, input_signature=s) for n, (f, s) in signatures.items()}
        tf.saved_model.save(own_weights(model), str(folder), signatures=made)
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
