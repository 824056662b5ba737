"""Reads and edits manifests on the level of bytes, to make tables that no released program writes."""

import pathlib
import struct


def varint(value):
    out = bytearray()
    while True:
        low = value & 0x7F
        value >>= 7
        out.append(low | (0x80 if value else 0))
        if not value:
            return bytes(out)


def newest(uri):
    """The manifest file of the newest version (either naming)."""
    best = None
    for path in pathlib.Path(uri, "_versions").glob("*.manifest"):
        number = int(path.stem)
        version = (1 << 64) - 1 - number if len(path.stem) == 20 else number
        if best is None or version > best[0]:
            best = (version, path)
    return best[1]


def append_fields(path, *fields):
    """Appends (number, integer) fields to the Manifest message: a later value replaces an earlier one."""
    data = path.read_bytes()
    assert data[-4:] == b"LANC"
    (start,) = struct.unpack("<q", data[-16:-8])
    (length,) = struct.unpack("<I", data[start : start + 4])
    message = data[start + 4 : start + 4 + length]
    for number, value in fields:
        message += varint(number << 3) + varint(value)
    path.write_bytes(data[:start] + struct.pack("<I", len(message)) + message + data[-16:])


READER_FLAGS, WRITER_FLAGS = 9, 10


def set_flags(uri, reader=None, writer=None):
    fields = [(n, v) for n, v in ((READER_FLAGS, reader), (WRITER_FLAGS, writer)) if v is not None]
    append_fields(newest(uri), *fields)
