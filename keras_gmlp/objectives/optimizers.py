"""Optimizers: Muon for kernels of any shape, layer-wise AdamW, and a recipe's optimizer."""

import math
import re

import keras
from keras import ops

from keras_gmlp.utils.environment import accelerators

# On PyTorch, Keras makes optimizers of classes that it saves under the names of their modules,
# which other backends cannot import. Under these names a file opens on every backend.
OPTIMIZERS = {
    name: public
    for name, public in vars(keras.optimizers).items()
    if isinstance(public, type) and issubclass(public, keras.optimizers.Optimizer)
}
for _name, _public in OPTIMIZERS.items():
    _made = type(_public.__new__(_public))
    keras.saving.register_keras_serializable("keras_gmlp", _name)(_made)


@keras.saving.register_keras_serializable("keras_gmlp")
class LayerwiseAdamW(keras.optimizers.AdamW):
    """AdamW whose learning rate falls, layer by layer, from the head to the stem.

    The early layers of a trained model are the most general and change the least. Head and last
    norm have the whole rate, the last block `layer_decay` times as much, the block before it
    `layer_decay` squared, and so on down to the stem. Weight decay scales with the rate.

    Args:
        layer_decay: Factor from each layer to the one below it, in (0, 1].
        *args, **kwargs: Arguments of `keras.optimizers.AdamW`.

    Reference: "BEiT", https://arxiv.org/abs/2106.08254.
    """

    def __init__(self, *args, layer_decay: float = 0.75, **kwargs):
        super().__init__(*args, **kwargs)
        self.layer_decay = layer_decay

    def build(self, variables):
        super().build(variables)
        # Computed now: in training, TensorFlow passes variables that have no path.
        self.rates = learning_rates([v.path for v in variables], self.layer_decay)

    def update_step(self, gradient, variable, learning_rate):
        rate = self.rates[self._get_variable_index(variable)]
        super().update_step(gradient, variable, learning_rate * rate)

    def _apply_weight_decay(self, variables):
        whole = self.weight_decay
        if whole is None:
            return
        try:
            # One at a time and decayed ones only: Keras on PyTorch fails if nothing decays.
            for variable in filter(self._use_weight_decay, variables):
                self.weight_decay = whole * self.rates[self._get_variable_index(variable)]
                super()._apply_weight_decay([variable])
        finally:
            self.weight_decay = whole

    def get_config(self):
        return {**super().get_config(), "layer_decay": self.layer_decay}


def learning_rates(paths, layer_decay):
    """Returns the share of the learning rate for each weight, by its path."""
    blocks = [re.match(r"block_(\d+)", path) for path in paths]
    depth = 1 + max((int(block[1]) for block in blocks if block), default=-1)
    rates = []
    for path, block in zip(paths, blocks, strict=True):
        from_top = depth - int(block[1]) if block else depth + 1
        if path.startswith(("head", "norm/")):
            from_top = 0
        rates.append(layer_decay**from_top)
    return rates


def freeze_backbone(model):
    """Makes all layers except the head untrainable; compile the model afterwards."""
    for layer in model.layers:
        layer.trainable = layer.name.startswith("head")


@keras.saving.register_keras_serializable("keras_gmlp")
class MatrixMuon(keras.optimizers.Muon):
    """Keras' Muon for kernels of any number of axes, reshaped to matrices.

    Keras' Muon uses AdamW for kernels with more than two axes: all kernels of a ResNet and the
    attention of a ViT. Here they become matrices, so that a recipe means one optimizer for every
    family: a convolution (rows x columns x inputs, outputs), a projection to queries, keys or
    values (inputs, heads x size), the output of attention (heads x size, outputs). Kernels with
    two axes are updated as in Keras.

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
        # Computed now: in training, TensorFlow passes variables that have no path.
        self.rows = [matrix_rows(v) if len(v.shape) > 1 else None for v in var_list]
        # On a CPU separate products take less time. TensorFlow passes variables one by one, for
        # its distribution strategies.
        self.together = keras.backend.backend() != "tensorflow" and bool(accelerators())

    def _backend_update_step(self, grads, trainable_variables, learning_rate):
        if not self.together:
            super()._backend_update_step(grads, trainable_variables, learning_rate)
            return
        by_shape = {}
        for gradient, variable in zip(grads, trainable_variables, strict=True):
            i = self._get_variable_index(variable)
            if self.adam_velocities[i] is not None:
                self.update_step(gradient, variable, learning_rate)
            else:
                shape = (self.rows[i], math.prod(variable.shape) // self.rows[i])
                by_shape.setdefault(shape, []).append((gradient, variable))
        for pairs in by_shape.values():
            self._update_together(pairs, learning_rate)

    def _muon_update_step(self, gradient, variable, lr, m):  # overrides Keras' method
        self._update_together([(gradient, variable)], lr)

    def _update_together(self, pairs, lr):
        """Updates variables whose matrices have the same shape, with one batched product."""
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
    """Returns the number of rows of a kernel as a matrix from inputs to outputs."""
    shape = tuple(variable.shape)
    by_head = "attention_output" in variable.path or "spatial" in variable.path
    is_projection = len(shape) == 3 and not by_head
    return shape[0] if is_projection else math.prod(shape[:-1])


# Weights without decay: norms, Affine, LayerScale, biases, tokens, positions, offsets. The pattern
# matches the end of the name: in TensorFlow that is the whole path, and a layer is token_mlp. The
# table of words, `embeddings`, decays as in BERT: it is the kernel of the head as well.
NO_DECAY = [r"(^|/)(bias|gamma|beta|alpha|token|embedding|offsets|position_bias)(:\d+)?$"]


def make_optimizer(recipe, total_steps):
    """Returns a recipe's optimizer: warm-up and cosine, decay of kernels only, averaging."""
    warmup_steps = max(1, round(recipe.warmup * total_steps))
    schedule = keras.optimizers.schedules.CosineDecay(
        0.0,
        max(1, total_steps - warmup_steps),
        warmup_target=recipe.learning_rate,
        warmup_steps=warmup_steps,
    )
    common = {
        "learning_rate": schedule,
        "weight_decay": recipe.weight_decay,
        "global_clipnorm": recipe.clip_norm,
        "use_ema": recipe.ema > 0,
        "ema_momentum": 1 - 1 / max(1.0, recipe.ema * total_steps),
    }
    if recipe.optimizer == "muon":
        optimizer = MatrixMuon(
            # AdamW updates the first and the last layer and the tokens, as Muon's authors advise,
            # biases (those of attention have two axes) and offsets, which are not matrices. A
            # residual stem has further convolutions after the first layer.
            exclude_layers=[
                "^stem(?!/(residual|halve_[1-9]))",
                "^head",
                "/token$",
                "/(position_)?bias$",
                "/offsets$",
            ],
            adam_lr_ratio=recipe.adam_ratio,
            adam_weight_decay=recipe.weight_decay,
            **common,
        )
    elif recipe.optimizer == "sgd":
        optimizer = keras.optimizers.SGD(momentum=0.9, **common)
    elif recipe.layer_decay < 1:
        optimizer = LayerwiseAdamW(layer_decay=recipe.layer_decay, epsilon=1e-6, **common)
    else:
        optimizer = keras.optimizers.AdamW(epsilon=1e-6, **common)
    optimizer.exclude_from_weight_decay(var_names=NO_DECAY)
    return optimizer
