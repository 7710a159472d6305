"""A dense layer that trains faster on PyTorch."""

import keras
from keras import layers, ops


@keras.saving.register_keras_serializable("keras_gmlp")
class Dense(layers.Dense):
    """`keras.layers.Dense`; on PyTorch the product adds the bias while it trains.

    Keras adds it in a pass of its own, which takes a tenth of a training step on a CPU. Layers that
    were quantized or have LoRA weights compute as in Keras.

    Args, input and output shape: as for `keras.layers.Dense`.
    """

    def call(self, inputs, training=None):
        fuses = training and self.bias is not None and keras.backend.backend() == "torch"
        if not fuses or self.quantization_mode or self.lora_enabled:
            return super().call(inputs, training=training)
        from torch.nn.functional import linear

        # Keras casts them to the compute dtype here, as it does for its own products.
        kernel, bias = ops.convert_to_tensor(self.kernel), ops.convert_to_tensor(self.bias)
        x = linear(inputs, kernel.T, bias)
        return x if self.activation is None else self.activation(x)
