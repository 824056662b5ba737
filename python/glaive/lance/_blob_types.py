"""How blobs (lance.blob.v2) are given to a write: bytes in the table, or where bytes lie outside of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, List, Optional

import pyarrow as pa

_NAME = "lance.blob.v2"
_MEMBERS = [("data", pa.large_binary()), ("uri", pa.utf8()), ("position", pa.uint64()), ("size", pa.uint64())]


@dataclass(frozen=True)
class Blob:
    """One value: `data`, or `uri` with, perhaps, the range of it that is meant. None stands for no value."""

    data: Optional[bytes] = None
    uri: Optional[str] = None
    position: Optional[int] = None
    size: Optional[int] = None

    def __post_init__(self) -> None:
        if (self.data is None) == (self.uri is None):
            raise ValueError("a Blob has either data or a uri (None is a missing value)")
        if self.uri == "":
            raise ValueError("the uri of a Blob must not be empty")
        if (self.position is None) != (self.size is None):
            raise ValueError("position and size of a Blob come together")
        if self.position is not None and self.uri is None:
            raise ValueError("only a Blob with a uri has position and size")
        if self.size is not None and (self.size <= 0 or self.position < 0):
            raise ValueError("the range of a Blob needs a position of at least 0 and a size of at least 1")

    @staticmethod
    def from_bytes(data) -> Blob:
        return Blob(data=bytes(data))

    @staticmethod
    def from_uri(uri: str, position: Optional[int] = None, size: Optional[int] = None) -> Blob:
        return Blob(uri=uri, position=position, size=size)

    @staticmethod
    def empty() -> Blob:
        """A value of no bytes, which is not the same as no value."""
        return Blob(data=b"")


class BlobType(pa.ExtensionType):
    """The Arrow type of blob columns as they are written; scans give descriptions of what was stored."""

    def __init__(self) -> None:
        super().__init__(pa.struct(_MEMBERS), _NAME)

    def __arrow_ext_serialize__(self) -> bytes:
        return b""

    @classmethod
    def __arrow_ext_deserialize__(cls, storage_type: pa.DataType, serialized: bytes) -> BlobType:
        members = [(f.name, f.type) for f in storage_type] if pa.types.is_struct(storage_type) else []
        if len(members) not in (2, 4) or members != _MEMBERS[: len(members)]:
            raise TypeError(f"blobs are stored as {pa.struct(_MEMBERS)} or its first two members, not as {storage_type}")
        made = cls.__new__(cls)
        pa.ExtensionType.__init__(made, storage_type, _NAME)
        return made

    def __arrow_ext_class__(self):
        return BlobArray

    def __reduce__(self):
        return type(self).__arrow_ext_deserialize__, (self.storage_type, b"")


try:
    pa.register_extension_type(BlobType())
except pa.ArrowKeyError:  # the real package is loaded as well
    pass


def _as_blob(value: Any) -> Optional[Blob]:
    if value is None or isinstance(value, Blob):
        return value
    if isinstance(value, str):
        return Blob(uri=value)
    if isinstance(value, (bytes, bytearray, memoryview)):
        return Blob(data=bytes(value))
    raise TypeError(f"a blob is bytes, a uri (str), a Blob or None, not {type(value).__name__}")


class BlobArray(pa.ExtensionArray):
    @classmethod
    def from_pylist(cls, values: List[Any]) -> BlobArray:
        blobs = [_as_blob(value) for value in values]
        members = [pa.array([None if b is None else getattr(b, name) for b in blobs], kind) for name, kind in _MEMBERS]
        mask = pa.array([b is None for b in blobs], pa.bool_())
        storage = pa.StructArray.from_arrays(members, names=[name for name, _ in _MEMBERS], mask=mask)
        return pa.ExtensionArray.from_storage(BlobType(), storage)


def blob_array(values: List[Any]) -> BlobArray:
    """Blobs out of bytes, uris (str), `Blob` and None."""
    return BlobArray.from_pylist(values)


def blob_field(
    name: str,
    *,
    nullable: bool = True,
    inline_size_threshold: Optional[int] = None,
    dedicated_size_threshold: Optional[int] = None,
    pack_file_size_threshold: Optional[int] = None,
) -> pa.Field:
    """A column of blobs. Those larger than `dedicated_size_threshold` bytes get files of their own; of the others those
    larger than `inline_size_threshold` share files of up to `pack_file_size_threshold`; the rest lie in the data file."""
    given = {
        "inline_size_threshold": inline_size_threshold,
        "dedicated_size_threshold": dedicated_size_threshold,
        "pack_file_size_threshold": pack_file_size_threshold,
    }
    metadata = {}
    for key, value in given.items():
        if value is None:
            continue
        if isinstance(value, bool) or not isinstance(value, int):
            raise TypeError(f"{key} must be an int, not {type(value).__name__}")
        if value < (0 if key.startswith("inline") else 1):
            raise ValueError(f"{key} must be {'at least 0' if key.startswith('inline') else 'positive'}, not {value}")
        if value >= 1 << 64:
            raise OverflowError(f"{key} must be below 2**64")
        metadata[f"lance-encoding:blob-{key.replace('_', '-')}"] = str(value)
    return pa.field(name, BlobType(), nullable=nullable, metadata=metadata or None)
