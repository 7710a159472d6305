"""gMLP and aMLP: "Pay Attention to MLPs", https://arxiv.org/abs/2105.08050."""

import keras
from keras import layers, ops

GATINGS = ("linear", "additive", "multiplicative", "split")


@keras.saving.register_keras_serializable("keras_gmlp")
class SpatialGatingUnit(layers.Layer):
    """Mixes tokens by a learned (n, n) matrix and gates with the result.

    With `f(Z) = W norm(Z) + b`, the spatial projection over the token axis, the unit computes

    - `"linear"`: `f(Z)`,
    - `"additive"`: `Z + f(Z)`,
    - `"multiplicative"`: `Z * f(Z)`,
    - `"split"` (the paper's best, and the default): `Z1 * f(Z2)`, where Z1 and Z2 are the two
      halves of the channels.

    W starts near zero. b starts at one where the projection gates and at zero where it is a
    summand, so that at first `s(Z) = Z` (or `Z1`) and the block is a plain feed-forward block. With
    `"linear"` b starts at zero too: the branch gives next to nothing, the block is the identity.

    Args:
        gating: one of the four above.
        epsilon: of the normalization. Published weights were trained with 1e-5.

    Call arguments:
        inputs: shape `(batch, tokens, channels)`, `tokens` fixed.
        attention: optional, added to `f(Z)` (aMLP), of the output's shape.

    Output shape: `(batch, tokens, channels // 2)` for `"split"`, else the inputs' shape.

    Raises:
        ValueError: an unknown gating, a number of tokens that is not fixed, or an odd number of
            channels to split.

    Example:
        >>> SpatialGatingUnit()(keras.ops.ones((2, 64, 512))).shape
        (2, 64, 256)

    Reference: "Pay Attention to MLPs", https://arxiv.org/abs/2105.08050, section 2.1 and table 3.
    """

    def __init__(self, gating="split", epsilon=1e-5, **kwargs):
        super().__init__(**kwargs)
        if gating not in GATINGS:
            raise ValueError(
                f"Unknown gating {gating!r}; expected one of {', '.join(map(repr, GATINGS))}."
            )
        self.gating = gating
        self.epsilon = epsilon
        self.norm = layers.LayerNormalization(epsilon=epsilon, dtype=self.dtype_policy, name="norm")

    def build(self, inputs_shape, attention_shape=None):
        tokens, channels = inputs_shape[1:]
        if tokens is None:
            raise ValueError(
                "SpatialGatingUnit has one weight for each pair of tokens, so their number must be "
                f"fixed; received inputs of shape {tuple(inputs_shape)}."
            )
        if self.gating == "split" and channels % 2:
            raise ValueError(
                f"gating='split' halves the channels; received an odd number, {channels}. Choose "
                "an even number or another gating."
            )
        # The kernel is the paper's W, transposed: column i is the filter that makes token i.
        self.spatial = layers.Dense(
            tokens,
            kernel_initializer=keras.initializers.RandomNormal(stddev=1e-6),
            bias_initializer="ones" if self._gates else "zeros",
            dtype=self.dtype_policy,
            name="spatial",
        )
        projected = self.compute_output_shape(inputs_shape)
        self.norm.build(projected)
        self.spatial.build((projected[0], projected[2], tokens))

    def call(self, inputs, attention=None):
        u, v = ops.split(inputs, 2, axis=-1) if self.gating == "split" else (inputs, inputs)
        v = ops.transpose(self.norm(v), (0, 2, 1))  # (b, n, c) -> (b, c, n)
        v = ops.transpose(self.spatial(v), (0, 2, 1))  # (b, c, n) -> (b, n, c)
        if attention is not None:
            v = v + attention
        if self._gates:
            return u * v
        return u + v if self.gating == "additive" else v

    def compute_output_shape(self, inputs_shape, attention_shape=None):
        batch, tokens, channels = inputs_shape
        return batch, tokens, channels // 2 if self.gating == "split" else channels

    def get_config(self):
        return {**super().get_config(), "gating": self.gating, "epsilon": self.epsilon}

    @property
    def _gates(self):
        return self.gating in ("multiplicative", "split")


@keras.saving.register_keras_serializable("keras_gmlp")
class TinyAttention(layers.Layer):
    """One small attention head, the "a" of aMLP.

    Args:
        units: channels of the output.
        head_size: channels of the queries, keys and values.

    Input shape: `(batch, tokens, dim)`.
    Output shape: `(batch, tokens, units)`.

    Example:
        >>> TinyAttention(256)(keras.ops.ones((2, 64, 128))).shape
        (2, 64, 256)

    Reference: "Pay Attention to MLPs", https://arxiv.org/abs/2105.08050, figure 6 and appendix.
    """

    def __init__(self, units, head_size=64, **kwargs):
        super().__init__(**kwargs)
        self.units = units
        self.head_size = head_size
        self.qkv = layers.Dense(3 * head_size, dtype=self.dtype_policy, name="qkv")
        self.projection = layers.Dense(units, dtype=self.dtype_policy, name="projection")

    def build(self, input_shape):
        self.qkv.build(input_shape)
        self.projection.build((*input_shape[:-1], self.head_size))

    def call(self, inputs):
        query, key, value = ops.split(self.qkv(inputs), 3, axis=-1)
        scores = ops.matmul(query * self.head_size**-0.5, ops.transpose(key, (0, 2, 1)))
        return self.projection(ops.matmul(ops.softmax(scores), value))

    def compute_output_shape(self, input_shape):
        return (*input_shape[:-1], self.units)

    def get_config(self):
        return {**super().get_config(), "units": self.units, "head_size": self.head_size}


@keras.saving.register_keras_serializable("keras_gmlp")
class GMLPBlock(layers.Layer):
    """A residual block: expand the channels, gate across tokens, shrink.

    `inputs + Dense(sgu(gelu(Dense(norm(inputs)))))`; with `attention_size`, a `TinyAttention` on
    the normalized inputs joins the gate (aMLP).

    Args:
        hidden_dim: channels between the two dense layers, the paper's d_ffn.
        gating: see `SpatialGatingUnit`; `"none"` leaves the gate out, and tokens do not mix.
        attention_size: head size of the tiny attention; 0 means none.
        drop_path: probability, in [0, 1), that a sample skips the block in training (stochastic
            depth).
        dropout: rate, in [0, 1), of dropout on the branch's output.

    Input and output shape: `(batch, tokens, dim)`, `tokens` fixed.

    Example:
        >>> GMLPBlock(512)(keras.ops.ones((2, 64, 128))).shape
        (2, 64, 128)

    Reference: "Pay Attention to MLPs", https://arxiv.org/abs/2105.08050, figures 1 and 6.
    """

    def __init__(
        self,
        hidden_dim,
        gating="split",
        attention_size=0,
        drop_path=0.0,
        dropout=0.0,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.hidden_dim = hidden_dim
        self.gating = gating
        self.attention_size = attention_size
        self.drop_path = drop_path
        self.dropout = dropout
        own = {"dtype": self.dtype_policy}
        self.norm = layers.LayerNormalization(epsilon=1e-6, name="norm", **own)
        self.expand = layers.Dense(hidden_dim, activation="gelu", name="expand", **own)
        self.gate = None if gating == "none" else SpatialGatingUnit(gating, name="gate", **own)
        self.attention = None
        if attention_size and self.gate is None:
            raise ValueError("The attention joins the gate: give a gating other than 'none'.")
        if attention_size:
            gated = hidden_dim // 2 if gating == "split" else hidden_dim
            self.attention = TinyAttention(gated, attention_size, name="attention", **own)
        self.branch_dropout = layers.Dropout(dropout, name="dropout", **own)
        self.branch_drop = layers.Dropout(drop_path, (None, 1, 1), name="drop_path", **own)

    def build(self, input_shape):
        self.norm.build(input_shape)
        self.expand.build(input_shape)
        expanded = (*input_shape[:-1], self.hidden_dim)
        gated = expanded
        if self.gate is not None:
            self.gate.build(expanded)
            gated = self.gate.compute_output_shape(expanded)
        if self.attention is not None:
            self.attention.build(input_shape)
        self.shrink = layers.Dense(input_shape[-1], dtype=self.dtype_policy, name="shrink")
        self.shrink.build(gated)

    def call(self, inputs, training=None):
        x = self.norm(inputs)
        attention = None if self.attention is None else self.attention(x)
        x = self.expand(x)
        if self.gate is not None:
            x = self.gate(x, attention=attention)
        x = self.branch_dropout(self.shrink(x), training=training)
        return inputs + self.branch_drop(x, training=training)

    def compute_output_shape(self, input_shape):
        return input_shape

    def get_config(self):
        return {
            **super().get_config(),
            "hidden_dim": self.hidden_dim,
            "gating": self.gating,
            "attention_size": self.attention_size,
            "drop_path": self.drop_path,
            "dropout": self.dropout,
        }
