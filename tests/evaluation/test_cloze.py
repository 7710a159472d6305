from pathlib import Path

import pytest

from keras_gmlp.evaluation.cloze import rank_words, read_cloze

FILE = Path(__file__).resolve().parents[2] / "docs" / "language" / "cloze.tsv"


class Guesser:
    """Fills each blank with the same words."""

    def fill_mask(self, text, top):
        return [{"token_str": word} for word in ("war", "Capital", "of", "by")[:top]]


def test_the_file_has_twenty_texts():
    rows = read_cloze(FILE)
    assert len(rows) == 20
    assert rows[0] == ("Paris is the [MASK] of France.", ["capital"])


def test_ranks():
    rows = [("a [MASK]", ["peace", "war"]), ("b [MASK]", ["capital"]), ("c [MASK]", ["by"])]
    assert rank_words(Guesser(), rows, top=3) == [1, 2, None]


def test_lines_of_another_form(tmp_path):
    for line in ("a [MASK] and a [MASK]\tword", "a [MASK]", "a [MASK]\t ,"):
        (tmp_path / "cloze.tsv").write_text(f"the [MASK]\tend\n{line}\n")
        with pytest.raises(ValueError, match=r"line 2: expected a text with one \[MASK\]"):
            read_cloze(tmp_path / "cloze.tsv")


def test_files_that_hold_nothing(tmp_path):
    with pytest.raises(ValueError, match="cannot be read"):
        read_cloze(tmp_path / "missing.tsv")
    (tmp_path / "empty.tsv").write_text("\n")
    with pytest.raises(ValueError, match="no texts"):
        read_cloze(tmp_path / "empty.tsv")
