"""Archives that would take more memory than their size."""

import zipfile

import pytest

from keras_gmlp.utils.files import require_bounded


def pack(path, method, size=100_000):
    with zipfile.ZipFile(path, "w", method) as archive:
        archive.writestr("zeros", bytes(size))
    return path


def test_stored_members_pass(tmp_path):
    require_bounded(pack(tmp_path / "a.zip", zipfile.ZIP_STORED))


def test_other_methods_are_refused(tmp_path):
    for method, expansion, expected in (
        (zipfile.ZIP_DEFLATED, 1, "stored"),
        (zipfile.ZIP_BZIP2, 10, "stored or deflated"),
        (zipfile.ZIP_LZMA, 10, "stored or deflated"),
    ):
        path = pack(tmp_path / "a.zip", method, size=10)
        with pytest.raises(ValueError, match=f"'zeros' is compressed; expected {expected} members"):
            require_bounded(path, expansion)


def test_members_that_are_too_large_are_refused(tmp_path):
    path = pack(tmp_path / "a.zip", zipfile.ZIP_DEFLATED)
    size = path.stat().st_size
    require_bounded(path, 100_000 // size + 1)
    with pytest.raises(ValueError, match=f"its {size} bytes unpack to 100,000; expected at most"):
        require_bounded(path, 10)


def test_members_that_share_their_bytes_are_refused(tmp_path):
    path = pack(tmp_path / "a.zip", zipfile.ZIP_STORED)
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("more", b"")
        archive.filelist += 5 * archive.filelist[:1]
    with pytest.raises(ValueError, match="unpack to 600,000"):
        require_bounded(path)
