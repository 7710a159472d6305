"""Feed-forward only: "Do You Even Need Attention?", https://arxiv.org/abs/2105.02723."""

from functools import partial
from typing import ClassVar

import keras
from keras import ops

from keras_gmlp.layers.mixer import TokenMLPBlock


@keras.saving.register_keras_serializable("keras_gmlp")
class FeedForwardOnlyBlock(TokenMLPBlock):
    """An MLP over channels, then an MLP over tokens that is normalized along the tokens.

    A ViT block whose attention is replaced and whose order is reversed: `x + mlp(norm1(x))`, then
    `x + (mlp(norm2(x^T)))^T`, where norm2 has a gain and an offset for each token. With a padding
    mask, norm2 takes the mean and variance of the unmasked tokens only.

    Args:
        token_hidden_dim: Hidden units of the token MLP; the paper uses 4 x tokens.
        hidden_dim: Hidden channels of the channel MLP.
        **kwargs: See `Block`.

    Input and output shape: `(batch, tokens, dim)`, `tokens` fixed, otherwise a `ValueError`.

    Example:
        >>> FeedForwardOnlyBlock(260, hidden_dim=512)(keras.ops.ones((2, 65, 128))).shape
        (2, 65, 128)

    Reference: https://arxiv.org/abs/2105.02723, figure 1 and appendix.
    """

    token_axes: ClassVar[dict] = {
        "norm2/gamma": ("holds",),
        "norm2/beta": ("holds",),
        **TokenMLPBlock.token_axes,
    }

    def build_norms(self, input_shape):
        self.fix_tokens(input_shape)
        batch, tokens, dim = input_shape
        self.norm1.build(input_shape)
        self.norm2.build((batch, dim, tokens))

    def normalize_along_tokens(self, x, mask=None):
        # Transposed: under PyTorch, Keras normalizes the last axis only.
        x = ops.transpose(x, (0, 2, 1))  # (b, n, d) -> (b, d, n)
        x = self.norm2(x) if mask is None else _masked_norm(self.norm2, x, mask)
        return ops.transpose(x, (0, 2, 1))

    def branches(self, mask):
        over_tokens = partial(self.normalize_along_tokens, mask=mask)
        return (self.norm1, self.mix_channels), (over_tokens, partial(self.mix_tokens, mask=mask))


def _masked_norm(norm, x, mask):
    """Applies a layer norm over tokens, of shape (b, d, n), without the padding."""
    x = ops.cast(x, "float32")
    present = ops.cast(mask, "float32")[:, None, :]
    count = ops.maximum(ops.sum(present, axis=-1, keepdims=True), 1)
    mean = ops.sum(x * present, axis=-1, keepdims=True) / count
    centred = (x - mean) * present
    variance = ops.sum(ops.square(centred), axis=-1, keepdims=True) / count
    x = centred * ops.rsqrt(variance + norm.epsilon) * norm.gamma + norm.beta
    return ops.cast(x, norm.compute_dtype)
