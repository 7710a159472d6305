"""Names of splits and of classes; folders that name splits are tested with the data sets."""

import pytest

from keras_gmlp.utils.inputs import SPLITS, is_junk, read_split
from keras_gmlp.utils.labels import clean_label, clean_value, is_label


def test_names_of_splits():
    for form in ("{}", "{}_set", "{} Data", "{}2017", "{}-images", "{}set"):
        for split, words in SPLITS.items():
            for word in words:
                for name in (form.format(word), form.format(word).upper()):
                    assert read_split(name) == split, name
                    assert read_split(f"birds_{name}") is None
    assert read_split("Held-out") == "holdout"
    for name in ("latest", "contest", "training-test", "set", "dataset", "1", ""):
        assert read_split(name) is None


def test_junk():
    assert all(map(is_junk, [".DS_Store", "Thumbs.db", "desktop.ini", "__MACOSX", "._a.png"]))
    assert not any(map(is_junk, ["a.png", "_other", "MACOSX"]))


def test_classes_are_compared_as_people_see_them():
    assert {clean_label(name) for name in ("caf\u00e9", "cafe\u0301 ", "\ufeffcaf\u00e9")} == {
        "café"
    }
    assert clean_label("\u0645\u06cc\u200c\u062e") == "\u0645\u06cc\u200c\u062e"  # a joiner shows
    assert [clean_value(t) for t in ("1", " 1.0", "1.", "-2.00", "1.5", "01", "v1.0")] == [
        *("1", "1", "1", "-2", "1.5", "01", "v1.0")
    ]


@pytest.mark.parametrize("name", ["a\0b", "\x1b[1m", "\u200b", " ", ""])
def test_names_that_show_nothing_or_change_the_terminal(name):
    assert not is_label(name)
