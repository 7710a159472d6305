"""Stems: from an image to a sequence of tokens."""

import itertools
from typing import ClassVar

import keras
from keras import layers, ops

from keras_gmlp.layers.block import ConfiguredLayer


class Stem(ConfiguredLayer):
    """Computes tokens from an image, row by row; a subclass has `dim`, `patch_size`, `convolve`."""

    def make_convolution(self, channels, side, stride, name):
        padding = {"padding": "same", "data_format": "channels_last"}
        return self.make_part(layers.Conv2D, channels, side, stride, **padding, name=name)

    def call(self, inputs):
        x = self.convolve(inputs)  # (b, rows, columns, d) -> (b, n, d)
        return ops.reshape(x, (-1, *self.compute_output_shape(inputs.shape)[1:]))

    def compute_output_shape(self, input_shape):
        """Returns the shape of the tokens; raises a `ValueError` if patches do not fit."""
        size, (_, height, width, _) = self.patch_size, input_shape
        if None in (height, width) or height % size or width % size:
            raise ValueError(
                f"{type(self).__name__} expects images whose sides are multiples of {size}, its "
                f"patch_size; received shape {tuple(input_shape)}."
            )
        return input_shape[0], height // size * (width // size), self.dim


@keras.saving.register_keras_serializable("keras_gmlp")
class PatchEmbedding(Stem):
    """Cuts an image into square patches and projects each to a token.

    A convolution whose kernel is as large as its stride, as in "An Image is Worth 16x16 Words"
    (https://arxiv.org/abs/2010.11929). Tokens are ordered row by row, left to right.

    Args:
        dim: Channels of a token.
        patch_size: Side of a patch in pixels; it must divide the height and width of the image.
        patch_window: Side in pixels of the square around a patch that its token is computed from:
            `patch_size`, or larger by an even number, so that windows overlap. Pixels outside the
            image are zeros. Defaults to `patch_size`.

    Input shape: `(batch, height, width, channels)`.
    Output shape: `(batch, height // patch_size * width // patch_size, dim)`.

    Raises:
        ValueError: If the window does not fit the patch, or the input is not an image of a fixed
            size that is a whole number of patches.

    Example:
        >>> PatchEmbedding(128, patch_size=4)(keras.ops.ones((2, 32, 32, 3))).shape
        (2, 64, 128)
    """

    renamed: ClassVar[dict] = {"window": "patch_window"}

    def __init__(self, dim: int, patch_size: int, patch_window: int | None = None, **kwargs):
        super().__init__(**kwargs)
        self.dim, self.patch_size = dim, patch_size
        self.patch_window = patch_size if patch_window is None else patch_window
        if self.patch_window < patch_size or (self.patch_window - patch_size) % 2:
            raise ValueError(
                f"patch_window must be patch_size {patch_size}, or larger by an even number; "
                f"received {patch_window}."
            )
        self.projection = self.make_convolution(dim, self.patch_window, patch_size, "projection")

    def build(self, input_shape):
        self.compute_output_shape(input_shape)
        self.projection.build(input_shape)

    def convolve(self, inputs):
        return self.projection(inputs)


@keras.saving.register_keras_serializable("keras_gmlp")
class ConvolutionalStem(Stem):
    """Computes tokens from an image by a few small, overlapping convolutions.

    3x3 convolutions of stride 2, one for each halving, each with twice the channels, with layer
    normalization over the channels and GELU between them. Batch normalization would not work with
    averaged weights, which do not include its statistics.

    Args:
        dim: Channels of a token.
        patch_size: Side in pixels of the square for each token, a power of two; it must divide the
            height and width of the image.

    Input shape: `(batch, height, width, channels)`.
    Output shape: `(batch, height // patch_size * width // patch_size, dim)`.

    Raises:
        ValueError: If the patch size is not a power of two, or as for `PatchEmbedding`.

    Example:
        >>> ConvolutionalStem(128, patch_size=4)(keras.ops.ones((2, 32, 32, 3))).shape
        (2, 64, 128)

    Reference: "Early Convolutions Help Transformers See Better",
    https://arxiv.org/abs/2106.14881.
    """

    def __init__(self, dim: int, patch_size: int, **kwargs):
        super().__init__(**kwargs)
        halvings = _count_halvings(patch_size, smallest=2)
        self.dim, self.patch_size = dim, patch_size
        self.convolutions = [
            self.make_convolution(max(1, dim >> halvings - i - 1), 3, 2, f"convolution_{i}")
            for i in range(halvings)
        ]
        self.norms = [
            self.make_part(layers.LayerNormalization, epsilon=1e-6, name=f"norm_{i}")
            for i in range(halvings - 1)
        ]
        self.activation = self.make_part(layers.Activation, "gelu", name="activation")

    def build(self, input_shape):
        self.compute_output_shape(input_shape)
        shape = input_shape
        for convolution in self.convolutions:
            convolution.build(shape)
            shape = convolution.compute_output_shape(shape)
        for convolution, norm in zip(self.convolutions, self.norms, strict=False):
            norm.build((*shape[:3], convolution.filters))

    def convolve(self, inputs):
        x = self.convolutions[0](inputs)
        for norm, convolution in zip(self.norms, self.convolutions[1:], strict=True):
            x = convolution(self.activation(norm(x)))
        return x


@keras.saving.register_keras_serializable("keras_gmlp")
class ResidualStem(Stem):
    """Computes tokens from an image by 3x3 convolutions, most of which have a shortcut.

    One convolution of stride 2 for each halving, each with twice the channels; the last has `dim`.
    After each but the last come `depth` convolutions that keep the size and add what they compute
    to their input. All but the last have layer normalization over the channels and GELU. It costs
    more than `ConvolutionalStem`, and the model learns faster in the first epochs.

    Args:
        dim: Channels of a token.
        patch_size: Side in pixels of the square for each token, a power of two, at least 4; it must
            divide the height and width of the image.
        channels: Channels after the first halving.
        depth: Convolutions with a shortcut after each halving but the last, at least 0.

    Input shape: `(batch, height, width, channels)`.
    Output shape: `(batch, height // patch_size * width // patch_size, dim)`.

    Raises:
        ValueError: If the patch size is not a power of two from 4 on, or as for `PatchEmbedding`.

    Example:
        >>> ResidualStem(128, patch_size=4)(keras.ops.ones((2, 32, 32, 3))).shape
        (2, 64, 128)

    Reference: "Early Convolutions Help Transformers See Better",
    https://arxiv.org/abs/2106.14881. The shortcuts are ours.
    """

    def __init__(self, dim: int, patch_size: int, channels: int = 64, depth: int = 2, **kwargs):
        super().__init__(**kwargs)
        halvings = _count_halvings(patch_size, smallest=4)
        self.dim, self.patch_size = dim, patch_size
        self.channels, self.depth = channels, depth
        # One of stride 2 and `depth` that keep the size for each halving but the last.
        self.convolutions, self.norms = [], []
        for i, j in itertools.product(range(halvings - 1), range(depth + 1)):
            name = f"residual_{i}_{j}" if j else f"halve_{i}"
            hidden = self.make_convolution(channels << i, 3, 1 if j else 2, name)
            norm = self.make_part(layers.LayerNormalization, epsilon=1e-6, name=f"norm_{i}_{j}")
            self.convolutions.append(hidden)
            self.norms.append(norm)
        self.last = self.make_convolution(dim, 3, 2, f"halve_{halvings - 1}")
        self.activation = self.make_part(layers.Activation, "gelu", name="activation")

    def build(self, input_shape):
        self.compute_output_shape(input_shape)
        shape = input_shape
        for convolution, norm in zip(self.convolutions, self.norms, strict=True):
            convolution.build(shape)
            shape = convolution.compute_output_shape(shape)
            norm.build(shape)
        self.last.build(shape)

    def convolve(self, inputs):
        x = inputs
        for i, (convolution, norm) in enumerate(zip(self.convolutions, self.norms, strict=True)):
            step = self.activation(norm(convolution(x)))
            x = x + step if i % (self.depth + 1) else step
        return self.last(x)


def _count_halvings(patch_size, smallest):
    """Returns how often a stem halves the image for patches of this size."""
    halvings = int(patch_size).bit_length() - 1
    if patch_size != 2**halvings or patch_size < smallest:
        raise ValueError(
            "This stem halves the image repeatedly, so patch_size must be a power of two from "
            f"{smallest} on; received {patch_size}."
        )
    return halvings
