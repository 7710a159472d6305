"""The attention baseline: the Transformer encoder block of ViT."""

import keras
from keras import layers


@keras.saving.register_keras_serializable("keras_gmlp")
class TransformerBlock(layers.Layer):
    """Self-attention, then a feed-forward network, each normalized before and residual.

    Args:
        num_heads: attention heads; they share the channels equally.
        hidden_dim: channels of the feed-forward network's hidden layer.
        drop_path: probability, in [0, 1), that a sample skips a branch in training (stochastic
            depth), drawn for each branch by itself.
        dropout: rate, in [0, 1), of dropout on each branch's output.

    Input and output shape: `(batch, tokens, dim)`.

    Raises:
        ValueError: the channels are not a multiple of `num_heads`.

    Example:
        >>> TransformerBlock(num_heads=3, hidden_dim=384)(keras.ops.ones((2, 65, 96))).shape
        (2, 65, 96)

    Reference: "An Image is Worth 16x16 Words", https://arxiv.org/abs/2010.11929, figure 1.
    """

    def __init__(self, num_heads, hidden_dim, drop_path=0.0, dropout=0.0, **kwargs):
        super().__init__(**kwargs)
        self.num_heads = num_heads
        self.hidden_dim = hidden_dim
        self.drop_path = drop_path
        self.dropout = dropout
        own = {"dtype": self.dtype_policy}
        self.norm1 = layers.LayerNormalization(epsilon=1e-6, name="norm1", **own)
        self.norm2 = layers.LayerNormalization(epsilon=1e-6, name="norm2", **own)
        self.expand = layers.Dense(hidden_dim, activation="gelu", name="expand", **own)
        # Each branch draws for itself: a shared layer would still, but a shared name hides it.
        self.dropout1 = layers.Dropout(dropout, name="dropout1", **own)
        self.dropout2 = layers.Dropout(dropout, name="dropout2", **own)
        self.drop_path1 = layers.Dropout(drop_path, (None, 1, 1), name="drop_path1", **own)
        self.drop_path2 = layers.Dropout(drop_path, (None, 1, 1), name="drop_path2", **own)

    def build(self, input_shape):
        dim = input_shape[-1]
        if dim % self.num_heads:
            raise ValueError(
                f"{dim} channels cannot be shared by num_heads={self.num_heads}. Choose a number "
                "of heads that divides the channels."
            )
        self.attention = layers.MultiHeadAttention(
            self.num_heads, dim // self.num_heads, dtype=self.dtype_policy, name="attention"
        )
        self.shrink = layers.Dense(dim, dtype=self.dtype_policy, name="shrink")
        self.norm1.build(input_shape)
        self.attention.build(input_shape, input_shape)
        self.norm2.build(input_shape)
        self.expand.build(input_shape)
        self.shrink.build((*input_shape[:-1], self.hidden_dim))

    def call(self, inputs, training=None):
        x = self.norm1(inputs)
        x = self.dropout1(self.attention(x, x), training=training)
        inputs = inputs + self.drop_path1(x, training=training)
        x = self.shrink(self.expand(self.norm2(inputs)))
        x = self.dropout2(x, training=training)
        return inputs + self.drop_path2(x, training=training)

    def compute_output_shape(self, input_shape):
        return input_shape

    def get_config(self):
        return {
            **super().get_config(),
            "num_heads": self.num_heads,
            "hidden_dim": self.hidden_dim,
            "drop_path": self.drop_path,
            "dropout": self.dropout,
        }
