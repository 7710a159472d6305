import errno
import os
import zipfile

import pytest
from refused import refused

from keras_gmlp.utils import files
from keras_gmlp.utils.files import atomic_folder, atomic_write, read_json, write_json


@pytest.mark.parametrize("old", [None, "old"])
def test_file_appears_or_is_replaced_at_the_end(tmp_path, old):
    path = tmp_path / "a" / "b" / "000003.weights.h5"
    if old:
        write_json(path, old)
    with atomic_write(str(path)) as temporary:
        temporary.write_text('"new"')
        assert read_json(path) == old
        assert temporary.name.endswith(path.name)  # with its suffixes
        assert temporary.parent == path.parent  # renaming is one step on one file system only
    assert read_json(path) == "new"
    assert list(path.parent.iterdir()) == [path]


def test_errors_name_the_file_and_not_the_temporary_one(tmp_path):
    path = tmp_path / "a.txt"
    with pytest.raises(PermissionError) as error, atomic_write(path) as temporary:
        raise PermissionError(13, "Permission denied", str(temporary))
    assert error.value.filename == str(path)
    missing = str(tmp_path / "a-photos" / "cat.jpg")  # only whole parts of a path are renamed
    with pytest.raises(FileNotFoundError) as error, files.naming("other", tmp_path / "a"):
        raise FileNotFoundError(errno.ENOENT, "No such file", missing)
    assert error.value.filename == missing


@pytest.mark.parametrize("write", [atomic_write, atomic_folder])
def test_content_is_on_the_disk_before_its_name(tmp_path, monkeypatch, write):
    steps, path = [], tmp_path / "a"
    monkeypatch.setattr(os, "fsync", lambda handle: steps.append(os.fstat(handle).st_ino))

    def renaming(function):
        return lambda *paths: steps.append("rename") or function(*paths)

    for name in ("rename", "replace"):
        monkeypatch.setattr(os, name, renaming(getattr(os, name)))
    with write(path) as temporary:
        if write is atomic_folder:
            temporary.mkdir()
        file = temporary / "b" if write is atomic_folder else temporary
        file.write_text("new")
        expected = [file.stat().st_ino, "rename"]
    assert steps == expected


def write_and_fail(write, path):
    with write(path) as temporary:
        temporary.mkdir() if write is atomic_folder else temporary.write_text("half of the n")
        raise KeyboardInterrupt


@pytest.mark.parametrize("write", [atomic_write, atomic_folder])
@pytest.mark.parametrize("old", [None, "old"])
def test_error_leaves_the_old_one_and_nothing_else(tmp_path, write, old):
    path = tmp_path / "a"
    if old:
        path.mkdir() if write is atomic_folder else path.write_text(old)
    with pytest.raises(KeyboardInterrupt):
        write_and_fail(write, path)
    assert list(tmp_path.iterdir()) == ([path] if old else [])
    assert not old or path.is_dir() or path.read_text() == old


def test_leftovers_go_and_other_files_stay(tmp_path):
    kept = {".123.notes", ".2024.model.keras.txt", "model.keras"}
    for name in (*kept, ".123.model.keras"):
        (tmp_path / name).touch()
    files.remove_leftovers(tmp_path, r"model\.keras")
    assert {path.name for path in tmp_path.iterdir()} == kept


def test_members_that_share_their_bytes_are_counted_each(tmp_path):
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("zeros", bytes(100_000))
        archive.filelist += 5 * archive.filelist[:1]
    with refused("unpack to 600,000"):
        files.require_bounded(path)
