"""Files that are complete or absent: written under a temporary name and renamed."""

import contextlib
import errno
import hashlib
import json
import os
import re
import shutil
import time
import zipfile
from pathlib import Path

from keras_gmlp.utils.errors import first_line, printable

FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)

# As HDF5, TensorFlow and NumPy report a full disk.
_FULL_TEXT = re.compile(
    r"No space left|File too large|quota exceeded|\d+ requested and \d+ written", re.I
)


@contextlib.contextmanager
def directory_lock(directory, wait=0.0):
    """Locks a folder against other processes until the block or this process ends."""
    directory = Path(directory)
    directory.mkdir(parents=True, exist_ok=True)
    try:
        import fcntl
    except ImportError:  # no locks on this system
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
                        f"{directory}: another process uses this directory; wait for it, stop "
                        "it, or choose another folder."
                    ) from None
                time.sleep(0.1)
            except OSError:  # a file system without locks
                break
        yield
    finally:
        os.close(handle)


def why_missing(path, kind="file or folder"):
    """Returns why there is nothing of a kind at a path."""
    return f"not a {kind}" if os.path.exists(path) else f"no such {kind}"


def require_space(directory, size, reserve=False):
    """Raises an OSError if a disk lacks `size` bytes; to reserve them also finds quotas."""
    Path(directory).mkdir(parents=True, exist_ok=True)
    total, _, free = shutil.disk_usage(directory)
    if total and free < size:  # some file systems report 0
        raise OSError(
            errno.ENOSPC, f"no space left: {size:,} bytes needed, {free:,} free", str(directory)
        )
    if reserve and hasattr(os, "posix_fallocate"):  # HDF5 crashes on a full disk
        import tempfile  # here, because few programs need it

        with naming(directory, directory), tempfile.TemporaryFile(dir=directory) as file:
            os.posix_fallocate(file.fileno(), 0, size)


def require_output(output, *inputs, option="--out"):
    """Returns the path of an output; raises an error if it is an input or in an input folder."""
    # The next listing of a folder would take what is written into it for data.
    place = Path(os.path.realpath(os.path.expanduser(output)))
    for given in filter(None, inputs):
        source = Path(os.path.realpath(os.path.expanduser(given)))
        if source.exists() and (place == source or (source.is_dir() and source in place.parents)):
            found = f"{printable(output)}: is {printable(given)}, or in it, which is an input"
            raise ValueError(f"{found}; give {option} another path.")
    return Path(output)


@contextlib.contextmanager
def naming(path, temporary):
    """Names a file in errors that name a temporary one, or a full disk without any."""
    try:
        yield
    except Exception as error:
        named = error.filename if isinstance(error, OSError) else None
        place = Path(os.fsdecode(named)) if named is not None else Path()
        if named is not None and Path(temporary) in (place, *place.parents):
            error.filename = str(path)  # the other name means nothing to the reader
        elif named is None and (
            getattr(error, "errno", None) in FULL or _FULL_TEXT.search(str(error))
        ):
            number = getattr(error, "errno", None) or errno.ENOSPC
            raise OSError(number, os.strerror(number), str(path)) from None
        raise


@contextlib.contextmanager
def _replacing(path):
    """Yields a path, whose folder then exists, and a temporary one next to it."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{os.getpid()}.{path.name}")
    try:
        with naming(path, temporary):
            yield path, temporary
    finally:
        _remove(temporary)


@contextlib.contextmanager
def atomic_write(path):
    """Yields a temporary path to write to; on success the file replaces `path` in one step."""
    with _replacing(path) as (path, temporary):
        yield temporary
        _flush(temporary)
        os.replace(temporary, path)


@contextlib.contextmanager
def atomic_folder(path):
    """Yields the path of a folder to create; on success the folder replaces `path`."""
    with _replacing(path) as (path, temporary):
        yield temporary
        for folder, _, names in os.walk(temporary):
            for name in names:
                _flush(Path(folder, name))
        old = path.with_name(f".{os.getpid()}.old.{path.name}")
        try:
            if path.exists():
                path.rename(old)
            temporary.rename(path)
        finally:
            if old.exists() and not path.exists():
                old.rename(path)
            _remove(old)


def _flush(path):
    """Writes a file from the memory of the system to the disk, so that it survives a power cut."""
    with open(path, "rb+") as file:
        os.fsync(file.fileno())


def hash_file(path):
    """Returns the SHA-256 of a file's bytes, in hexadecimal digits."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def remove_leftovers(directory, names):
    """Deletes what `atomic_write` and `atomic_folder` left behind when their process was killed."""
    for path in Path(directory).glob(".*"):
        if re.fullmatch(rf"\.\d+\.({names})", path.name):
            _remove(path)


def _remove(path):
    with contextlib.suppress(OSError):  # another process may have removed it
        is_folder = path.is_dir() and not path.is_symlink()
        shutil.rmtree(path, ignore_errors=True) if is_folder else path.unlink()


def write_json(path, value):
    """Writes indented JSON, complete or not at all."""
    with atomic_write(path) as temporary:
        temporary.write_text(json.dumps(value, indent=2) + "\n")


def read_json(path, default=None):
    """Reads a JSON file; returns `default` if the file does not exist."""
    path = Path(path)
    if not path.exists():
        return default
    return parse_json(path.read_bytes(), path)


def parse_json(text, place):
    """Returns the value in a text, or bytes in UTF-8; an error of one line starts with a place."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(
            f"{printable(place)}: damaged or not JSON ({first_line(error)})."
        ) from None


def load_array(path, remedy, **options):
    """Returns the array in a .npy file."""
    import numpy as np

    try:
        return np.load(path, allow_pickle=False, **options)
    except (ValueError, EOFError) as error:
        raise ValueError(f"{path}: damaged ({first_line(error)}); {remedy}.") from None


def require_bounded(path, expansion=1):
    """Raises an error if a zip archive unpacks to far more than its size."""
    with zipfile.ZipFile(path) as archive:
        members = archive.infolist()
    methods = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)[: 1 if expansion == 1 else 2]
    for member in members:
        if member.compress_type not in methods:
            expected = "stored" if expansion == 1 else "stored or deflated"
            raise ValueError(
                f"its member {member.filename[:60]!r} is compressed; expected {expected} members, "
                "pack it again"
            )
    size, declared = Path(path).stat().st_size, sum(member.file_size for member in members)
    if declared > expansion * size:
        raise ValueError(
            f"its {size:,} bytes unpack to {declared:,}; expected at most {expansion * size:,}"
        )
