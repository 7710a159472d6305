"""A PNG file with a size but no pixels."""

import struct
import zlib


def png_header(width, height):
    header = b"IHDR" + struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    start = b"\x89PNG\r\n\x1a\n" + struct.pack(">I", 13) + header
    return start + struct.pack(">I", zlib.crc32(header)) + struct.pack(">I", 9) + b"IDATxxxxxxxxx"
