"""The set-up of all figures, and the files that they become."""

import numpy as np
from PIL import Image

from keras_gmlp.utils import plotting


def test_picture_is_as_large_as_asked_and_on_white(tmp_path):
    figure, ((axes,),) = plotting.figure((4, 3))
    axes.plot([0, 1], [0, 1], color="red")
    path = plotting.save(figure, tmp_path / "new" / "a.png")
    with Image.open(path) as image:
        assert image.size == (4 * plotting.DPI, 3 * plotting.DPI)
        pixels = np.asarray(image.convert("RGB"))
    assert (pixels[0] == 255).all()  # no transparent paper
    assert (pixels == (255, 0, 0)).all(axis=-1).any()
