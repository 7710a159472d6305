"""Spatial projection with several heads, free or shift-invariant."""

import math

import keras
from keras import ops

from keras_gmlp.layers.block import TokenLayer, check_heads


@keras.saving.register_keras_serializable("keras_gmlp")
class SpatialProjection(TokenLayer):
    """Mixes tokens by one matrix for each group of channels.

    The channels are split into `heads` groups. Output token i of head h is
    `sum_j W[h, i, j] x_j + b[h, i]`. With `toeplitz=True` the weights depend on the offset between
    two tokens only, so that a pattern means the same at each place:

    - a sequence: `W[h, i, j] = w[h, i - j]`, with 2n - 1 weights per head,
    - a grid of rows y and columns x: `W[h, i, j] = w[h, y_i - y_j, x_i - x_j]`, with
      (2 rows - 1) (2 columns - 1) weights per head.

    W is computed from w in each call; exports hold W.

    Args:
        heads: Groups of channels with their own matrix; they must divide the channels.
        toeplitz: Whether weights depend only on the offset.
        grid: Shape of the token grid, stored row by row, for `toeplitz=True`: `(rows, columns)`.
            Defaults to a sequence, `(tokens,)`.
        max_tokens: Number of tokens that W and b cover, for inputs of any length up to it: n tokens
            use the first n rows and columns of W. Defaults to the tokens of the input it is built
            with.
        bias_initializer: Initializer of b. W starts near zero.

    Input and output shape: `(batch, tokens, channels)`. Without `max_tokens`, `tokens` is fixed.

    Raises:
        ValueError: If the number of tokens is not fixed, exceeds `max_tokens` or does not fit the
            grid, or the heads do not divide the channels.

    Example:
        >>> layer = SpatialProjection(heads=8, toeplitz=True, grid=(8, 8))
        >>> layer(keras.ops.ones((2, 64, 192))).shape, layer.offsets.shape
        ((2, 64, 192), (8, 15, 15))

    Reference: "Pay Attention to MLPs", https://arxiv.org/abs/2105.08050, whose language models use
    Toeplitz matrices. Heads and the form for grids are ours.
    """

    supports_masking = False

    def __init__(
        self,
        heads: int = 1,
        toeplitz: bool = False,
        grid: tuple[int, int] | None = None,
        max_tokens: int | None = None,
        bias_initializer: str | keras.Initializer = "ones",
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.heads, self.toeplitz, self.max_tokens = heads, toeplitz, max_tokens
        self.grid = None if grid is None else tuple(grid)
        self.bias_initializer = keras.initializers.get(bias_initializer)

    def build(self, input_shape):
        _, tokens, channels = input_shape
        self.fix_tokens(input_shape)
        check_heads(self.heads, channels)
        if self.grid is not None and math.prod(self.grid) != tokens:
            raise ValueError(
                f"grid must have as many places as there are tokens, {tokens}; received "
                f"{self.grid}. A class token has no place on the grid."
            )
        tokens = self.max_tokens or tokens
        near_zero = keras.initializers.RandomNormal(stddev=1e-6)
        if self.toeplitz:
            sizes = [2 * size - 1 for size in self.grid or (tokens,)]
            self.offsets = self.add_weight((self.heads, *sizes), near_zero, name="offsets")
        else:  # W transposed, as the kernel of a dense layer
            self.kernel = self.add_weight((self.heads, tokens, tokens), near_zero, name="kernel")
        self.bias = self.add_weight((self.heads, tokens), self.bias_initializer, name="bias")

    def matrices(self):
        """Returns the transpose of W for each head: `(heads, inputs, outputs)`."""
        if not self.toeplitz:
            return ops.convert_to_tensor(self.kernel)
        return toeplitz_matrices(ops.convert_to_tensor(self.offsets))

    def call(self, inputs, training=None):
        _, tokens, channels = inputs.shape
        size = channels // self.heads
        matrices, bias = self.matrices(), ops.convert_to_tensor(self.bias)
        if tokens != bias.shape[1]:
            self.check_tokens(inputs.shape)
            tokens = ops.shape(inputs)[1]
            matrices, bias = matrices[:, :tokens, :tokens], bias[:, :tokens]
        if training and self.heads == 1:
            return _multiply_tokens(ops.transpose(matrices[0]), inputs, bias[0])
        if training and keras.backend.backend() != "jax":
            # One product per head, and transposes that move whole rows: 0.6 of the time on a CPU.
            x = ops.reshape(inputs, (-1, tokens, self.heads, size))
            x = ops.reshape(ops.transpose(x, (2, 1, 0, 3)), (self.heads, tokens, -1))
            x = ops.matmul(ops.transpose(matrices, (0, 2, 1)), x) + bias[:, :, None]
            x = ops.reshape(x, (self.heads, tokens, -1, size))
            return ops.reshape(ops.transpose(x, (2, 1, 0, 3)), (-1, tokens, channels))
        x = ops.transpose(inputs, (0, 2, 1))  # (b, n, c) -> (b, c, n)
        if self.heads == 1:
            # No axis of size 1: on CPUs with AVX-512, TensorFlow 2.21 writes past the end of such
            # a product (https://github.com/tensorflow/tensorflow/issues/117700).
            return ops.transpose(ops.matmul(x, matrices[0]) + bias[0], (0, 2, 1))
        x = ops.reshape(x, (-1, self.heads, size, tokens))
        x = ops.matmul(x, matrices) + bias[:, None, :]
        x = ops.reshape(x, (-1, channels, tokens))
        return ops.transpose(x, (0, 2, 1))  # (b, c, n) -> (b, n, c)


def apply_over_tokens(dense, inputs, training=None):
    """Applies a dense layer along the token axis."""
    if not training or dense.quantization_mode:
        x = ops.transpose(inputs, (0, 2, 1))  # (b, n, c) -> (b, c, n)
        return ops.transpose(dense(x), (0, 2, 1))  # (b, c, n) -> (b, n, c)
    return _multiply_tokens(ops.transpose(dense.kernel), inputs, ops.convert_to_tensor(dense.bias))


def _multiply_tokens(matrix, inputs, bias):
    """Returns `matrix @ inputs + bias[:, None]`, in the form with the fastest gradient."""
    if keras.backend.backend() == "torch":  # whose products take the same matrix again and again
        from torch import baddbmm

        return baddbmm(bias[:, None], matrix.expand(inputs.shape[0], *matrix.shape), inputs)
    tokens, channels = ops.shape(inputs)[1], inputs.shape[-1]
    x = ops.reshape(ops.transpose(inputs, (1, 0, 2)), (tokens, -1))  # (b, n, c) -> (n, b c)
    x = ops.matmul(matrix, x) + bias[:, None]
    return ops.transpose(ops.reshape(x, (tokens, -1, channels)), (1, 0, 2))


def toeplitz_matrices(offsets):
    """Returns the matrices, inputs first, of weights that depend on the offset of two tokens."""
    x = _expand_last(offsets)
    if len(offsets.shape) == 2:
        return x
    x = _expand_last(ops.transpose(x, (0, 2, 3, 1)))  # (h, xj, xi, yj, yi)
    heads, columns, _, rows, _ = x.shape
    tokens = rows * columns
    return ops.reshape(ops.transpose(x, (0, 3, 1, 4, 2)), (heads, tokens, tokens))


def _expand_last(x):
    """Maps `(..., 2 n - 1)` to `(..., n, n)` with entry `[j, i]` from place `i - j + n - 1`."""
    *leading, length = x.shape
    n = (length + 1) // 2
    # Rows of length 2n - 1 in a text with period 2n: each row starts one place earlier.
    x = ops.concatenate([x, ops.zeros_like(x[..., :1])], axis=-1)
    x = ops.tile(x, [1] * len(leading) + [n])[..., : n * length]
    return ops.reshape(x, (*leading, n, length))[..., n - 1 :]
