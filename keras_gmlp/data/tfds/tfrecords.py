"""TFRecord files and the `tf.train.Example` messages in them, without TensorFlow."""

import lzma
import os
import struct

import numpy as np

WIRE_VARINT, WIRE_64_BIT, WIRE_BYTES, WIRE_32_BIT = 0, 1, 2, 5  # how protobuf writes a field


def read_records(path, skip=0, take=None):
    """Yields records of a TFRecord file in order."""
    for _, _, body in _records(path, skip, take):
        yield body


def find_records(path, skip=0, take=None):
    """Returns the place of each record in a TFRecord file, to read them in any order."""
    if str(path).endswith(".xz"):
        raise ValueError(
            f"{path}: compressed, and the set is too large to stay in memory; decompress its files "
            "with xz -d."
        )
    places = [place for *place, _ in _records(path, skip, take, reads=False)]
    return np.array(places, "int64").reshape(-1, 2)


def _records(path, skip, take, reads=True):
    """Yields the first byte, the length and, if `reads`, the bytes of records in order."""
    done, start, last = 0, 0, None if take is None else skip + take
    try:
        with (lzma.open if str(path).endswith(".xz") else open)(path, "rb") as file:
            length = 0 if reads else os.path.getsize(path)
            while done != last:
                head = file.read(12)
                if not head and last is None:
                    return
                if len(head) == 12 and _masked_crc(head[:8]) != struct.unpack("<I", head[8:])[0]:
                    raise ValueError(f"{path}: damaged after {done:,} samples.")
                size = struct.unpack("<Q", head[:8])[0] if len(head) == 12 else 0
                body = file.read(size + 4) if reads else b""
                end = start + 16 + size
                whole = len(body) == size + 4 if reads else file.seek(end) <= length
                if len(head) < 12 or not whole:
                    raise ValueError(f"{path}: truncated after {done:,} samples.")
                done += 1
                if done > skip:
                    yield start + 12, size, body[:-4]
                start = end
    except FileNotFoundError:
        raise ValueError(f"{path}: no such file; the data set is not complete.") from None
    except PermissionError:
        raise ValueError(f"{path}: no permission to read it.") from None
    except (EOFError, lzma.LZMAError) as error:
        raise ValueError(
            f"{path}: damaged or truncated after {done:,} samples ({error})."
        ) from None


def parse_features(record, names=None):
    """Returns the values of features of a `tf.train.Example`, by default of all: lists by name."""
    found = {}
    try:
        for features in _values(record, 1):
            for entry in _values(features, 1):
                (name,) = _values(entry, 1)
                if names is None or str(name, "utf-8") in names:
                    (found[str(name, "utf-8")],) = _values(entry, 2)
        return {name: _list(feature) for name, feature in found.items()}
    except (IndexError, TypeError, ValueError):  # also of a tuple with too few values
        raise ValueError("no tf.train.Example") from None


def _list(feature):
    """Returns the values of a `tf.train.Feature`, none for floats."""
    strings = [bytes(value) for part in _values(feature, 1) for value in _values(part, 1)]
    integers = [
        (number + 2**63) % 2**64 - 2**63  # signed
        for part in _values(feature, 3)
        for value in _values(part, 1)
        for number in ([value] if isinstance(value, int) else _varints(value))
    ]
    return strings + integers


def _values(message, number):
    """Yields the values of a field: integers, or views of bytes."""
    view, at = memoryview(message), 0
    end = len(view)
    while at < end:
        key, at = _varint(view, at) if view[at] > 127 else (view[at], at + 1)
        value, kind = None, key & 7
        if kind == WIRE_BYTES:
            size, at = _varint(view, at) if view[at] > 127 else (view[at], at + 1)
            value, at = view[at : at + size], at + size
        elif kind == WIRE_VARINT:
            value, at = _varint(view, at)
        elif kind in (WIRE_64_BIT, WIRE_32_BIT):
            at += 8 if kind == WIRE_64_BIT else 4
        else:
            raise ValueError
        if at > end:
            raise ValueError
        if key >> 3 == number:
            yield value


def _varints(view):
    at = 0
    while at < len(view):
        value, at = _varint(view, at)
        yield value


def _varint(view, at):
    """Returns an integer in groups of seven bits, the lowest first, and where it ends."""
    value = shift = 0
    while True:
        byte = view[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, at
        shift += 7


def _crc_table():
    """Returns the table of CRC-32C (Castagnoli), which TFRecord files use."""
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)
        table.append(byte)
    return table


CRC = _crc_table()


def _masked_crc(data):
    """Returns the checksum of a few bytes, rotated and shifted as in TFRecord files."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc = CRC[(crc ^ byte) & 255] ^ crc >> 8
    crc ^= 0xFFFFFFFF
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF
