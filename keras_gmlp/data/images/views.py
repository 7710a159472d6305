"""Fixed views of images: windows and flips drawn once, so that several readers see the same."""

import dataclasses

import numpy as np


@dataclasses.dataclass(frozen=True)
class Views:
    """A number of fixed random windows of each image, each mirrored or not."""

    # A window is a row of five numbers: top, left, height and width as shares of the image's sides,
    # and 1 if the view is mirrored, otherwise 0. Windows do not depend on the size of the images or
    # of the views, so that a teacher may see the same view larger.

    count: int = 8  # of each image
    scale: tuple[float, float] = (0.35, 1.0)  # smallest and largest share of the image's area
    aspect: tuple[float, float] = (3 / 4, 4 / 3)  # of width to height, relative to the image's
    flip: bool = True  # whether half of the views are mirrored
    seed: int = 0

    def __post_init__(self):
        for name in ("scale", "aspect"):  # JSON has lists
            object.__setattr__(self, name, tuple(getattr(self, name)))
        if type(self.count) is not int or self.count < 1:
            raise ValueError(f"views must be an integer of at least 1; received {self.count!r}.")
        if type(self.seed) is not int or self.seed < 0:
            raise ValueError(f"seed must be an integer of at least 0; received {self.seed!r}.")
        if len(self.scale) != 2 or not 0 < self.scale[0] <= self.scale[1] <= 1:
            raise ValueError(
                "scale must be the smallest and the largest share of the area, such as "
                f"(0.35, 1); received {self.scale!r}."
            )
        if len(self.aspect) != 2 or not 0 < self.aspect[0] <= self.aspect[1]:
            raise ValueError(
                "aspect must be the smallest and the largest ratio of width to height, such as "
                f"(0.75, 1.33); received {self.aspect!r}."
            )

    def draw(self, view, samples):
        """Returns the windows of one view of all samples, float32 `(samples, 5)`."""
        bits = np.random.Philox(key=[self.seed, view])
        share, aspect, top, left, flip = np.random.Generator(bits).random((samples, 5)).T
        area = self.scale[0] + share * (self.scale[1] - self.scale[0])
        ratio = self.aspect[0] * (self.aspect[1] / self.aspect[0]) ** aspect
        height = np.minimum(np.sqrt(area / ratio), 1.0)
        width = np.minimum(np.sqrt(area * ratio), 1.0)
        mirrored = (flip < 0.5) & self.flip
        columns = top * (1 - height), left * (1 - width), height, width, mirrored
        return np.stack(columns, -1).astype("float32")


def cut_views(images, windows, size, numpy=np):
    """Cuts views out of images and scales them."""
    cast = numpy.asarray if hasattr(numpy, "asarray") else numpy.cast  # TensorFlow has `cast`
    images = cast(images, "float32")
    top, left, height, width, mirrored = (windows[:, i, None, None] for i in range(5))
    rows = linear_weights(top, height, images.shape[1], size[0], 0.0, numpy)
    columns = linear_weights(left, width, images.shape[2], size[1], mirrored, numpy)
    columns = numpy.transpose(columns, (0, 2, 1))
    images = numpy.transpose(images, (0, 3, 1, 2))  # (b, h, w, c) -> (b, c, h, w)
    images = numpy.matmul(numpy.matmul(rows[:, None], images), columns[:, None])
    return numpy.transpose(images, (0, 2, 3, 1))  # (b, c, h, w) -> (b, h, w, c)


def linear_weights(start, length, old, new, mirrored, numpy=np):
    """Returns the share of each old pixel in each new one of windows, `(batch, new, old)`."""
    places = np.arange(new, dtype="float32")[None, :, None]
    pixels = np.arange(old, dtype="float32")[None, None, :]
    places = places + mirrored * (new - 1 - 2 * places)
    step = length * old / new  # between the centres of new pixels, in old ones
    centres = start * old + (places + 0.5) * step - 0.5
    # The border repeats outside of the window's image.
    centres = numpy.minimum(numpy.maximum(centres, 0.0), old - 1.0)
    reach = numpy.maximum(step, 1.0)
    weights = numpy.maximum(1.0 - numpy.abs(pixels - centres) / reach, 0.0)
    return weights / numpy.einsum("bop->bo", weights)[:, :, None]
