"""Muon for kernels of any number of axes."""

import math
import re

import keras
from keras import ops


@keras.saving.register_keras_serializable("keras_gmlp")
class MatrixMuon(keras.optimizers.Muon):
    """Keras' Muon, which takes kernels of more than two axes for the matrices that they are.

    Keras' own leaves them to AdamW: all of a ResNet and the attention of a ViT, while MLPs, whose
    kernels have two axes, get Muon. For one recipe to mean one optimizer, a convolution's kernel
    counts here as a matrix (rows x columns x inputs, outputs), a query's, key's and value's as
    (inputs, heads x size), and attention's output as (heads x size, outputs). For kernels of two
    axes nothing changes.

    Reference: "Muon: An optimizer for hidden layers in neural networks",
    https://kellerjordan.github.io/posts/muon/.
    """

    def _should_use_adamw(self, variable):
        if len(variable.shape) < 2:
            return True
        if self.exclude_embeddings and "embedding" in variable.path.lower():
            return True
        return any(re.search(pattern, variable.path) for pattern in self.exclude_layers)

    def build(self, var_list):
        super().build(var_list)
        # Taken down now: while training, TensorFlow hands over its own variables without a path.
        self.rows = [matrix_rows(v) if len(v.shape) > 1 else None for v in var_list]

    def _muon_update_step(self, gradient, variable, lr, m):
        self.assign_add(m, ops.add(gradient, m * (self.momentum - 1)))
        direction = ops.add(gradient, self.momentum * m) if self.nesterov else m
        matrix = ops.reshape(direction, (self.rows[self._get_variable_index(variable)], -1))
        update = self.lr_adjust(lr * self.zeropower_via_newtonschulz5(matrix, self.ns_steps))
        self.assign_sub(variable, ops.reshape(update, variable.shape))


def matrix_rows(variable):
    """The inputs of a kernel, whose other axes are its outputs."""
    shape = tuple(variable.shape)
    is_projection = len(shape) == 3 and "attention_output" not in variable.path
    return shape[0] if is_projection else math.prod(shape[:-1])
