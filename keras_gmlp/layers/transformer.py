"""The attention baseline: the Transformer encoder block of ViT."""

import contextlib

import keras
from keras import layers, ops

from keras_gmlp.layers.block import ResidualBlock, check_heads, copy_initializer
from keras_gmlp.layers.relative_attention import RelativeAttention


@keras.saving.register_keras_serializable("keras_gmlp")
class TransformerBlock(ResidualBlock):
    """Self-attention, then a feed-forward network, both residual.

    Args:
        num_heads: Attention heads; they share the channels equally.
        hidden_dim: Channels of the hidden layer of the feed-forward network.
        relative: Whether scores have learned biases for the distance of two tokens; see
            `RelativeAttention`.
        content: Whether scores depend on the tokens; `False` requires `relative=True`.
        max_tokens: Largest number of tokens, for `relative=True` and inputs of different lengths.
        **kwargs: See `Block`. `norm_placement="post"` with `epsilon=1e-12` is the block of BERT.

    Input and output shape: `(batch, tokens, dim)`.

    Raises:
        ValueError: If the channels are not a multiple of `num_heads`, or `content=False` without
            `relative=True`.

    Example:
        >>> TransformerBlock(num_heads=3, hidden_dim=384)(keras.ops.ones((2, 65, 96))).shape
        (2, 65, 96)

    Reference: "An Image is Worth 16x16 Words", https://arxiv.org/abs/2010.11929, figure 1.
    """

    def __init__(
        self,
        num_heads: int,
        hidden_dim: int,
        relative: bool = False,
        content: bool = True,
        max_tokens: int | None = None,
        **kwargs,
    ):
        super().__init__(hidden_dim, **kwargs)
        if not (content or relative):
            raise ValueError("content=False requires relative=True.")
        self.num_heads, self.max_tokens = num_heads, max_tokens
        self.relative, self.content = relative, content

    def build_mixer(self, input_shape):
        tokens, dim = input_shape[1:]
        check_heads(self.num_heads, dim)
        own = {"kernel_initializer": copy_initializer(self.kernel_initializer), "name": "attention"}
        if self.relative:
            own |= {"content": self.content, "max_tokens": self.max_tokens}
            self.attention = self.make_part(RelativeAttention, self.num_heads, **own)
            self.attention.build(input_shape)
            return
        sizes = self.num_heads, dim // self.num_heads
        with _fused_attention_only_if(tokens is not None and tokens % 2 == 0):
            self.attention = self.make_part(layers.MultiHeadAttention, *sizes, **own)
        self.attention.build(input_shape, input_shape)

    def mix_tokens(self, x, mask=None):
        if self.relative:
            return self.attention(x, mask=mask)
        if mask is None:
            return self.attention(x, x)
        keys = ops.cast(mask, "bool")[:, None, :]  # (b, n) -> (b, 1, n), the same for all queries
        return self.attention(x, x, attention_mask=keys)

    def attention_scores(self, tokens):
        """Returns what each token attends to, the mean over heads: `(batch, queries, keys)`."""
        x = self.norm1(tokens) if self.norm_placement == "pre" else tokens
        if self.relative:
            return self.attention.attention_scores(x)
        _, scores = self.attention(x, x, return_attention_scores=True)
        return ops.mean(ops.cast(scores, "float32"), axis=1)


@contextlib.contextmanager
def _fused_attention_only_if(even):
    """Disables fused attention in JAX unless the number of tokens is known to be even."""
    disabled = keras.config.is_flash_attention_enabled() is False
    if disabled or even or keras.backend.backend() != "jax":
        yield
        return
    keras.config.disable_flash_attention()
    try:
        yield
    finally:
        keras.config.enable_flash_attention()
