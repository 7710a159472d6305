"""The base class of all blocks: shared arguments, their configuration and padding."""

import inspect
from numbers import Real
from typing import ClassVar

import keras
from keras import layers, ops

from keras_gmlp.layers.dense import Dense

NORM_PLACEMENTS = ("pre", "post")


class TokenLayer(layers.Layer):
    """A layer that refuses inputs of another shape than `(batch, tokens, dim)`."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.input_spec = layers.InputSpec(ndim=3)

    def fix_tokens(self, input_shape):
        """Refuses, from now on, another number of tokens or channels."""
        self.input_spec = layers.InputSpec(shape=(None, *input_shape[1:]))


class Block(TokenLayer):
    """Maps tokens to tokens. The base class of every family's block.

    A subclass creates its layers and defines `call(inputs, mask=None, training=None)`. A block with
    one branch over tokens and one over channels subclasses `ResidualBlock` instead.

    Args:
        hidden_dim: Channels of the hidden layer.
        stochastic_depth: Probability, in [0, 1), that a sample skips a branch in training.
        dropout: Rate, in [0, 1), of dropout on the output of each branch.
        kernel_initializer: Initializer of the dense layers. BERT uses a truncated normal
            distribution of standard deviation 0.02.
        epsilon: Added to the variance in layer normalization. BERT uses 1e-12.
        norm_placement: `"pre"` for `x + branch(norm(x))`, or `"post"` for `norm(x + branch(x))`, as
            in BERT.
        **kwargs: Arguments of `keras.layers.Layer`, such as `dtype` and `name`.

    Call arguments:
        inputs: Tokens of shape `(batch, tokens, dim)`.
        mask: Booleans of shape `(batch, tokens)`: `True` for a token, `False` for padding. Padding
            does not change the outputs of the other tokens. Its own outputs are meaningless.
        training: Whether dropout and stochastic depth are active.

    Class attributes:
        token_axes: The weights that have an axis over tokens. Maps the path of a weight inside the
            block to a tuple with an entry for each axis: `"reads"` if the weight multiplies the
            input tokens along it, `"writes"` if it computes the output tokens, `"holds"` if it
            holds a value for each token, `"rows"` or `"columns"` if it holds a weight for each
            offset between two rows or columns of the token grid, `"places"` for offsets in a
            sequence, or `None`. A two-axis weight with a `"reads"` axis is shown as the block's
            spatial filters.

    Raises:
        ValueError: If `norm_placement` is unknown, or `stochastic_depth` or `dropout` is outside
            [0, 1).
    """

    token_axes: ClassVar[dict] = {}

    def __init__(
        self,
        hidden_dim,
        stochastic_depth=0.0,
        dropout=0.0,
        kernel_initializer="glorot_uniform",
        epsilon=1e-6,
        norm_placement="pre",
        **kwargs,
    ):
        super().__init__(**kwargs)
        # Without the argument Keras warns that the block ignores a mask.
        self.supports_masking = "mask" in inspect.signature(self.call).parameters
        if norm_placement not in NORM_PLACEMENTS:
            raise ValueError(
                f"norm_placement must be 'pre' or 'post'; received {norm_placement!r}."
            )
        check_rates(stochastic_depth=stochastic_depth, dropout=dropout)
        self.hidden_dim = hidden_dim
        self.stochastic_depth = stochastic_depth
        self.dropout = dropout
        self.kernel_initializer = kernel_initializer
        self.epsilon = epsilon
        self.norm_placement = norm_placement

    def make_norm(self, name):
        return layers.LayerNormalization(epsilon=self.epsilon, dtype=self.dtype_policy, name=name)

    def make_dropout(self, name):
        return layers.Dropout(self.dropout, dtype=self.dtype_policy, name=name)

    def make_stochastic_depth(self, name):
        # One draw for each sample, shared by all tokens and channels.
        return layers.Dropout(
            self.stochastic_depth, (None, 1, 1), dtype=self.dtype_policy, name=name
        )

    def compute_output_shape(self, input_shape):
        return input_shape

    def get_config(self):
        return {
            **super().get_config(),
            "hidden_dim": self.hidden_dim,
            "stochastic_depth": self.stochastic_depth,
            "dropout": self.dropout,
            "kernel_initializer": serialize_initializer(self.kernel_initializer),
            "epsilon": self.epsilon,
            "norm_placement": self.norm_placement,
        }

    @classmethod
    def from_config(cls, config):
        if "stochastic_depth" not in config:  # saved by version 0.1.0
            config = rename_key(config, "drop_path", "stochastic_depth")
        return super().from_config(config)


def make_dense(layer, units, name, **kwargs):
    """Returns a dense layer with the initializer and dtype of the layer that contains it."""
    return Dense(
        units,
        kernel_initializer=copy_initializer(layer.kernel_initializer),
        dtype=layer.dtype_policy,
        name=name,
        **kwargs,
    )


def rename_key(config, old, new):
    """Returns a configuration in which an argument of version 0.1.0 has its present name."""
    return {new if name == old else name: value for name, value in config.items()}


def copy_initializer(initializer):
    """Returns an initializer for one layer: a shared one draws the same values for each."""
    shared = isinstance(initializer, keras.initializers.Initializer)
    return initializer.clone() if shared else initializer


def serialize_initializer(initializer):
    shared = isinstance(initializer, keras.initializers.Initializer)
    return keras.initializers.serialize(initializer) if shared else initializer


def drop(layer, x, training):
    """Applies a dropout layer, or none if it is off: a call takes Keras 0.1 ms on PyTorch."""
    return layer(x, training=training) if layer.rate else x


def mask_tokens(x, mask):
    """Sets padding to zero. `x` is `(batch, tokens, channels)`, `mask` is `(batch, tokens)`."""
    return x if mask is None else x * ops.cast(mask, x.dtype)[:, :, None]


def mask_scores(scores, mask):
    """Lowers scores at padding so that softmax gives it no weight; `mask` must broadcast."""
    return ops.where(ops.cast(mask, "bool"), scores, -3e4)  # float16 ends at -65504


def check_rates(**rates):
    """Raises a `ValueError` for a rate that is not a number in [0, 1)."""
    for name, rate in rates.items():
        if not (isinstance(rate, Real) and 0 <= rate < 1):
            raise ValueError(f"{name} must be in [0, 1); received {rate!r}.")


def check_tokens(layer, input_shape):
    """Raises a `ValueError` if the number of tokens or channels is not fixed, or if it changes."""
    if len(input_shape) != 3 or None in input_shape[1:]:
        raise ValueError(
            f"{type(layer).__name__} has weights for each token, so their number must be fixed: "
            f"expected shape (batch, tokens, dim); received {tuple(input_shape)}."
        )
    if isinstance(layer, TokenLayer):
        layer.fix_tokens(input_shape)
