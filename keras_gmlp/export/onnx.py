"""Writes a model as an ONNX file with PyTorch's exporter; requires Keras on PyTorch."""

import warnings

import keras

from keras_gmlp.utils.card import members
from keras_gmlp.utils.errors import first_line
from keras_gmlp.utils.files import atomic_write


def write_onnx(model, path, options):
    """Writes a model from `image`, float32 `(batch, height, width, channels)`, to `logits`."""
    import onnx
    import torch

    class Module(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.model = model

        def forward(self, image):
            return self.model(image, training=False)

    # Two images: with one, the exporter would fix the batch to one.
    sample = torch.zeros(2, *model.input_shape[1:], device=keras.ops.zeros(1).device)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # they address the developers of the exporter
            program = torch.onnx.export(
                Module().eval(),
                (sample,),
                dynamo=True,
                dynamic_shapes={"image": {0: torch.export.Dim("batch")}},
                input_names=["image"],
                output_names=["logits"],
                verbose=False,
            )
    except Exception as error:  # the exporter's errors have many classes and lines
        raise RuntimeError(f"onnx: the conversion failed ({first_line(error)}).") from error
    proto = program.model_proto
    onnx.helper.set_model_props(proto, members(model, options.labels, options.card))
    with atomic_write(path) as temporary:
        onnx.save(proto, temporary)
