"""The base class of all blocks: shared arguments, their configuration and padding."""

import inspect
import re
from functools import partial
from typing import Any, ClassVar

import keras
from keras import layers, ops

from keras_gmlp.utils.errors import require_one_of


class ConfiguredLayer(layers.Layer):
    """A layer that keeps the shape of its input and stores each argument as an attribute."""

    renamed: ClassVar[dict] = {}  # arguments of version 0.1.0: the present name by the old one

    def compute_output_shape(self, input_shape):
        return input_shape

    def get_config(self):
        classes = type(self).__mro__
        ours = classes[: classes.index(ConfiguredLayer)]
        names = [name for c in ours for name in inspect.signature(c.__init__).parameters]
        config = super().get_config() | {n: vars(self)[n] for n in names if n in vars(self)}
        for name, value in config.items():
            if isinstance(value, keras.initializers.Initializer):
                config[name] = keras.initializers.serialize(value)
        # By patterns of paths, which begin otherwise if this layer is in another model.
        quantized = {
            f"(.*/)?{re.escape(self.name + part.path.removeprefix(self.path))}": part.dtype_policy
            for part in self._flatten_layers()
            if part.quantization_mode
        }
        if quantized:
            policies = keras.dtype_policies.DTypePolicyMap(self.dtype_policy, quantized)
            config["dtype"] = keras.dtype_policies.serialize(policies)
        return config

    @classmethod
    def from_config(cls, config):
        return super().from_config({cls.renamed.get(n, n): v for n, v in config.items()})

    def make_part(self, kind, *args, **kwargs):
        """Returns a layer inside this one, of the same precision."""
        return kind(*args, dtype=self.dtype_policy, **kwargs)

    def _post_build(self):
        """Gives each part its policy of the map in a config: Keras saves no dense layer with it."""
        super()._post_build()
        for part in self._flatten_layers():
            if isinstance(part.dtype_policy, keras.dtype_policies.DTypePolicyMap):
                part._dtype_policy = part.dtype_policy[part.path or ""]  # some are never built


class TokenLayer(ConfiguredLayer):
    """A layer that refuses inputs of another shape than `(batch, tokens, dim)`."""

    supports_masking = True

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.input_spec = layers.InputSpec(ndim=3)

    def check_tokens(self, input_shape):
        """Raises a `ValueError` if the number of tokens is not fixed or limited, or too large."""
        # Not a class attribute: TensorFlow would not store an equal value, which a config needs.
        tokens, limit = input_shape[1], getattr(self, "max_tokens", None)
        if limit is None and None in input_shape[1:]:
            raise ValueError(
                f"{type(self).__name__} has weights for each token, so their number must be fixed, "
                f"or limited by max_tokens; received shape {tuple(input_shape)}."
            )
        if None not in (tokens, limit) and tokens > limit:
            raise ValueError(
                f"{type(self).__name__} takes at most max_tokens={limit} tokens; received {tokens}."
            )

    def fix_tokens(self, input_shape):
        """Refuses, from now on, another number of tokens or channels, unless there is a limit."""
        self.check_tokens(input_shape)
        if getattr(self, "max_tokens", None) is None:
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
            block to an entry for each axis: `"reads"` if the weight multiplies the input tokens
            along it, `"writes"` if it computes the output tokens, `"holds"` for a value for each
            token, `"rows"`, `"columns"` or `"places"` for a weight for each offset between two
            rows or columns of the token grid or places of a sequence, or `None`. A two-axis weight
            with a `"reads"` axis is shown as the block's spatial filters.

    Raises:
        ValueError: If `norm_placement` is unknown or a rate is out of its range.
    """

    token_axes: ClassVar[dict] = {}
    renamed: ClassVar[dict] = {"drop_path": "stochastic_depth"}

    def __init__(
        self,
        hidden_dim: int,
        stochastic_depth: float = 0.0,
        dropout: float = 0.0,
        kernel_initializer: str | keras.Initializer = "glorot_uniform",
        epsilon: float = 1e-6,
        norm_placement: str = "pre",
        **kwargs,
    ):
        super().__init__(**kwargs)
        # Without the argument Keras warns that the block ignores a mask.
        self.supports_masking = "mask" in inspect.signature(self.call).parameters
        require_one_of("norm_placement", norm_placement, ("pre", "post"))
        self.hidden_dim, self.norm_placement = hidden_dim, norm_placement
        self.stochastic_depth, self.dropout = stochastic_depth, dropout
        self.kernel_initializer, self.epsilon = kernel_initializer, epsilon

    def make_norm(self, name):
        return self.make_part(layers.LayerNormalization, epsilon=self.epsilon, name=name)

    def make_dropout(self, name):
        return self.make_part(layers.Dropout, self.dropout, name=name)

    def make_stochastic_depth(self, name):
        # One draw for each sample, shared by all tokens and channels.
        return self.make_part(layers.Dropout, self.stochastic_depth, (None, 1, 1), name=name)


def make_dense(layer: layers.Layer, units: int, name: str, **kwargs) -> layers.Dense:
    """Returns a dense layer with the initializer and dtype of the layer that contains it.

    Args:
        layer: The layer that contains it; has `kernel_initializer`.
        units: Number of output channels.
        name: Name of the dense layer.
        **kwargs: Further arguments of `keras.layers.Dense`.
    """
    return Dense(
        units,
        kernel_initializer=copy_initializer(layer.kernel_initializer),
        dtype=layer.dtype_policy,
        name=name,
        **kwargs,
    )


def copy_initializer(initializer):
    """Returns an initializer for one layer: a shared one draws the same values for each."""
    shared = isinstance(initializer, keras.initializers.Initializer)
    return initializer.clone() if shared else initializer


def drop(layer, x, training):
    """Applies a dropout layer, or none if it is off: a call takes Keras 0.1 ms on PyTorch."""
    return layer(x, training=training) if layer.rate else x


def mask_tokens(x: Any, mask: Any) -> Any:
    """Returns tokens with zeros at padding.

    Args:
        x: Tokens, `(batch, tokens, channels)`.
        mask: Whether each place is a token, `(batch, tokens)`; None leaves the tokens as they are.
    """
    return x if mask is None else x * ops.cast(mask, x.dtype)[:, :, None]


def mask_scores(scores, mask):
    """Lowers scores at padding so that softmax gives it no weight; `mask` must broadcast."""
    return ops.where(ops.cast(mask, "bool"), scores, -3e4)  # float16 ends at -65504


def check_heads(num_heads, channels):
    """Raises a `ValueError` if heads cannot share the channels."""
    if num_heads < 1 or channels % num_heads:
        raise ValueError(
            f"{channels} channels cannot be shared by num_heads={num_heads}. Choose a number of "
            "heads that divides the channels."
        )


@keras.saving.register_keras_serializable("keras_gmlp")
class Dense(layers.Dense):
    """`keras.layers.Dense`; on PyTorch the product adds the bias while it trains."""

    # Keras adds it in a pass of its own, which takes a tenth of a training step on a CPU. Layers
    # that were quantized or have LoRA weights compute as in Keras.

    def call(self, inputs, training=None):
        fuses = training and self.bias is not None and keras.backend.backend() == "torch"
        if not fuses or self.quantization_mode or self.lora_enabled:
            return super().call(inputs, training=training)
        from torch.nn.functional import linear

        # Keras casts them to the compute dtype here, as it does for its own products.
        kernel, bias = ops.convert_to_tensor(self.kernel), ops.convert_to_tensor(self.bias)
        x = linear(inputs, kernel.T, bias)
        return x if self.activation is None else self.activation(x)

    def quantize(self, mode=None, type_check=False, config=None):
        # Keras does not quantize subclasses of its layers by default.
        super().quantize(mode, type_check=False, config=config)


class ResidualBlock(Block):
    """Mixes tokens in one residual branch and channels in another.

    Computes `x + mix_tokens(norm1(x))`, then `x + mix_channels(norm2(x))`. With
    `norm_placement="post"` it computes `norm1(x + mix_tokens(x))`, then `norm2(x +
    mix_channels(x))`. A family defines `mix_tokens(x, mask=None)` and creates the weights for it in
    `build_mixer(input_shape)`. Channels mix in a feed-forward network.

    Args:
        hidden_dim: Channels of the hidden layer of the feed-forward network.
        **kwargs: See `Block`. Each branch draws its own stochastic depth and dropout.

    Input and output shape: `(batch, tokens, dim)`.
    """

    def __init__(self, hidden_dim: int, **kwargs):
        super().__init__(hidden_dim, **kwargs)
        self.norm1 = self.make_norm("norm1")
        self.norm2 = self.make_norm("norm2")
        self.expand = make_dense(self, hidden_dim, "expand", activation="gelu")
        # The names drop_path1 and drop_path2 are part of saved files since version 0.1.0.
        # Separate layers: with a shared one, both branches would have the same name.
        self.dropout1 = self.make_dropout("dropout1")
        self.dropout2 = self.make_dropout("dropout2")
        self.drop_path1 = self.make_stochastic_depth("drop_path1")
        self.drop_path2 = self.make_stochastic_depth("drop_path2")

    def build_norms(self, input_shape):
        self.norm1.build(input_shape)
        self.norm2.build(input_shape)

    def build_mixer(self, input_shape):
        """Builds the layers of `mix_tokens`; a mixer without weights has none."""

    def mix_tokens(self, x, mask=None):
        raise NotImplementedError

    def mix_channels(self, x):
        return self.shrink(self.expand(x))

    def build(self, input_shape):
        self.build_norms(input_shape)
        self.build_mixer(input_shape)
        self.expand.build(input_shape)
        self.shrink = make_dense(self, input_shape[-1], "shrink")
        self.shrink.build((*input_shape[:-1], self.hidden_dim))

    def branches(self, mask):
        """Returns the norm and the mixing function of each branch, in their order."""
        return (self.norm1, partial(self.mix_tokens, mask=mask)), (self.norm2, self.mix_channels)

    def call(self, inputs, mask=None, training=None):
        x = inputs
        drops = (self.dropout1, self.drop_path1), (self.dropout2, self.drop_path2)
        for (norm, mix), (dropout, drop_path) in zip(self.branches(mask), drops, strict=True):
            branch = mix(norm(x)) if self.norm_placement == "pre" else mix(x)
            x = x + drop(drop_path, drop(dropout, branch, training), training)
            if self.norm_placement == "post":
                x = norm(x)
        return x
