"""Values of blob columns: kept out of line in the data file, scans give only where they are."""

from __future__ import annotations

import io
from typing import Any, Dict, List, Optional, Sequence, Tuple

import pyarrow as pa

from .. import _not_built
from .._glaive import format_field_path, parse_field_path
from ._blob_types import Blob, BlobArray, BlobType, blob_array, blob_field

__getattr__ = _not_built.missing_names(__name__)

__all__ = ["Blob", "BlobArray", "BlobFile", "BlobType", "blob_array", "blob_field"]

_U64 = 2**64 - 1


class BlobFile(io.BufferedIOBase):
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

    def _check_open(self) -> None:
        if self.closed:
            raise ValueError("I/O operation on closed file: the blob file is already closed")

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._check_open()
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}.get(whence)
        if base is None:
            raise ValueError(f"whence must be 0, 1 or 2, not {whence}")
        if base + offset < 0:
            raise ValueError(f"negative seek position {base + offset}")
        self._at = base + offset
        return self._at

    def tell(self) -> int:
        self._check_open()
        return self._at

    def read_range(self, offset: int, length: int) -> bytes:
        """`length` bytes from `offset`; does not move the position. ValueError when the blob ends before."""
        self._check_open()
        if offset < 0 or length < 0:
            raise OverflowError("offset and length must not be negative")
        if offset + length > self._size:
            raise ValueError(f"blob range end {offset + length} exceeds blob size {self._size}")
        if not length:
            return b""
        return self._engine.read_data_file(self._path, self._position + offset, length, self._base_id)

    def read_ranges(self, ranges: List[Tuple[int, int]]) -> List[bytes]:
        """`read_range` of each (offset, length)."""
        return [self.read_range(offset, length) for offset, length in ranges]

    def read(self, size: Optional[int] = -1) -> bytes:
        self._check_open()
        left = max(0, self._size - self._at)
        data = self.read_range(min(self._at, self._size), left if size is None or size < 0 else min(size, left))
        self._at += len(data)
        return data

    read1 = read

    def readall(self) -> bytes:
        return self.read()

    def readinto(self, b) -> int:
        data = self.read(len(b))
        b[: len(data)] = data
        return len(data)


# --- where blobs lie ----------------------------------------------------------------------------------------


def is_blob_metadata(metadata: Dict[str, str]) -> bool:
    """Whether a stored field with this metadata holds blobs, of either kind."""
    return metadata.get("lance-encoding:blob") == "true" or metadata.get("ARROW:extension:name") == "lance.blob.v2"


def blob_field_ids(engine) -> Dict[str, int]:
    """Path -> field id of the blob columns; those inside lists are not among them, as a row has several of theirs."""
    paths: Dict[int, Optional[List[str]]] = {-1: []}
    found = {}
    for field in engine.fields:
        parent = paths.get(field["parent_id"])
        if parent is None:
            continue
        path = [*parent, field["name"]]
        if is_blob_metadata(field["metadata"]):
            found[format_field_path(path)] = field["id"]
        paths[field["id"]] = path if field["logical_type"] == "struct" and not is_blob_metadata(field["metadata"]) else None
    return found


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


class BlobPlaces:
    """Makes files of the descriptors of one blob column."""

    def __init__(self, engine, path: str):
        self._engine = engine
        self._field = blob_field_ids(engine)[path]
        self._holders: Dict[int, dict] = {}  # fragment -> the data file with the column

    def open(self, address: int, where: Optional[Dict[str, Any]], kind=BlobFile):
        """A file over the blob that the row at `address` has by its descriptor; None for no blob."""
        if where is None:
            return None
        fragment = address >> 32
        if fragment not in self._holders:
            files = self._engine.fragment(fragment)["files"]
            self._holders[fragment] = next(f for f in files if self._field in f["fields"])
        file = self._holders[fragment]
        return kind(self._engine, *_place(file["path"], where), file["base_id"])


# --- reading by row -----------------------------------------------------------------------------------------


def _path_of(dataset, column) -> str:
    known = blob_field_ids(dataset._ds)
    try:
        path = format_field_path(parse_field_path(column))
    except ValueError:
        path = column
    if path not in known:
        raise ValueError(f"the column {column!r} is not a blob column; blob columns are {list(known)}")
    return path


def _describe(dataset, path, ids, addresses, indices) -> pa.Table:
    if (ids is not None) + (addresses is not None) + (indices is not None) != 1:
        raise ValueError("Exactly one of ids, indices, or addresses must be specified")
    engine = dataset._ds
    columns = {"blob": path}
    if indices is not None:
        return engine.take_offsets(indices, columns, with_row_address=True)
    if ids is not None:
        return engine.take_row_ids(ids, columns, with_row_address=True)
    wanted = [a.as_py() if isinstance(a, pa.Scalar) else int(a) for a in addresses]
    found = engine.to_table(columns, filter=f"_rowaddr IN ({', '.join(map(str, wanted))})" if wanted else "false", with_row_address=True)
    places = {address: i for i, address in enumerate(found["_rowaddr"].to_pylist())}
    return found.take([places[a] for a in wanted if a in places])


def _files(dataset, column, ids, addresses, indices) -> List[Tuple[int, Optional[BlobFile]]]:
    path = _path_of(dataset, column)
    table = _describe(dataset, path, ids, addresses, indices)
    places = BlobPlaces(dataset._ds, path)
    rows = zip(table["_rowaddr"].to_pylist(), table["blob"].to_pylist())
    return [(address, places.open(address, where)) for address, where in rows]


def take_blobs(dataset, column, ids, addresses, indices, buffer_size) -> List[Optional[BlobFile]]:
    if buffer_size < 0:
        raise ValueError("buffer_size must not be negative")
    return [blob for _, blob in _files(dataset, column, ids, addresses, indices)]


def read_blobs(dataset, column, ids, addresses, indices) -> List[Tuple[int, Optional[bytes]]]:
    files = _files(dataset, column, ids, addresses, indices)
    return [(address, None if blob is None else blob.read()) for address, blob in files]


def check_ranges(requests: Sequence[Tuple[int, int, int]]) -> List[Tuple[int, int, int]]:
    """(row, offset, length) triples; ValueError for an end that 64 bits do not hold, OverflowError for negative numbers."""
    checked = []
    for row, offset, length in requests:
        if min(row, offset, length) < 0 or max(row, offset, length) > _U64:
            raise OverflowError(f"row, offset and length must be between 0 and {_U64}, not {(row, offset, length)}")
        if offset + length > _U64:
            raise ValueError(f"blob range {(row, offset, length)}: offset + length overflowed 64 bits")
        checked.append((row, offset, length))
    return checked


def read_blob_ranges(dataset, column, requests, selector) -> List[Tuple[int, int, Optional[bytes]]]:
    if selector not in ("ids", "addresses", "indices"):
        raise ValueError(f"selector must be ids, addresses or indices, not {selector!r}")
    requests = check_ranges(requests)
    rows = [row for row, _, _ in requests]
    found = _files(dataset, column, **{"ids": None, "addresses": None, "indices": None, selector: rows})
    if len(found) != len(rows):
        raise ValueError(f"blob ranges of {column!r}: {len(rows) - len(found)} of {len(rows)} rows do not exist")
    return [
        (i, address, None if blob is None else blob.read_range(offset, length))
        for i, ((address, blob), (_, offset, length)) in enumerate(zip(found, requests))
    ]
