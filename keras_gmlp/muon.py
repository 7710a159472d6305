"""Muon for kernels of any number of axes."""

import math
import re

import keras
from keras import ops

from keras_gmlp.environment import accelerators


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
        # On a CPU one product after the other takes less time. TensorFlow hands variables over
        # one by one, for the sake of its distribution strategies.
        self.together = keras.backend.backend() != "tensorflow" and bool(accelerators())

    def _backend_update_step(self, grads, trainable_variables, learning_rate):
        if not self.together:
            super()._backend_update_step(grads, trainable_variables, learning_rate)
            return
        alike = {}
        for gradient, variable in zip(grads, trainable_variables, strict=True):
            i = self._get_variable_index(variable)
            if self.adam_velocities[i] is not None:
                self.update_step(gradient, variable, learning_rate)
            else:
                shape = (self.rows[i], math.prod(variable.shape) // self.rows[i])
                alike.setdefault(shape, []).append((gradient, variable))
        for pairs in alike.values():
            self._update_alike(pairs, learning_rate)

    def _muon_update_step(self, gradient, variable, lr, m):  # as Keras' own is called
        self._update_alike([(gradient, variable)], lr)

    def _update_alike(self, pairs, lr):
        """Updates variables whose matrices have one shape.

        Their products are made together: one by one a GPU would spend the step on starting some
        hundred small products in turn.

        Args:
            pairs: of gradient and variable.
            lr: the learning rate.
        """
        matrices = []
        for gradient, variable in pairs:
            i = self._get_variable_index(variable)
            m = self.momentums[i]
            self.assign_add(m, ops.add(gradient, m * (self.momentum - 1)))
            direction = ops.add(gradient, self.momentum * m) if self.nesterov else m
            matrices.append(ops.reshape(direction, (self.rows[i], -1)))
        updates = self.zeropower_via_newtonschulz5(ops.stack(matrices), self.ns_steps)
        for (_, variable), update in zip(pairs, ops.unstack(updates, len(pairs)), strict=True):
            self.assign_sub(variable, ops.reshape(self.lr_adjust(lr * update), variable.shape))


def matrix_rows(variable):
    """The inputs of a kernel, whose other axes are its outputs."""
    shape = tuple(variable.shape)
    is_projection = len(shape) == 3 and "attention_output" not in variable.path
    return shape[0] if is_projection else math.prod(shape[:-1])
