#!/usr/bin/env python3
"""Takes the pages out of the small files in corpus/file_reader_fuzz and writes each, with its type, as an
input of page_decoder_fuzz (its layout: page_decoder_fuzz.cc) into corpus/page_decoder_fuzz."""

import hashlib
import pathlib
import shutil
import struct

HERE = pathlib.Path(__file__).resolve().parent / "corpus"
# The place of a type in MakeShapes, by the text of the schema.
TYPES = {
    "int32": 0, "uint32": 0, "date32:day": 0, "string": 1, "binary": 1, "int64": 2, "uint64": 2, "bool": 3,
    "float": 4, "large_binary": 5, "large_string": 5, "json": 5, "int8": 6, "uint8": 6, "int16": 7, "uint16": 7,
    "halffloat": 7, "double": 8, "fixed_size_list:float:3": 9, "fixed_size_list:bool:3": 10,
    "fixed_size_binary:16": 12, "decimal:128:20:4": 13, "dict:string:int8:false": 14, "dict:int64:int32:false": 15,
    "struct": 16, "null": 18,
}  # fmt: skip


def fields(message):
    """The fields of a protobuf message as number -> list of values (int or bytes)."""
    out, at = {}, 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = message[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while at < len(message):
        key = varint()
        if key & 7 == 0:
            value = varint()
        else:
            length = {1: 8, 5: 4}.get(key & 7)
            length = varint() if length is None else length
            value = message[at : at + length]
            at += length
        out.setdefault(key >> 3, []).append(value)
    return out


def numbers(values):
    """A repeated number: packed or not."""
    out = []
    for value in values:
        out += fields_of_packed(value) if isinstance(value, bytes) else [value]
    return out


def fields_of_packed(data):
    out, value, shift = [], 0, 0
    for byte in data:
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            out.append(value)
            value = shift = 0
    return out


def columns(data):
    """The types of the schema's fields (all, and leaves only), and the metadata of each column."""
    _, table, globals_at, _, count, major, minor = struct.unpack("<QQQIIHH", data[-40:-4])
    start, length = struct.unpack_from("<QQ", data, globals_at)
    schema = fields(fields(data[start : start + length])[1][0])
    all_fields = [fields(f) for f in schema.get(1, [])]
    parents = {f.get(4, [0])[0] for f in all_fields}
    leaves = [f for f in all_fields if f.get(3, [0])[0] not in parents]
    chosen = all_fields if (major, minor) in ((0, 3), (2, 0)) else leaves
    places = [struct.unpack_from("<QQ", data, table + 16 * i) for i in range(count)]
    metadata = [fields(data[a : a + n]) for a, n in places]
    types = [f[5][0].decode() for f in chosen]
    return minor if major == 2 else 0, types if len(types) == count else [""] * count, metadata


def main():
    target = HERE / "page_decoder_fuzz"
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir()
    for path in sorted((HERE / "file_reader_fuzz").iterdir()):
        data = path.read_bytes()
        minor, types, metadata = columns(data)
        for kind, column in zip(types, metadata):
            for page in map(fields, column.get(2, [])):
                starts, sizes = (numbers(page.get(n, [])) for n in (1, 2))
                direct = fields(fields(page[4][0])[2][0])[1][0]  # Encoding.direct.encoding
                described = fields(direct).get(2, [b""])[0]  # the value of an Any
                buffers = [data[a : a + n] for a, n in zip(starts, sizes)]
                head = struct.pack(
                    "<BBHBH", 1 if minor > 0 else 0, TYPES.get(kind, 16), page.get(3, [0])[0], len(buffers), len(described)
                )
                lengths = b"".join(struct.pack("<H", len(b)) for b in buffers)
                seed = head + lengths + described + b"".join(buffers)
                (target / hashlib.sha1(seed).hexdigest()[:12]).write_bytes(seed)


if __name__ == "__main__":
    main()
