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
    scratch = tmp_path / "scratch"  # of Keras itself
    scratch.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(scratch))

    def list_files():
        found = [path for path in tmp_path.rglob("*") if path.is_file()]
        return {path: path.read_bytes() for path in found if scratch not in path.parents}

    def run(room, *arguments, resumes=False):
        before = list_files()
        with limit(room):
            code, _, error = app(*arguments)
        assert (code, error.count("\n")) == (1, 1), error
        assert f"{tmp_path}/" in error
        assert "file too large" in error.lower()
        assert resumes or list_files() == before
        assert not [path for path in tmp_path.rglob(".*") if scratch not in path.parents]

    return run


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
