"""Files that are whole or absent: written beside their place and renamed."""

import contextlib
import errno
import json
import os
import re
import shutil
import time
from pathlib import Path


@contextlib.contextmanager
def directory_lock(directory, wait=0.0):
    """Keeps other processes out of a folder that this one works in, until it is done or dead.

    Args:
        directory: made if need be.
        wait: seconds that another process there is given to end.

    Raises:
        ValueError: another process is at work there.
    """
    directory = Path(directory)
    directory.mkdir(parents=True, exist_ok=True)
    try:
        import fcntl
    except ImportError:  # not on this system; two at once are the user's own care
        yield
        return
    handle = os.open(directory, os.O_RDONLY)
    try:
        deadline = time.monotonic() + wait
        while True:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() >= deadline:
                    raise ValueError(
                        f"{directory}: another process is at work here; wait for it, stop it, or "
                        "choose another folder."
                    ) from None
                time.sleep(0.1)
            except OSError:  # a file system that knows no locks
                break
        yield
    finally:
        os.close(handle)


def require_space(directory, size):
    """Raises an OSError where the disk of a folder, made if need be, has less than `size` bytes."""
    Path(directory).mkdir(parents=True, exist_ok=True)
    total, _, free = shutil.disk_usage(directory)
    if total and free < size:  # some file systems do not tell
        raise OSError(
            errno.ENOSPC, f"no space left: {size:,} bytes needed, {free:,} free", str(directory)
        )


@contextlib.contextmanager
def atomic_write(path):
    """Yields a path to write to; on success it takes the place of `path` in one step.

    The temporary name keeps the suffix, by which writers choose a format. An error or a kill
    leaves what was at `path` as it was.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{os.getpid()}.{path.name}")
    try:
        yield temporary
        os.replace(temporary, path)
    except OSError as error:
        if error.filename == str(temporary):  # a name that tells its reader nothing
            error.filename = str(path)
        raise
    finally:
        with contextlib.suppress(OSError):  # as of a file system that is read only
            temporary.unlink(missing_ok=True)


@contextlib.contextmanager
def atomic_folder(path):
    """Yields the path of a folder to make; on success it takes the place of `path`.

    An error leaves what was at `path` as it was. A kill at worst leaves it beside its place, whole,
    for the moment between two renames.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary, old = (path.with_name(f".{os.getpid()}{part}.{path.name}") for part in ("", ".old"))
    try:
        yield temporary
        if path.exists():
            path.rename(old)
        temporary.rename(path)
    finally:
        if old.exists() and not path.exists():
            old.rename(path)
        shutil.rmtree(temporary, ignore_errors=True)
        shutil.rmtree(old, ignore_errors=True)


def remove_leftovers(directory, names):
    """Deletes what `replacing` and `replacing_folder` left where their process was killed.

    Args:
        directory: where to look, not below.
        names: regular expression of the names that were to be replaced; no other file is touched.
    """
    for path in Path(directory).glob(".*"):
        if not re.fullmatch(rf"\.\d+\.({names})", path.name):
            continue
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


def write_json(path, value):
    """Writes indented JSON, whole or not at all."""
    with atomic_write(path) as temporary:
        temporary.write_text(json.dumps(value, indent=2) + "\n")


def read_json(path, default=None):
    """The JSON in a file, or `default` where there is no such file.

    Raises:
        ValueError: the file holds something else. One line.
    """
    path = Path(path)
    if not path.exists():
        return default
    try:
        return json.loads(path.read_text())
    except ValueError as error:
        raise ValueError(f"{path}: damaged, or no JSON ({error}).") from None
