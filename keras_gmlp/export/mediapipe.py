"""Writes a model as a TFLite file for MediaPipe Tasks and ML Kit, from pixels to probabilities.

Both read TFLite Metadata: a flatbuffer inside the model's, which describes its tensors. The class
names are in a zip archive after the model, which the card has already.
"""

from pathlib import Path

import keras
import numpy as np

from keras_gmlp.export.tflite import convert
from keras_gmlp.inference.opening import DEFAULT_SIGNATURE
from keras_gmlp.tasks.confidence import read_confidence
from keras_gmlp.utils.card import LABELS
from keras_gmlp.utils.files import atomic_write

ENTRY = b"TFLITE_METADATA"  # the name of the metadata in the model
IDENTIFIER = b"M001"  # of a flatbuffer of metadata

# The fields of its tables by their place, from the schema of the metadata.
FIELDS = (
    "name color_space content_properties_type max mean options_type",
    "content_properties description min options std",
    "input_tensor_metadata type",
    "content output_tensor_metadata subgraph_metadata",
    *("process_units", "stats", "associated_files", "min_parser_version"),
)
SLOTS = {name: place for place, names in enumerate(FIELDS) for name in names.split()}

# Values of its enumerations and unions.
FEATURE_PROPERTIES, IMAGE_PROPERTIES, NORMALIZATION, RGB, TENSOR_AXIS_LABELS = 1, 2, 1, 1, 2


def write_mediapipe(model, path, options):
    """Writes a file from `image`, float32 `(1, height, width, 3)`, to `probabilities`."""
    import tensorflow as tf

    temperature = read_confidence(options.card).temperature

    def serve(image):
        return {"probabilities": keras.ops.softmax(model(image, training=False) / temperature)}

    specs = [tf.TensorSpec(*each) for each in options.list_inputs(model)]
    signatures, folder = {DEFAULT_SIGNATURE: (serve, specs)}, Path(options.traces, "mediapipe")
    flatbuffer = convert(model, signatures, "dynamic", folder)
    with atomic_write(path) as temporary:
        temporary.write_bytes(add_metadata(flatbuffer, make_metadata(model.name)))
        options.write_card(temporary, model, output="probabilities")


def make_metadata(name):
    """Returns the metadata of an image classifier, a flatbuffer."""
    import flatbuffers

    unchanged = {"mean": np.float32([0]), "std": np.float32([1])}
    description = "Class names, one on each line"
    names = {"name": LABELS, "description": description, "type": TENSOR_AXIS_LABELS}
    image = {
        "name": "image",
        "description": "RGB image, values from 0 to 255",
        "content": {
            "content_properties_type": IMAGE_PROPERTIES,
            "content_properties": {"color_space": RGB},
        },
        # The model scales its pixels itself; readers of float32 images require the entry.
        "process_units": [{"options_type": NORMALIZATION, "options": unchanged}],
        "stats": {"max": np.float32([255]), "min": np.float32([0])},
    }
    probabilities = {
        "name": "probabilities",
        "description": "Probability of each class",
        "content": {"content_properties_type": FEATURE_PROPERTIES, "content_properties": {}},
        "stats": {"max": np.float32([1]), "min": np.float32([0])},
        "associated_files": [names],
    }
    subgraph = {"input_tensor_metadata": [image], "output_tensor_metadata": [probabilities]}
    table = {
        "name": name,
        "description": "Image classifier",
        "subgraph_metadata": [subgraph],
        "min_parser_version": "1.0.0",  # the first has all of these fields
    }
    builder = flatbuffers.Builder()
    builder.Finish(_write_value(builder, table), IDENTIFIER)
    return bytes(builder.Output())


def _write_value(builder, value):
    """Writes a value and what it refers to; returns its offset."""
    if isinstance(value, str):
        return builder.CreateString(value)
    if isinstance(value, np.ndarray):
        return builder.CreateNumpyVector(value)
    if isinstance(value, list):
        offsets = [_write_value(builder, item) for item in value]
        builder.StartVector(4, len(offsets), 4)
        for offset in reversed(offsets):  # a builder writes from the end
            builder.PrependUOffsetTRelative(offset)
        return builder.EndVector()
    integers = {name: item for name, item in value.items() if isinstance(item, int)}
    offsets = {n: _write_value(builder, item) for n, item in value.items() if n not in integers}
    builder.StartObject(1 + max(SLOTS.values()))
    for name, item in integers.items():
        builder.PrependUint8Slot(SLOTS[name], item, 0)
    for name, offset in offsets.items():
        builder.PrependUOffsetTRelativeSlot(SLOTS[name], offset, 0)
    return builder.EndObject()


def add_metadata(flatbuffer, metadata):
    """Returns the flatbuffer of a TFLite model with its metadata, bytes."""
    from tensorflow.lite.python.schema_py_generated import BufferT, MetadataT
    from tensorflow.lite.tools import flatbuffer_utils

    model = flatbuffer_utils.convert_bytearray_to_object(flatbuffer)
    buffer, entry = BufferT(), MetadataT()
    buffer.data = np.frombuffer(metadata, "uint8")
    entry.name, entry.buffer = ENTRY, len(model.buffers)
    model.buffers.append(buffer)
    model.metadata.append(entry)
    return flatbuffer_utils.convert_object_to_bytearray(model)
