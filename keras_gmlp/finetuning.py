"""What fine-tuning adds to training: a rate that grows with depth, a backbone that stays."""

import re

import keras


@keras.saving.register_keras_serializable("keras_gmlp")
class LayerwiseAdamW(keras.optimizers.AdamW):
    """AdamW whose learning rate falls, layer by layer, from the head to the stem.

    The early layers of a trained model are the most general, and change the least. The head and
    the last norm have the whole rate, the last block `layer_decay` times as much, the one before
    it `layer_decay` squared, and what makes the tokens the least. The decay of the weights falls
    with it.

    Args:
        layer_decay: in (0, 1].
        *args, **kwargs: of `keras.optimizers.AdamW`.

    Reference: "BEiT", https://arxiv.org/abs/2106.08254.
    """

    def __init__(self, *args, layer_decay=0.75, **kwargs):
        super().__init__(*args, **kwargs)
        self.layer_decay = layer_decay

    def build(self, variables):
        super().build(variables)
        # Taken down now: while training, TensorFlow hands over its own variables without a path.
        self.rates = learning_rates([v.path for v in variables], self.layer_decay)

    def update_step(self, gradient, variable, learning_rate):
        rate = self.rates[self._get_variable_index(variable)]
        super().update_step(gradient, variable, learning_rate * rate)

    def _apply_weight_decay(self, variables):
        whole = self.weight_decay
        if whole is None:
            return
        try:
            # One at a time, and none that is spared: Keras on PyTorch fails with nothing to decay.
            for variable in filter(self._use_weight_decay, variables):
                self.weight_decay = whole * self.rates[self._get_variable_index(variable)]
                super()._apply_weight_decay([variable])
        finally:
            self.weight_decay = whole

    def get_config(self):
        return {**super().get_config(), "layer_decay": self.layer_decay}


def learning_rates(paths, layer_decay):
    """The share of the learning rate for each weight, by its path."""
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
    """Leaves the head alone to be trained; to be compiled afterwards."""
    for layer in model.layers:
        layer.trainable = layer.name.startswith("head")
