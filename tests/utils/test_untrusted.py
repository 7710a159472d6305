"""What every program refuses: outputs among the inputs, empty paths, deep JSON, long messages."""

import pytest
from pictures import write_noise
from refused import refused

from keras_gmlp.comparison.plan import read_plan
from keras_gmlp.data.text.labelled_texts import load_text
from keras_gmlp.programs.shared.messages import one_line
from keras_gmlp.utils.errors import LONGEST
from keras_gmlp.utils.files import read_json, require_output


@pytest.mark.parametrize(
    ("name", "read"), [("a.json", read_json), ("a.jsonl", load_text), ("a.json", read_plan)]
)
def test_json_of_any_kind_is_an_error_with_its_path(tmp_path, name, read):
    path = tmp_path / name
    for content in (b"[" * 100_000, b'{"a": ' * 100_000, b"9" * 5000, b'{"a"\n', b"\xff"):
        path.write_bytes(content)
        with refused(r"a\.jsonl?(, line 1)?: (damaged or not JSON|not UTF-8)"):
            read(path)


def test_message_is_cut():
    text = one_line(ValueError("a " * 1_000_000))
    assert len(text) < 1.1 * LONGEST
    assert text.endswith(" ...")


OUTPUTS = [
    ("train", ["--data", "link", "--out", "photos"]),
    ("train", ["--text", "photos", "--valid", "texts.csv", "--prepared", "photos/tokens"]),
    ("pack", [".", "--out", "packed"]),
    ("evaluate", ["m", "--data", "out/predictions.csv", "--out", "out"]),
    ("check_data", ["photos", "--out", "photos/check"]),
    ("similar", ["q.png", "--data", "photos", "--out", "link/sheet.png"]),
    ("visualize", ["m", "--data", "photos", "--out", "photos/pictures"]),
    ("compare", ["gmlp_n4_32", "--data", "photos", "--out", "photos/compare"]),
    ("calibrate", ["m", "--data", ""]),
]


def test_output_among_the_inputs_and_empty_paths_are_wrong_usage(app, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for folder in ("photos", "out"):
        (tmp_path / folder).mkdir()
    photos = write_noise(tmp_path / "photos", "png", 10, 16)
    rows = [f"{path.relative_to(tmp_path)},a" for path in sorted(photos.rglob("*.png"))]
    for name in ("labels.csv", "out/predictions.csv"):
        (tmp_path / name).write_text("\n".join(["path,label", *rows]))
    (tmp_path / "texts.csv").write_text("text,label\n")
    (tmp_path / "link").symlink_to(photos)
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    for name, arguments in OUTPUTS:
        code, output, error = app(name, *arguments)
        assert (code, output, error.count("\n")) == (2, "", 1), arguments
        option = "--prepared" if "--prepared" in arguments else "--out"
        assert "is empty; expected" in error or f"; give {option} another path" in error
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == before
    for output in ("photos2", "out/more", "photos/../new"):
        require_output(output, "photos", "labels.csv", "digits", None)
