"""Files that cannot be written whole: one line that names the path, and no part is left over."""

import contextlib
import tempfile

import pytest
from load_app import load_app

resource = pytest.importorskip("resource", reason="this system has no limit on the size of files")

SIZES = [f"--set-model={name}" for name in ("depth=1", "dim=16", "hidden_dim=32")]
DIGITS = ("--data", "digits", "--image-size", "8", "--precision", "float32", "--fraction", "0.1")


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


def test_train_after_an_epoch(require_refusal, tmp_path):
    given = ("train", *DIGITS, *SIZES, "--epochs", "2", "--no-export", "--out", tmp_path / "run")
    require_refusal(20_000, *given, resumes=True)


def test_calibrate_and_export(require_refusal, tmp_path):
    folder = tmp_path / "run"
    given = [*DIGITS, *SIZES, "--epochs", "1", "--validation", "0.2", "--no-export"]
    assert load_app("train").main([*given, "--out", str(folder)]) == 0
    require_refusal(4096, "calibrate", folder)
    require_refusal(8192, "export", folder, "--formats", "onnx")
    require_refusal(8192, "export", folder, "--formats", "saved_model")
