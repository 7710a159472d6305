"""Bounds on the memory that a zip archive takes when it is unpacked."""

import zipfile
from pathlib import Path


def require_bounded(path, expansion=1):
    """Raises an error if a zip archive unpacks to far more than its size.

    Args:
        path: Path of the archive.
        expansion: Bytes that a byte of the file may become. For 1, no member may be compressed,
            since a compressed member can also be longer than it declares.

    Raises:
        ValueError: If a member is compressed by a method that is not allowed, or the members
            declare too many bytes. One line, without the path.
        zipfile.BadZipFile: If the archive is damaged.
    """
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
