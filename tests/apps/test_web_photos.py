"""The tab Teach separates photographs of classes that its model never saw.

TEACH_PHOTOS=FOLDER names a folder of photographs, as tests/teach_photos.py takes it; the repository
has none.
"""

import os

import numpy as np
import pytest
from teach_photos import TAUGHT, draw_photos, measure_pairs

from keras_gmlp.utils.shipped import DEFAULT_BACKBONE, list_shipped

PHOTOS = os.environ.get("TEACH_PHOTOS")
LEAST = 0.85  # of the other photographs are right


@pytest.mark.skipif(not PHOTOS, reason="TEACH_PHOTOS names no folder of photographs")
@pytest.mark.skipif(DEFAULT_BACKBONE not in list_shipped(), reason="the backbone is not here")
def test_ten_photographs_of_each_class_teach_the_page():
    accuracies = [accuracy for _, accuracy in measure_pairs(PHOTOS)]
    assert np.mean(accuracies) >= LEAST


def test_taught_photographs_are_not_tried(tmp_path):
    for label in ("a", "b"):
        (tmp_path / label).mkdir()
        for number in range(TAUGHT + 3):
            (tmp_path / label / f"{number}.jpg").touch()
    chosen = draw_photos(tmp_path, 0)
    assert all(len(set(files)) == TAUGHT + 3 for files in chosen.values())
    assert chosen == draw_photos(tmp_path, 0)
    assert chosen != draw_photos(tmp_path, 1)
    for number in range(3):
        (tmp_path / "a" / f"{number}.jpg").unlink()
    with pytest.raises(ValueError, match="a has 10 photographs; expected more than 10"):
        draw_photos(tmp_path, 0)
