"""gMLP and aMLP: "Pay Attention to MLPs", https://arxiv.org/abs/2105.08050."""

import keras
from keras import layers, ops

from keras_gmlp.layers.block import Block, TokenLayer, drop, make_dense, mask_scores, mask_tokens
from keras_gmlp.layers.spatial_projection import SpatialProjection, apply_over_tokens
from keras_gmlp.utils.errors import require_one_of

GATINGS = ("linear", "additive", "multiplicative", "split")


@keras.saving.register_keras_serializable("keras_gmlp")
class SpatialGatingUnit(TokenLayer):
    """Mixes tokens by a learned (n, n) matrix and gates with the result.

    With `f(Z) = W norm(Z) + b`, the spatial projection over the token axis, the unit computes

    - `"linear"`: `f(Z)`,
    - `"additive"`: `Z + f(Z)`,
    - `"multiplicative"`: `Z * f(Z)`,
    - `"split"` (the paper's best, and the default): `Z1 * f(Z2)`, where Z1 and Z2 are the two
      halves of the channels.

    W starts near zero. b starts at one where `f(Z)` is a factor and at zero where it is a summand,
    so the unit starts as `Z` (or `Z1`) and the block as a plain feed-forward block. With `"linear"`
    b starts at zero, so the unit starts near zero and the block as the identity.

    Args:
        gating: One of the four names above.
        epsilon: Added to the variance in the normalization. Published weights use 1e-5.
        heads, toeplitz, grid: See `SpatialProjection`. Each head has a matrix W of its own;
            `toeplitz=True` helps with small data sets.
        max_tokens: Largest number of tokens, for inputs of different lengths; see
            `SpatialProjection`.

    Call arguments:
        inputs: Shape `(batch, tokens, channels)`. Without `max_tokens`, `tokens` is fixed.
        attention: Optional summand of `f(Z)` (aMLP), of the shape of the output.
        mask: See `Block`. The projection reads zeros at padding.

    Output shape: `(batch, tokens, channels // 2)` for `"split"`, otherwise the input shape.

    Raises:
        ValueError: If the gating is unknown, the number of tokens is not fixed, or as for
            `SpatialProjection`.

    Example:
        >>> SpatialGatingUnit()(keras.ops.ones((2, 64, 512))).shape
        (2, 64, 256)

    Reference: "Pay Attention to MLPs", https://arxiv.org/abs/2105.08050, section 2.1 and table 3.
    """

    def __init__(
        self,
        gating: str = "split",
        epsilon: float = 1e-5,
        heads: int = 1,
        toeplitz: bool = False,
        grid: tuple[int, int] | None = None,
        max_tokens: int | None = None,
        **kwargs,
    ):
        super().__init__(**kwargs)
        require_one_of("gating", gating, GATINGS)
        self.gating, self.epsilon, self.heads = gating, epsilon, heads
        self.toeplitz, self.max_tokens = toeplitz, max_tokens
        self.grid = None if grid is None else tuple(grid)
        # One free matrix is a dense layer, as in published weights.
        self._is_dense = heads == 1 and not toeplitz and grid is None and max_tokens is None
        self.norm = self.make_part(layers.LayerNormalization, epsilon=epsilon, name="norm")

    def build(self, inputs_shape, attention_shape=None):
        tokens = inputs_shape[1]
        self.fix_tokens(inputs_shape)
        projected = self.compute_output_shape(inputs_shape)
        own = {"bias_initializer": "ones" if self._gates else "zeros", "name": "spatial"}
        self.norm.build(projected)
        if self._is_dense:
            # The kernel is the transpose of W: column i is the filter that computes token i.
            near_zero = keras.initializers.RandomNormal(stddev=1e-6)
            self.spatial = self.make_part(layers.Dense, tokens, kernel_initializer=near_zero, **own)
            self.spatial.build((projected[0], projected[2], tokens))
        else:
            arguments = self.heads, self.toeplitz, self.grid, self.max_tokens
            self.spatial = self.make_part(SpatialProjection, *arguments, **own)
            self.spatial.build(projected)

    def call(self, inputs, attention=None, mask=None, training=None):
        u, v = ops.split(inputs, 2, axis=-1) if self.gating == "split" else (inputs, inputs)
        v = mask_tokens(self.norm(v), mask)
        if self._is_dense:
            v = apply_over_tokens(self.spatial, v, training)
        else:
            v = self.spatial(v, training=training)
        if attention is not None:
            v = v + attention
        if self._gates:
            return u * v
        return u + v if self.gating == "additive" else v

    def compute_output_shape(self, inputs_shape, attention_shape=None):
        batch, tokens, channels = inputs_shape
        return batch, tokens, channels // 2 if self.gating == "split" else channels

    def weight_axes(self, path):
        """Returns the axes over tokens of the weights, for a block with the unit at `path`."""
        heads = () if self._is_dense else (None,)
        offsets = ("rows", "columns") if self.grid else ("places",)
        name, axes = ("offsets", offsets) if self.toeplitz else ("kernel", ("reads", "writes"))
        weights = {"bias": (*heads, "writes"), name: (*heads, *axes)}
        return {f"{path}/spatial/{name}": axes for name, axes in weights.items()}

    @property
    def _gates(self):
        return self.gating in ("multiplicative", "split")


@keras.saving.register_keras_serializable("keras_gmlp")
class TinyAttention(TokenLayer):
    """One small attention head, the "a" of aMLP.

    Args:
        units: Channels of the output.
        head_size: Channels of the queries, keys and values.
        kernel_initializer: Initializer of the two dense layers.

    Input shape: `(batch, tokens, dim)`. For `mask` see `Block`.
    Output shape: `(batch, tokens, units)`.

    Reference: "Pay Attention to MLPs", https://arxiv.org/abs/2105.08050, figure 6 and appendix.
    """

    def __init__(
        self,
        units: int,
        head_size: int = 64,
        kernel_initializer: str | keras.Initializer = "glorot_uniform",
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.units, self.head_size = units, head_size
        self.kernel_initializer = kernel_initializer
        self.qkv = make_dense(self, 3 * head_size, "qkv")
        self.projection = make_dense(self, units, "projection")

    def build(self, input_shape):
        self.qkv.build(input_shape)
        self.projection.build((*input_shape[:-1], self.head_size))

    def call(self, inputs, mask=None):
        query, key, value = ops.split(self.qkv(inputs), 3, axis=-1)
        return self.projection(ops.matmul(self._attend(query, key, mask), value))

    def attention_scores(self, inputs):
        """Returns what each token attends to, in float32: `(batch, queries, keys)`."""
        query, key, _ = ops.split(ops.cast(self.qkv(inputs), "float32"), 3, axis=-1)
        return self._attend(query, key)

    def _attend(self, query, key, mask=None):
        scores = ops.matmul(query * self.head_size**-0.5, ops.transpose(key, (0, 2, 1)))
        return ops.softmax(scores if mask is None else mask_scores(scores, mask[:, None, :]))

    def compute_output_shape(self, input_shape):
        return (*input_shape[:-1], self.units)


@keras.saving.register_keras_serializable("keras_gmlp")
class GMLPBlock(Block):
    """A residual block that expands the channels, gates across tokens and shrinks the channels.

    `inputs + Dense(sgu(gelu(Dense(norm(inputs)))))`. With `attention_size`, a `TinyAttention` on
    the normalized inputs joins the gate (aMLP).

    Args:
        hidden_dim: Channels between the two dense layers, the paper's d_ffn.
        gating: See `SpatialGatingUnit`; `"none"` omits the gate, so tokens do not mix.
        attention_size: Head size of the tiny attention; 0 for none.
        heads, toeplitz, grid, max_tokens: See `SpatialProjection`.
        **kwargs: See `Block`. The gate keeps its own initializer and epsilon.

    Input and output shape: `(batch, tokens, dim)`. Without `max_tokens`, `tokens` is fixed.

    Raises:
        ValueError: If the gating is unknown, `"none"` with attention, or as for
            `SpatialProjection`.

    Example:
        >>> GMLPBlock(512)(keras.ops.ones((2, 64, 128))).shape
        (2, 64, 128)

    Reference: "Pay Attention to MLPs", https://arxiv.org/abs/2105.08050, figures 1 and 6.
    """

    def __init__(
        self,
        hidden_dim: int,
        gating: str = "split",
        attention_size: int = 0,
        heads: int = 1,
        toeplitz: bool = False,
        grid: tuple[int, int] | None = None,
        max_tokens: int | None = None,
        **kwargs,
    ):
        super().__init__(hidden_dim, **kwargs)
        self.gating, self.attention_size, self.heads = gating, attention_size, heads
        self.toeplitz, self.max_tokens = toeplitz, max_tokens
        self.grid = None if grid is None else tuple(grid)
        if attention_size and gating == "none":
            raise ValueError("attention_size requires a gate; received gating='none'.")
        self.norm = self.make_norm("norm")
        self.expand = make_dense(self, hidden_dim, "expand", activation="gelu")
        self.gate = self.attention = None
        if gating != "none":
            sizes = {"heads": heads, "toeplitz": toeplitz, "grid": grid, "max_tokens": max_tokens}
            self.gate = self.make_part(SpatialGatingUnit, gating, **sizes, name="gate")
        if attention_size:
            gated = hidden_dim // 2 if gating == "split" else hidden_dim
            sizes = gated, attention_size, self.kernel_initializer
            self.attention = self.make_part(TinyAttention, *sizes, name="attention")
        self.branch_dropout = self.make_dropout("dropout")
        self.branch_drop = self.make_stochastic_depth("drop_path")

    @property
    def token_axes(self):
        """The axes over tokens of the gate's weights; see `Block`."""
        return {} if self.gate is None else self.gate.weight_axes("gate")

    def build(self, input_shape):
        self.norm.build(input_shape)
        self.expand.build(input_shape)
        gated = (*input_shape[:-1], self.hidden_dim)
        if self.gate is not None:
            self.gate.build(gated)
            gated = self.gate.compute_output_shape(gated)
        if self.attention is not None:
            self.attention.build(input_shape)
        self.shrink = make_dense(self, input_shape[-1], "shrink")
        self.shrink.build(gated)

    def call(self, inputs, mask=None, training=None):
        x = self.norm(inputs) if self.norm_placement == "pre" else inputs
        attention = None if self.attention is None else self.attention(x, mask=mask)
        x = self.expand(x)
        if self.gate is not None:
            x = self.gate(x, attention=attention, mask=mask, training=training)
        x = drop(self.branch_dropout, self.shrink(x), training)
        x = inputs + drop(self.branch_drop, x, training)
        return x if self.norm_placement == "pre" else self.norm(x)

    def attention_scores(self, tokens):
        """Returns what each token attends to, `(batch, queries, keys)`; `None` in a gMLP."""
        if self.attention is None:
            return None
        x = self.norm(tokens) if self.norm_placement == "pre" else tokens
        return self.attention.attention_scores(x)
