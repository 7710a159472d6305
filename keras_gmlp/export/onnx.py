"""Writes a model as an ONNX file with PyTorch's exporter; requires Keras on PyTorch."""

import warnings

import keras

from keras_gmlp.utils.errors import first_line
from keras_gmlp.utils.files import atomic_write


def write_onnx(model, path, options):
    """Writes a model for any number of images or texts, from its inputs to `logits`."""
    import onnx
    import torch

    class Module(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.model = model

        def forward(self, *arrays):
            return self.model(keras.tree.pack_sequence_as(model.input, arrays), training=False)

    inputs, device = options.list_inputs(model), keras.ops.zeros(1).device
    batch = {0: torch.export.Dim("batch")}
    # Two samples: with one, the exporter would fix the batch to one.
    samples = [
        torch.zeros(2, *shape[1:], dtype=getattr(torch, dtype), device=device)
        for shape, dtype, _ in inputs
    ]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # they address the developers of the exporter
            program = torch.onnx.export(
                Module().eval(),
                tuple(samples),
                dynamo=True,
                dynamic_shapes={"arrays": (batch,) * len(inputs)},
                input_names=[name for *_, name in inputs],
                output_names=["logits"],
                verbose=False,
            )
    except Exception as error:  # the exporter's errors have many classes and lines
        raise RuntimeError(f"onnx: the conversion failed ({first_line(error)}).") from error
    with atomic_write(path) as temporary:
        onnx.save(program.model_proto, temporary)
        options.write_card(temporary, model)
