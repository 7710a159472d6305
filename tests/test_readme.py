"""The README's Python runs as it stands there."""

import re
from pathlib import Path

import pytest
from PIL import Image

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text()
EXAMPLES = re.findall(r"```python\n(.*?)```", README, re.DOTALL)


@pytest.mark.slow
def test_first_example_trains(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = {}
    exec(EXAMPLES[0], names)
    images, labels = next(names["digits"].test.batch(360).as_numpy_iterator())
    found = names["model"].predict(images, verbose=0).argmax(-1)
    assert (found == labels).mean() > 0.9
    assert (tmp_path / "digits.keras").exists()


def test_second_example_classifies(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "saved_models").symlink_to(ROOT / "saved_models")
    Image.new("RGB", (50, 40), "green").save("cat.jpg")
    exec(EXAMPLES[1], {})
    assert capsys.readouterr().out.count("0.") == 3  # three labels, each with its probability


def test_every_file_it_names_is_there():
    named = set(re.findall(r"`?\b((?:apps|keras_gmlp|saved_models|docs)/[\w./-]*\w)", README))
    assert named
    assert {name for name in named if not (ROOT / name).exists()} == set()
