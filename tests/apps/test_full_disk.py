"""Files that cannot be written whole: one line that names the path, and no part is left over."""

import contextlib
import shutil
import tempfile

import pytest
from load_app import load_app
from pictures import write_noise

resource = pytest.importorskip("resource", reason="this system has no limit on the size of files")

SIZES = [f"--set-model={name}" for name in ("depth=1", "dim=16", "hidden_dim=32")]
DIGITS = ("--data", "digits", "--image-size", "8", "--precision", "float32", "--fraction", "0.1")
TEXT = ("--vocabulary-size", "128", "--set-model", "max_length=32", "--set", "length=16")


@contextlib.contextmanager
def limit(room):
    """Leaves each file some bytes."""
    usual = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (room, usual[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, usual)


@pytest.fixture
def require_refusal(tmp_path, app, monkeypatch):
    """A function that runs a program with some bytes for each file, and checks how it ends."""
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))

    def run(room, *arguments, resumes=False):
        before = list_files(tmp_path)
        with limit(room):
            code, _, error = app(*arguments)
        assert (code, error.count("\n")) == (1, 1), error
        assert f"{tmp_path}/" in error
        assert "file too large" in error.lower()
        after = list_files(tmp_path)
        assert resumes or after == before
        assert not [path for path in after if "/." in f"/{path}"]

    return run


def list_files(folder):
    """Returns the contents of the files in a folder by their paths, without Keras' own scratch."""
    found = (path for path in folder.rglob("*") if path.is_file())
    files = [path for path in found if "temporary" not in path.parts]
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def test_pack_and_check_data(require_refusal, tmp_path):
    (tmp_path / "photos").mkdir()
    photos = write_noise(tmp_path / "photos", "png", 16, 16)
    (photos / "a" / "same.png").write_bytes((photos / "a" / "0.png").read_bytes())
    require_refusal(10_000, "pack", photos, "--out", tmp_path / "set", "--size", "64")
    given = ("--model", "none", "--out", tmp_path / "check")
    require_refusal(4096, "check_data", photos, *given)


def test_train_before_the_first_epoch(tmp_path, app, monkeypatch):
    usage = shutil.disk_usage(tmp_path)._replace(free=1000)
    monkeypatch.setattr("shutil.disk_usage", lambda path: usage)
    given = (*DIGITS, *SIZES, "--epochs", "2", "--no-export", "--out", tmp_path / "run")
    code, _, error = app("train", *given)
    assert (code, error.count("\n")) == (1, 1), error
    assert f"{tmp_path / 'run'}" in error
    assert "no space left" in error


def test_train_after_an_epoch(require_refusal, tmp_path):
    given = ("train", *DIGITS, *SIZES, "--epochs", "2", "--no-export", "--out", tmp_path / "run")
    require_refusal(20_000, *given, resumes=True)


def test_train_text(require_refusal, tmp_path):
    text = tmp_path / "text.txt"
    text.write_text("the cat and the hat\na dog and a cat\n\n" * 2000)
    given = ("--text", text, "--valid", text, "--prepared", tmp_path / "text", *TEXT, *SIZES)
    require_refusal(8192, "train", *given, "--out", tmp_path / "run", resumes=True)


def test_calibrate_and_export(require_refusal, tmp_path):
    folder = tmp_path / "run"
    given = [*DIGITS, *SIZES, "--epochs", "1", "--validation", "0.2", "--no-export"]
    assert load_app("train").main([*given, "--out", str(folder)]) == 0
    require_refusal(4096, "calibrate", folder)
    require_refusal(8192, "export", folder, "--formats", "onnx")
    require_refusal(8192, "export", folder, "--formats", "saved_model")
