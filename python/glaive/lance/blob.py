"""Values of blob columns: kept out of line in the data file, scans give only where they are."""

from __future__ import annotations

import io
from typing import List, Optional, Tuple

import pyarrow as pa

from .. import _not_built
from ._blob_types import Blob, BlobArray, BlobType, blob_array, blob_field

__getattr__ = _not_built.missing_names(__name__)

__all__ = ["Blob", "BlobArray", "BlobFile", "BlobType", "blob_array", "blob_field"]


class BlobFile(io.RawIOBase):
    """One blob as a read-only file; bytes are fetched when they are read."""

    def __init__(self, engine, path: str, position: int, size: int, base_id: Optional[int] = None):
        super().__init__()
        self._engine, self._path, self._position, self._size = engine, path, position, size
        self._base_id = base_id  # of a file that another table holds
        self._at = 0

    def __repr__(self):
        return f"<BlobFile size={self._size}>"

    def size(self) -> int:
        return self._size

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        at = offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        if at < 0:
            raise ValueError(f"negative seek position {at}")
        self._at = at
        return at

    def tell(self) -> int:
        return self._at

    def read_range(self, offset: int, length: int) -> bytes:
        """`length` bytes from `offset`; less at the end. Does not move the position."""
        if offset < 0 or length < 0:
            raise ValueError("offset and length must not be negative")
        length = max(0, min(length, self._size - offset))
        if self.closed:
            raise ValueError("I/O operation on closed file")
        if not length:
            return b""
        return self._engine.read_data_file(self._path, self._position + offset, length, self._base_id)

    def read(self, size: int = -1) -> bytes:
        data = self.read_range(self._at, self._size if size is None or size < 0 else size)
        self._at += len(data)
        return data

    def readall(self) -> bytes:
        return self.read()

    def readinto(self, buffer) -> int:
        data = self.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)


def _describe(dataset, column, ids, addresses, indices) -> pa.Table:
    if (ids is not None) + (addresses is not None) + (indices is not None) != 1:
        raise ValueError("Exactly one of ids, indices, or addresses must be specified")
    if column not in dataset._blob_columns():
        raise ValueError(f"the column {column!r} is not a blob column; blob columns are {dataset._blob_columns()}")
    engine = dataset._ds
    if indices is not None:
        return engine.take_offsets(indices, [column], with_row_address=True)
    if ids is not None:
        return engine.take_row_ids(ids, [column], with_row_address=True)
    wanted = [a.as_py() if isinstance(a, pa.Scalar) else int(a) for a in addresses]
    found = engine.to_table([column], filter=f"_rowaddr IN ({', '.join(map(str, wanted))})" if wanted else "false", with_row_address=True)
    places = {address: i for i, address in enumerate(found["_rowaddr"].to_pylist())}
    return found.take([places[a] for a in wanted if a in places])


def _files(dataset, column, table) -> List[Tuple[int, Optional[BlobFile]]]:
    field = next(f["id"] for f in dataset._ds.fields if f["name"] == column and f["parent_id"] == -1)
    holders = {}
    out = []
    for address, where in zip(table["_rowaddr"].to_pylist(), table[column].to_pylist()):
        if where is None:
            out.append((address, None))
            continue
        fragment = address >> 32
        if fragment not in holders:
            files = dataset._ds.fragment(fragment)["files"]
            holders[fragment] = next(f for f in files if field in f["fields"])
        file = holders[fragment]
        out.append((address, BlobFile(dataset._ds, *_place(file["path"], where), file["base_id"])))
    return out


# Where the bytes of a blob of the second kind lie: in the data file, in a file shared with others, in one of its own.
_INLINE, _PACKED, _DEDICATED = 0, 1, 2


def _place(path, where) -> Tuple[str, int, int]:
    """File (relative to the data directory), position and size of the blob that a descriptor names."""
    kind = where.get("kind", _INLINE)
    if kind not in (_INLINE, _PACKED, _DEDICATED):
        raise NotImplementedError(f"blobs of kind {kind} (outside of the table) are not supported yet by glaive")
    if kind != _INLINE:
        # The name is the blob's number as 32 binary digits, lowest first.
        digits = format(where["blob_id"], "032b")[::-1]
        path = f"{path.rpartition('.')[0]}/{digits}.blob"
    return path, where["position"], where["size"]


def take_blobs(dataset, column, ids, addresses, indices, buffer_size) -> List[Optional[io.RawIOBase]]:
    if buffer_size < 0:
        raise ValueError("buffer_size must not be negative")
    return [blob for _, blob in _files(dataset, column, _describe(dataset, column, ids, addresses, indices))]


def read_blobs(dataset, column, ids, addresses, indices) -> List[Tuple[int, Optional[bytes]]]:
    files = _files(dataset, column, _describe(dataset, column, ids, addresses, indices))
    return [(address, None if blob is None else blob.read()) for address, blob in files]
