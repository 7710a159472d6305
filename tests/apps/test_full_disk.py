"""A disk that fills during the work: one line that names the path, and no file is left over."""

import contextlib
import os
import shutil
import subprocess
import tempfile

import numpy as np
import pytest
from PIL import Image

resource = pytest.importorskip("resource", reason="this system has no limit on the size of files")

SIZES = [f"--set-model={name}" for name in ("depth=1", "dim=16", "hidden_dim=32")]
DIGITS = ("--data", "digits", "--image-size", "8", "--precision", "float32", "--fraction", "0.1")
TEXT = ("--vocabulary-size", "128", "--set-model", "max_length=32", "--set", "length=16")


LIMITS = ["full disk", "limit on files"]  # a limit needs no rights, but also holds elsewhere
both = pytest.mark.parametrize("disk", LIMITS, indirect=True)


@pytest.fixture(scope="module")
def disk(request, tmp_path_factory):
    """A folder, and a function that leaves it some bytes, or each file on it, in a context."""
    folder = tmp_path_factory.mktemp("disk")

    @contextlib.contextmanager
    def limit(room):
        usual = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (room, usual[1]))
        try:
            yield
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, usual)

    @contextlib.contextmanager
    def fill(room):
        filler = folder / "filler"
        with open(filler, "wb") as file:
            os.posix_fallocate(file.fileno(), 0, shutil.disk_usage(folder).free - room)
        try:
            yield
        finally:
            filler.unlink()

    if getattr(request, "param", LIMITS[0]) == LIMITS[1]:
        yield folder, limit
        return
    mount = ["mount", "-t", "tmpfs", "-o", "size=64m", "none", str(folder)]
    if shutil.which("mount") is None or subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("mounting a small disk is not allowed here")
    try:
        yield folder, fill
    finally:
        subprocess.run(["umount", str(folder)], check=True)


@pytest.fixture(scope="module")
def inputs(tmp_path_factory):
    """A folder of pictures, two of them equal, and a text file."""
    folder, rng = tmp_path_factory.mktemp("inputs"), np.random.default_rng(0)
    for name in "ab":
        (folder / "photos" / name).mkdir(parents=True)
        for number in range(6):
            pixels = rng.integers(0, 256, (16, 16, 3)).astype("uint8")
            Image.fromarray(pixels).save(folder / "photos" / name / f"{number}.png")
    shutil.copy(folder / "photos" / "a" / "0.png", folder / "photos" / "a" / "same.png")
    (folder / "text.txt").write_text("the cat and the hat\na dog and a cat\n\n" * 2000)
    return folder


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    from load_app import load_app

    folder = tmp_path_factory.mktemp("trained") / "run"
    given = [*DIGITS, *SIZES, "--epochs", "1", "--validation", "0.2", "--no-export"]
    assert load_app("train").main([*given, "--out", str(folder)]) == 0
    return folder


@pytest.fixture
def require_refusal(disk, app, monkeypatch):
    """A function that runs a program with some bytes left, and checks how it ends."""
    folder, leave = disk
    usage = shutil.disk_usage

    def run(room, *arguments, resumes=False):
        before = list_files(folder)
        with leave(room), monkeypatch.context() as patch:
            # The disk had space when the work began.
            patch.setattr("shutil.disk_usage", lambda path: usage("/")._replace(free=2**40))
            code, _, error = app(*arguments)
        assert (code, error.count("\n")) == (1, 1), error
        assert f"{folder}/" in error
        assert any(words in error for words in ("no space left", "file too large")), error
        after = list_files(folder)
        if not resumes:
            assert after == before
        assert not [path for path in after if "/." in f"/{path}"]

    yield run
    for path in folder.iterdir():
        shutil.rmtree(path)


def list_files(folder):
    """Returns the contents of the files in a folder by their paths, without the filler."""
    files = [path for path in folder.rglob("*") if path.is_file() and path.name != "filler"]
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


@both
@pytest.mark.parametrize("room", [0, 10_000])
def test_pack(require_refusal, disk, inputs, room):
    require_refusal(room, "pack", inputs / "photos", "--out", disk[0] / "set", "--size", "64")


@both
@pytest.mark.parametrize("room", [0, 4096])
def test_check_data(require_refusal, disk, inputs, room):
    given = ("--model", "none", "--out", disk[0] / "check")
    require_refusal(room, "check_data", inputs / "photos", *given)


@pytest.mark.parametrize("disk", LIMITS[1:], indirect=True)
def test_temporary_folder_that_is_full(disk, trained, app):
    with disk[1](0):
        code, _, error = app("calibrate", trained)
    assert (code, error.count("\n")) == (1, 1)
    assert f"calibrate: {tempfile.gettempdir()}: file too large" in error


@pytest.mark.parametrize("room", [0, 4096, 20_000])
def test_calibrate(require_refusal, disk, trained, room):
    shutil.copytree(trained, disk[0] / "run")
    require_refusal(room, "calibrate", disk[0] / "run")


@pytest.mark.parametrize(("form", "room"), [("onnx", 8192), ("tflite", 0), ("saved_model", 8192)])
def test_export(require_refusal, disk, trained, form, room):
    shutil.copytree(trained, disk[0] / "run")
    require_refusal(room, "export", disk[0] / "run", "--formats", form)


@both
@pytest.mark.parametrize("room", [0, 4096, 20_000])
def test_train(require_refusal, disk, room):
    given = (*DIGITS, *SIZES, "--epochs", "2", "--no-export", "--out", disk[0] / "run")
    require_refusal(room, "train", *given, resumes=True)


@both
@pytest.mark.parametrize("room", [0, 8192, 30_000])
def test_train_text(require_refusal, disk, inputs, room):
    text = inputs / "text.txt"
    given = ("--text", text, "--valid", text, "--prepared", disk[0] / "text", *TEXT, *SIZES)
    out = ("--epochs", "1", "--out", disk[0] / "run")
    require_refusal(room, "train_text", *given, *out, resumes=True)
