"""Names of splits and of classes; folders that name splits are tested with the data sets."""

from keras_gmlp.utils.inputs import SPLITS, is_junk, read_split
from keras_gmlp.utils.labels import clean_label, clean_value, is_label


def test_names_of_splits():
    for form in ("{}", "{}_set", "{} Data", "{}2017", "{}-images"):
        for split, words in SPLITS.items():
            for word in words:
                assert read_split(form.format(word).title()) == split
                assert read_split(f"birds_{form.format(word)}") is None
    assert read_split("Held-out") == "holdout"
    for name in ("latest", "contest", "training-test", "dataset", "1", ""):
        assert read_split(name) is None


def test_junk():
    assert all(map(is_junk, [".DS_Store", "Thumbs.db", "desktop.ini", "__MACOSX", "._a.png"]))
    assert not any(map(is_junk, ["a.png", "_other", "MACOSX"]))


def test_classes_are_compared_as_people_see_them():
    for name in ("caf\u00e9", "cafe\u0301 ", "\ufeffcaf\u00e9"):
        assert clean_label(name) == "café"
    assert clean_label("\u0645\u06cc\u200c\u062e") == "\u0645\u06cc\u200c\u062e"  # a joiner shows
    values = ("1", " 1.0", "1.", "-2.00", "1.5", "01", "v1.0")
    assert [*map(clean_value, values)] == ["1", "1", "1", "-2", "1.5", "01", "v1.0"]
    # Names that show nothing or change the terminal.
    assert not any(map(is_label, ["a\0b", "\x1b[1m", "\u200b", " ", ""]))
