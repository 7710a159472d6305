import errno
import json
import os

import pytest

from keras_gmlp.utils import files
from keras_gmlp.utils.files import (
    atomic_folder,
    atomic_write,
    read_json,
    require_output,
    write_json,
)


def test_replacing_makes_a_file_and_its_folders(tmp_path):
    path = tmp_path / "a" / "b" / "model.weights.h5"
    with atomic_write(str(path)) as temporary:
        temporary.write_bytes(b"new")
        assert not path.exists()
    assert path.read_bytes() == b"new"
    assert list(path.parent.iterdir()) == [path]


def test_errors_name_the_file_and_not_the_temporary_one(tmp_path):
    path = tmp_path / "a.txt"
    with pytest.raises(PermissionError) as error, atomic_write(path) as temporary:
        raise PermissionError(13, "Permission denied", str(temporary))
    assert error.value.filename == str(path)


def test_replacing_takes_the_place_of_the_old_file_at_the_end(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("old")
    with atomic_write(path) as temporary:
        temporary.write_text("new")
        assert path.read_text() == "old"
    assert path.read_text() == "new"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("name", ["a.txt", "model.keras", "000003.weights.h5", ".hidden.png", "a"])
def test_replacing_keeps_suffix_and_folder(tmp_path, name):
    path = tmp_path / name
    with atomic_write(path) as temporary:
        assert temporary.name != name
        assert temporary.name.endswith(name)
        assert temporary.suffixes[-len(path.suffixes) :] == path.suffixes or not path.suffixes
        assert temporary.parent == path.parent  # renaming is one step on one file system alone
        temporary.touch()


@pytest.fixture
def disk(monkeypatch):
    """What reaches the disk, in order: the inodes that are flushed, and "rename"."""
    steps, flush = [], os.fsync

    def fsync(handle):
        steps.append(os.fstat(handle).st_ino)
        flush(handle)

    def renaming(function):
        return lambda *paths: steps.append("rename") or function(*paths)

    monkeypatch.setattr(os, "fsync", fsync)
    for name in ("rename", "replace"):
        monkeypatch.setattr(os, name, renaming(getattr(os, name)))
    return steps


def test_file_is_on_the_disk_before_its_name_and_then_the_name(tmp_path, disk):
    path = tmp_path / "a.txt"
    write_json(path, {"a": 1})
    assert disk == [path.stat().st_ino, "rename", tmp_path.stat().st_ino]


def test_folder_is_on_the_disk_before_its_name_and_then_the_name(tmp_path, disk):
    path = tmp_path / "corpus"
    with atomic_folder(path) as temporary:
        (temporary / "below").mkdir(parents=True)
        (temporary / "below" / "a.txt").write_text("new")
    contents = {p.stat().st_ino for p in (path, path / "below", path / "below" / "a.txt")}
    assert set(disk[:3]) == contents
    assert disk[3:] == ["rename", tmp_path.stat().st_ino]


def test_folder_that_cannot_be_flushed(tmp_path, monkeypatch):
    def unsupported(*_):
        raise OSError(errno.EINVAL, "Invalid argument")

    monkeypatch.setattr(os, "open", unsupported)
    write_json(tmp_path / "a.json", 1)
    assert read_json(tmp_path / "a.json") == 1


def write_and_fail(path, text, error):
    with atomic_write(path) as temporary:
        if text is not None:
            temporary.write_text(text)
        raise error


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
@pytest.mark.parametrize("text", [None, "half of the n"])
def test_error_leaves_the_old_file_and_nothing_else(tmp_path, error, text):
    path = tmp_path / "a.txt"
    path.write_text("old")
    with pytest.raises(error):
        write_and_fail(path, text, error)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("check", [require_output, lambda path: atomic_folder(path).__enter__()])
def test_step_back_from_a_missing_folder_is_refused(tmp_path, check):
    """It names no folder now, and the user's data as soon as `new` is made."""
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "labels.csv").write_text("path,label\n")
    with pytest.raises(ValueError, match=r"new/\.\. does not exist; give the path"):
        check(tmp_path / "new" / ".." / "data")
    assert os.listdir(tmp_path) == ["data"]


def test_error_where_there_was_no_file(tmp_path):
    with pytest.raises(ValueError, match="stop"):
        write_and_fail(tmp_path / "a.txt", "new", ValueError("stop"))
    assert list(tmp_path.iterdir()) == []


def test_nothing_written_is_an_error(tmp_path):
    (tmp_path / "a.txt").write_text("old")
    with pytest.raises(FileNotFoundError), atomic_write(tmp_path / "a.txt"):
        pass
    assert (tmp_path / "a.txt").read_text() == "old"


@pytest.mark.parametrize("value", [{"a": [1, 2.5, None, True], "ü": {"b": "图"}}, [], None, "text"])
def test_json_round_trip(tmp_path, value):
    path = tmp_path / "new" / "a.json"
    write_json(path, value)
    assert read_json(path) == value
    assert read_json(str(path), default="other") == value
    text = path.read_text()
    assert text.endswith("\n")
    assert json.loads(text) == value
    assert list(path.parent.iterdir()) == [path]


def test_json_is_whole_or_as_before(tmp_path):
    path = tmp_path / "a.json"
    write_json(path, {"a": 1})
    with pytest.raises(TypeError):
        write_json(path, {"a": 2, "b": object()})
    assert read_json(path) == {"a": 1}
    assert list(tmp_path.iterdir()) == [path]


def test_json_default_where_there_is_no_file(tmp_path):
    assert read_json(tmp_path / "none.json") is None
    assert read_json(tmp_path / "none.json", {"a": 1}) == {"a": 1}


def test_leftovers_go_and_other_files_stay(tmp_path):
    for name in (".123.model.keras", ".123.notes", ".2024.model.keras.txt", "model.keras"):
        (tmp_path / name).touch()
    (tmp_path / "below").mkdir()
    (tmp_path / "below" / ".123.model.keras").touch()
    files.remove_leftovers(tmp_path, r"model\.keras")
    kept = {".123.notes", ".2024.model.keras.txt", "model.keras", "below"}
    assert {path.name for path in tmp_path.iterdir()} == kept
    assert (tmp_path / "below" / ".123.model.keras").exists()


def test_only_whole_parts_of_a_path_are_renamed(tmp_path):
    missing = str(tmp_path / "a-photos" / "cat.jpg")
    with pytest.raises(FileNotFoundError) as error, files.naming("other", tmp_path / "a"):
        raise FileNotFoundError(errno.ENOENT, "No such file", missing)
    assert error.value.filename == missing


def test_array_that_cannot_be_read_is_not_called_damaged(tmp_path):
    with pytest.raises(IsADirectoryError) as error:
        files.load_array(tmp_path, "try again")
    assert error.value.filename == str(tmp_path)


@pytest.mark.parametrize("number", [errno.EOPNOTSUPP, errno.EINVAL, errno.ENOSPC])
def test_disks_that_cannot_reserve_space(tmp_path, monkeypatch, number):
    def fail(*_):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "posix_fallocate", fail)
    if number != errno.ENOSPC:
        files.require_space(tmp_path, 10, reserve=True)
        return
    with pytest.raises(OSError, match="No space left") as error:
        files.require_space(tmp_path, 10, reserve=True)
    assert error.value.filename == str(tmp_path)
