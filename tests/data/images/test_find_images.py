import pytest
from PIL import Image

from keras_gmlp.data.images.find_images import find_images
from keras_gmlp.utils.errors import DataWarning


def test_find_images(tmp_path):
    kept = ["B.jpe", "a/b/c.TiF", "a/z.JPG", "a/ä.webp", "b.png", "c.pbm", "d.png/e.gif"]
    for name in [*kept, "notes.txt", "png", "a/.x.png", ".thumbnails/b.png"]:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    for name in ("a/photo", "a/photo.jpg_large"):  # the content counts, too
        Image.new("L", (2, 2)).save(tmp_path / name, "JPEG")
    with pytest.warns(DataWarning, match=r"2 \(notes\.txt, png\)"):
        paths = find_images(str(tmp_path))
    found = [path.relative_to(tmp_path).as_posix() for path in paths]
    assert found == sorted([*kept, "a/photo", "a/photo.jpg_large"])
    hidden = tmp_path / ".thumbnails"
    assert find_images(hidden) == [hidden / "b.png"]  # asked for by name
    assert find_images(tmp_path / "notes.txt") == [tmp_path / "notes.txt"]
