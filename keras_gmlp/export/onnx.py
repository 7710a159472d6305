"""A model as an ONNX file, by PyTorch's exporter.

Runs Keras on PyTorch, the backend from which the batch stays open.
"""

import warnings

import keras

from keras_gmlp.card import members
from keras_gmlp.utils.errors import first_line
from keras_gmlp.utils.files import atomic_write


def write_onnx(model, path, labels=None, card=None):
    """Writes a model from `image`, float32 `(batch, height, width, channels)`, to `logits`.

    Args:
        model: a float32 `keras.Model` from images in [0, 255] to logits.
        path: of the file. Class names and card become its metadata.
        labels: class names. Default to the classes' numbers.
        card: see `cards.write_card`.

    Raises:
        RuntimeError: the conversion failed.
    """
    import onnx
    import torch

    class Module(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.model = model

        def forward(self, image):
            return self.model(image, training=False)

    # Two: the exporter takes a batch of one for a batch that is always one.
    sample = torch.zeros(2, *model.input_shape[1:], device=keras.ops.zeros(1).device)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of the exporter's, to its developers
            program = torch.onnx.export(
                Module().eval(),
                (sample,),
                dynamo=True,
                dynamic_shapes={"image": {0: torch.export.Dim("batch")}},
                input_names=["image"],
                output_names=["logits"],
                verbose=False,
            )
    except Exception as error:  # the exporter raises errors of every kind, many lines long
        raise RuntimeError(f"onnx: the conversion failed ({first_line(error)}).") from error
    proto = program.model_proto
    onnx.helper.set_model_props(proto, members(model, labels, card))
    with atomic_write(path) as temporary:
        onnx.save(proto, temporary)
