"""Blob columns of tables: their contents by row, as files, as ranges, and in pandas frames.

A query gives descriptions of blobs. Each of them carries the id of its row (member `_lance_row_id`), so that the result, sorted or
filtered as one likes, is enough to fetch the contents.
"""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any, Iterable, List, Optional, Sequence, Tuple, Union

from . import _pool
from ._glaive import format_field_path, parse_field_path
from ._lazy import pa
from ._plan import Plan, _seconds
from .exceptions import BlobFrameError, BlobRangeError, ClosedError, InvalidInputError, InvalidTypeError
from .util import flatten_columns

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow

__all__ = ["BlobFile", "read_row_ids_from_hits", "stash_auto_row_ids", "strip_auto_row_ids", "validate_blob_mode"]

ROW_ID = "_rowid"
STASHED = "_lance_row_id"
BLOB_MODES = ("lazy", "bytes", "descriptions")
_U64 = 2**64 - 1


def validate_blob_mode(blob_mode: str) -> None:
    """ValueError unless `blob_mode` is one of the known ones."""
    if blob_mode not in BLOB_MODES:
        raise InvalidInputError(f"blob_mode must be one of {', '.join(map(repr, BLOB_MODES))}, got {blob_mode!r}")


class BlobFile(io.RawIOBase):
    """One blob as a read-only file; bytes are fetched when they are read."""

    def __init__(self, inner):
        super().__init__()
        self._inner = inner

    def __repr__(self) -> str:
        return f"<BlobFile size={self.size()}>"

    def _open(self):
        if self.closed:
            raise ClosedError("blob file is already closed")
        return self._inner

    def size(self) -> int:
        """Bytes in all."""
        return self._inner.size()

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        return self._open().seek(offset, whence)

    def tell(self) -> int:
        return self._open().tell()

    def read(self, size: int = -1) -> bytes:
        return self._open().read(size)

    async def aread(self) -> bytes:
        """`readall` for async code."""
        return await _pool.run(self.readall)

    def readall(self) -> bytes:
        return self.read()

    def readinto(self, b) -> int:
        return self._open().readinto(b)

    def read_range(self, offset: int, length: int) -> bytes:
        """`length` bytes from `offset`; does not move the position. RuntimeError when the blob ends before."""
        inner = self._open()
        try:
            return inner.read_range(offset, length)
        except OverflowError:
            raise
        except ValueError as e:
            raise BlobRangeError(f"blob read_range failed: {e}") from None


# --- row ids that results carry ---------------------------------------------------------------------------------


def _describes_blob(field) -> bool:
    """Whether a field of a result describes blobs of the second kind."""
    return (
        (field.metadata or {}).get(b"lance-encoding:blob") == b"true"
        and pa.types.is_struct(field.type)
        and field.type.get_field_index("blob_uri") >= 0
    )


def _carriers(fields, prefix: Tuple[str, ...] = ()) -> List[Tuple[str, ...]]:
    """Paths of the descriptions in a result, one a row (so none inside lists)."""
    found = []
    for field in fields:
        if _describes_blob(field):
            found.append((*prefix, field.name))
        elif pa.types.is_struct(field.type):
            found += _carriers(field.type, (*prefix, field.name))
    return found


def carries_blobs(schema: "pyarrow.Schema") -> bool:
    """Whether a result of this schema describes blobs of the second kind."""
    return bool(_carriers(schema))


def _rebuild(array, field, change):
    """The struct array with its members as `change(members, fields)` makes them."""
    members, fields = change([array.field(i) for i in range(array.type.num_fields)], list(array.type))
    mask = array.is_null() if array.null_count else None
    return pa.StructArray.from_arrays(members, fields=fields, mask=mask), field.with_type(pa.struct(fields))


def _at_path(array, field, path: Sequence[str], change):
    """(array, field) with the description at `path` below them rebuilt by `change`."""
    if not path:
        return _rebuild(array, field, change)

    def inside(members, fields):
        index = array.type.get_field_index(path[0])
        members[index], fields[index] = _at_path(members[index], fields[index], path[1:], change)
        return members, fields

    return _rebuild(array, field, inside)


def _change_table(table, paths, change_of):
    """`table` with the descriptions at `paths` rebuilt; `change_of(start, length)` gives the change for a run of rows."""
    for path in paths:
        index = table.schema.get_field_index(path[0])
        field, chunks, start = table.schema.field(index), [], 0
        changed = field
        column = table.column(index)
        for chunk in column.chunks or [pa.nulls(0, field.type)]:
            array, changed = _at_path(chunk, field, path[1:], change_of(start, len(chunk)))
            chunks.append(array)
            start += len(chunk)
        table = table.set_column(index, changed, pa.chunked_array(chunks, changed.type))
    return table


def _split(path: Union[str, Sequence[str]]) -> Tuple[str, ...]:
    return tuple(parse_field_path(path)) if isinstance(path, str) else tuple(path)


def stash_auto_row_ids(tbl: "pyarrow.Table", blob_paths: Iterable[str]) -> "pyarrow.Table":
    """`tbl` without its column `_rowid`, whose values become a member of the descriptions at `blob_paths`."""
    ids = tbl.column(ROW_ID).combine_chunks()
    if isinstance(ids, pa.ChunkedArray):
        ids = pa.concat_arrays(ids.chunks) if ids.num_chunks else pa.nulls(0, pa.uint64())

    def change_of(start, length):
        row_ids = ids.slice(start, length)
        return lambda members, fields: ([*members, row_ids], [*fields, pa.field(STASHED, pa.uint64(), nullable=False)])

    return _change_table(tbl, [_split(path) for path in blob_paths], change_of).drop_columns([ROW_ID])


def strip_auto_row_ids(tbl: "pyarrow.Table", blob_paths: Iterable[str]) -> "pyarrow.Table":
    """`tbl` without the row ids in the descriptions at `blob_paths`."""

    def drop(members, fields):
        kept = [i for i, field in enumerate(fields) if field.name != STASHED]
        return [members[i] for i in kept], [fields[i] for i in kept]

    wanted = {_split(path) for path in blob_paths}
    paths = [path for path in _stashing(tbl.schema) if path in wanted]
    return _change_table(tbl, paths, lambda start, length: drop)


def _stashing(schema) -> List[Tuple[str, ...]]:
    def type_at(path):
        kind = schema.field(path[0]).type
        for name in path[1:]:
            kind = kind.field(kind.get_field_index(name)).type
        return kind

    return [path for path in _carriers(schema) if type_at(path).get_field_index(STASHED) >= 0]


def read_row_ids_from_hits(hits: "pyarrow.Table", blob_column: str) -> List[Optional[int]]:
    """Row ids of the rows of a query's result; None where the blob is missing, and with it the id.

    They are those that the description of `blob_column` carries (or of the only one that carries some: it may be shown under another
    name), else the column `_rowid`. ValueError when there are neither.
    """
    stashing = _stashing(hits.schema)
    path = _split(blob_column)
    if path not in stashing and len(stashing) == 1:
        path = stashing[0]
    if path in stashing:
        values = hits.column(path[0])
        for name in (*path[1:], STASHED):
            values = pa.chunked_array(
                [c.flatten()[c.type.get_field_index(name)] for c in values.chunks], values.type.field(values.type.get_field_index(name)).type
            )
        return values.to_pylist()
    if ROW_ID in hits.column_names:
        return hits.column(ROW_ID).to_pylist()
    raise InvalidInputError(
        f"the rows of the result are not known: it has no {ROW_ID} column, and no description of the blob column {blob_column!r}; "
        "select that column, or add with_row_id(True)"
    )


def carry(plan: Plan, result: "pyarrow.Table", run) -> "pyarrow.Table":
    """`result`, of the plan without row ids; when it describes blobs, of `run` with row ids, which the descriptions then carry."""
    if not carries_blobs(result.schema) or ROW_ID in result.column_names:
        return result
    with_ids = plan.copy()
    with_ids.with_row_id = True
    result = run(with_ids)
    return stash_auto_row_ids(result, _carriers(result.schema))


# --- frames ---------------------------------------------------------------------------------------------------


def plan_shows_blobs(plan: Plan) -> bool:
    """Whether the result of the plan has blobs of either kind."""
    from .schema import is_blob_like_field

    def shows(field):
        return is_blob_like_field(field) or any(shows(field.type.field(i)) for i in range(field.type.num_fields))

    return any(map(shows, plan.output_schema()))


def plan_frame(plan: Plan, blob_mode: str, flatten, timeout, kwargs) -> "pd.DataFrame":
    """The pandas frame of a plan that shows blobs. RuntimeError unless it is a plain scan."""
    from .lance._blob_frames import to_frame

    if any(x is not None for x in (plan.queries, plan.offsets, plan.row_ids, plan.ordering)):
        raise BlobFrameError(
            "blob columns become a frame in a plain scan query only: this one cannot use the Lance native pandas conversion. "
            "Leave the blob columns out, or use to_arrow and fetch_blobs."
        )
    engine = plan.table.dataset()
    arguments = dict(
        with_row_id=plan.with_row_id, fragment_ids=plan.fragment_ids, timeout=_seconds(timeout),
    )  # fmt: skip
    query = (plan.columns, plan.filter, plan.limit, plan.offset)
    if blob_mode == "descriptions":
        table = engine.to_table(*query, with_row_address=plan.with_row_address, **arguments)
        return flatten_columns(table, flatten).to_pandas(**kwargs)
    if flatten:
        raise BlobFrameError(
            f"blob_mode={blob_mode!r} cannot use the Lance native pandas conversion together with flatten in a plain scan query"
        )
    table = engine.to_table(*query, with_row_address=True, **arguments)
    return to_frame(engine, table, plan.columns, blob_mode, plan.with_row_address, kwargs)


# --- contents by row ------------------------------------------------------------------------------------------


def blob_columns(native) -> List[str]:
    from .schema import blob_v2_column_paths

    return blob_v2_column_paths(native.schema())


def _blob_path(engine, column: str) -> str:
    """The path of a blob column that has one blob a row; ValueError when `column` is none."""
    from .lance.blob import blob_field_ids

    if not isinstance(column, str):
        raise InvalidTypeError(f"a column is named by text, not {column!r}")
    path = format_field_path(parse_field_path(column))
    if path in blob_field_ids(engine):
        return path
    if path not in {format_field_path(p) for p in _all_paths(engine)}:
        raise InvalidInputError(f"Invalid input, no column named '{column}' in this table")
    raise InvalidInputError(f"Invalid input, column '{column}' is not a blob column")


def _all_paths(engine):
    paths = {-1: ()}
    for field in engine.fields:
        paths[field["id"]] = (*paths.get(field["parent_id"], ()), field["name"])
    return [path for i, path in paths.items() if i >= 0]


def _row_ids(rows, column: str) -> List[Optional[int]]:
    if isinstance(rows, pa.Table):
        return read_row_ids_from_hits(rows, column)
    if isinstance(rows, pa.RecordBatch):
        return read_row_ids_from_hits(pa.Table.from_batches([rows]), column)
    if isinstance(rows, (pa.Array, pa.ChunkedArray)):
        raise InvalidInputError(
            f"pass the result of a query, or a list of row ids, not a column of one: fetch_blobs({column!r}, hits), not "
            f"fetch_blobs({column!r}, hits[{column!r}])"
        )
    if isinstance(rows, (str, bytes)) or not hasattr(rows, "__iter__"):
        raise InvalidTypeError(f"row ids are a sequence of integers or the result of a query, not {type(rows).__name__}")
    return [None if row is None else _row_id(row) for row in rows]


def _row_id(value) -> int:
    if not hasattr(value, "__index__"):
        raise InvalidTypeError(f"a row id is an integer, not {value!r}")
    number = value.__index__()
    if not 0 <= number <= _U64:
        raise OverflowError(f"a row id is between 0 and {_U64}, not {number}")
    return number


def _open_blobs(native, column: str, row_ids: List[Optional[int]]):
    """A `glaive.lance.BlobFile`, or None, for each row id. ValueError when a row does not exist."""
    from .lance.blob import BlobPlaces

    engine = native.dataset()
    path = _blob_path(engine, column)
    wanted = sorted({row for row in row_ids if row is not None})
    found = {}
    if wanted:
        table = engine.take_row_ids(wanted, {"blob": path}, with_row_id=True, with_row_address=True)
        places = BlobPlaces(engine, path)
        for row, address, where in zip(*(table[name].to_pylist() for name in (ROW_ID, "_rowaddr", "blob"))):
            found[row] = (address, where)
        missing = [row for row in wanted if row not in found]
        if missing:
            raise InvalidInputError(f"Invalid input, row IDs {missing[:5]} do not exist: no blobs of column '{column}' to read")
    return [None if row is None else places.open(*found[row]) for row in row_ids]


def fetch_blobs(native, column: str, rows) -> "pyarrow.Array":
    blobs = _open_blobs(native, column, _row_ids(rows, column))
    return pa.array([None if blob is None else blob.read() for blob in blobs], pa.large_binary())


def fetch_blob_files(native, column: str, rows) -> List[Optional[BlobFile]]:
    return [None if blob is None else BlobFile(blob) for blob in _open_blobs(native, column, _row_ids(rows, column))]


def fetch_blob_ranges(native, column: str, requests) -> "pyarrow.Array":
    from .lance.blob import check_ranges

    requests = check_ranges([tuple(map(_row_id, request)) for request in requests])
    blobs = _open_blobs(native, column, [row for row, _, _ in requests])
    values = []
    for i, (blob, (row, offset, length)) in enumerate(zip(blobs, requests)):
        if blob is not None and offset + length > blob.size():
            raise InvalidInputError(
                f"Invalid input, blob range {i} of row {row}: its end {offset + length} exceeds blob size {blob.size()}"
            )
        values.append(None if blob is None else blob.read_range(offset, length))
    return pa.array(values, pa.large_binary())
