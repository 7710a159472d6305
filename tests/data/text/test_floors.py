import json

import numpy as np
import pytest

from keras_gmlp.data.text import TextData, TextSplit
from keras_gmlp.evaluation.floors import compute_floors, main


def test_floors_of_single_texts():
    texts, labels = ["so good", "so bad", "very good", "very bad", "good"], [1, 0, 1, 0, 1]
    split = TextSplit(texts, labels)
    floors = compute_floors(TextData("toy", ("no", "yes"), split, split))
    assert set(floors) == {"majority", "n-grams", "n-grams, balanced"}
    assert floors["majority"] == {
        "accuracy": pytest.approx(0.6),
        "matthews_correlation": 0,
        "f1": pytest.approx(0.75),
    }
    assert floors["n-grams"]["accuracy"] == 1


def test_floors_of_pairs():
    random = np.random.default_rng(0)
    words = [f"word{n}" for n in range(200)]
    first = [" ".join(random.choice(words, 6)) for _ in range(60)]
    texts = [
        (a, a if n % 3 else b) for n, (a, b) in enumerate(zip(first, first[::-1], strict=True))
    ]
    split = TextSplit(texts, [n % 3 > 0 for n in range(60)])
    floors = compute_floors(TextData("pairs", ("other", "same"), split, split))
    assert floors["shared words"]["accuracy"] > 0.95
    assert floors["majority"]["accuracy"] == pytest.approx(2 / 3)


def test_floors_require_texts_of_both_parts():
    data = TextData("films", ("bad", "good"), TextSplit(["a", "b"], [0, 1]), TextSplit([], []))
    with pytest.raises(ValueError, match="films: 2 texts for training and 0 for testing; expected"):
        compute_floors(data)


@pytest.mark.filterwarnings("default::keras_gmlp.utils.errors.DataWarning")
def test_program(tmp_path, capsys):
    rows = [f"{word} film {n},{word}" for n in range(10) for word in ("good", "bad", "dull")]
    (tmp_path / "a.csv").write_text("\n".join(["text,label", *rows]))
    assert main([str(tmp_path / "a.csv")]) == 0
    assert "24 texts for training, 6 for testing" in capsys.readouterr().out
    assert main([str(tmp_path / "a.csv"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["n-grams"]["accuracy"] == 1
    (tmp_path / "b.csv").write_text("\n".join(["text,label", *rows, "good film 0,dull"]))
    assert main([str(tmp_path / "b.csv")]) == 0
    warned = capsys.readouterr().err
    assert warned.startswith("floors: warning: ")
    assert "texts with several labels: 1" in warned
    assert warned.count("\n") == 1
    assert main([str(tmp_path / "none.csv")]) == 1
    assert "no such file" in capsys.readouterr().err
