"""Several views of an image for a network that takes small ones, and the mean of what it finds."""

import itertools
from collections.abc import Sequence

import keras
from keras import ops

from keras_gmlp.layers.block import ConfiguredLayer


@keras.saving.register_keras_serializable("keras_gmlp")
class ZoomedViews(ConfiguredLayer):
    """Cuts views around the centre of an image: the whole image, then larger and larger.

    The views of an image follow one another in the batch. In
    training there is one view, the whole image, so that a step takes as long as without zooms.

    Args:
        zooms: Shares of the sides that the views show, from 1 down, each in (0, 1]. All views have
            the size that the last one has without scaling.

    Input shape: `(batch, height, width, channels)`.
    Output shape: `(batch * views, height * zooms[-1], width * zooms[-1], channels)`, rounded; in
    training `(batch, ...)`.

    Raises:
        ValueError: If `zooms` are not such shares.

    Example:
        >>> ZoomedViews((1, 0.75, 0.5))(keras.ops.ones((2, 128, 128, 3))).shape
        (6, 64, 64, 3)
    """

    def __init__(self, zooms: Sequence[float] = (1, 0.75, 0.5), **kwargs):
        super().__init__(**kwargs)
        self.zooms = check_zooms(zooms)

    def call(self, inputs, training=None):
        height, width, channels = inputs.shape[1:]
        sides = view_size(height, width, self.zooms[-1])
        views = []
        for zoom in self.zooms[:1] if training else self.zooms:
            rows, columns = view_size(height, width, zoom)
            top, left = (height - rows) // 2, (width - columns) // 2
            views.append(_shrink(inputs[:, top : top + rows, left : left + columns], sides))
        return ops.reshape(ops.stack(views, axis=1), (-1, *sides, channels))

    def compute_output_shape(self, input_shape):
        batch, height, width, channels = input_shape
        batch = batch and batch * len(self.zooms)
        return batch, *view_size(height, width, self.zooms[-1]), channels


@keras.saving.register_keras_serializable("keras_gmlp")
class AverageViews(ConfiguredLayer):
    """Averages the vectors of the views of each image; in training there is one view."""

    def __init__(self, views, **kwargs):
        super().__init__(**kwargs)
        self.views = views

    def call(self, inputs, training=None):
        if training:
            return inputs
        return ops.mean(ops.reshape(inputs, (-1, self.views, inputs.shape[-1])), axis=1)

    def compute_output_shape(self, input_shape):
        batch, dim = input_shape
        return batch and batch // self.views, dim


def view_share(zooms):
    """Returns the share of an image's sides that its views have in pixels; 1 without zooms."""
    return 1 if zooms is None else check_zooms(zooms)[-1]


def view_size(height, width, zoom):
    """Returns the rows and columns of an image's share, at least one."""
    return max(1, round(zoom * height)), max(1, round(zoom * width))


def check_zooms(zooms):
    """Returns zooms as a tuple, or raises a `ValueError` if they are not shares from 1 down."""
    shares = tuple(zooms)
    if shares[:1] != (1,) or not all(a > b > 0 for a, b in itertools.pairwise(shares)):
        raise ValueError(
            "zooms must be shares of the sides from 1 down, each once, such as (1, 0.75, 0.5); "
            f"received {zooms!r}."
        )
    return shares


def _shrink(images, sides):
    """Scales images down; exactly the mean of squares of pixels where the sides divide."""
    (height, width), factor = images.shape[1:3], images.shape[1] // sides[0]
    if (factor * sides[0], factor * sides[1]) != (height, width):
        return ops.image.resize(images, sides, "bilinear", data_format="channels_last")
    if factor == 1:
        return images
    return ops.average_pool(images, factor, factor, data_format="channels_last")
