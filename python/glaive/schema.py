"""Helpers for Arrow schemas: vectors, and columns of blobs."""

from __future__ import annotations

from typing import Callable, Iterator, List, Tuple

import pyarrow as pa

__all__ = ["blob", "blob_column_paths", "blob_v2_column_paths", "vector"]

_BLOB_NAME = "lance.blob.v2"


def vector(dimension: int, value_type: pa.DataType = pa.float32()) -> pa.DataType:
    """The Arrow type of a vector column: a list of `dimension` values of `value_type` (float32 by default)."""
    return pa.list_(value_type, dimension)


def blob(name: str, nullable: bool = True) -> pa.Field:
    """A column of large binary values that are kept out of line: reads give descriptions, `Table.fetch_blobs` the contents."""
    from .lance.blob import BlobType

    return pa.field(name, BlobType(), nullable=nullable)


def is_blob_v2_field(field: pa.Field) -> bool:
    """Whether the field was made by `blob`, or is stored as such a column."""
    if isinstance(field.type, pa.BaseExtensionType):
        return field.type.extension_name == _BLOB_NAME
    return (field.metadata or {}).get(b"ARROW:extension:name") == _BLOB_NAME.encode()


def is_blob_like_field(field: pa.Field) -> bool:
    """Whether the field holds blobs of either kind, or describes some in the result of a query."""
    return is_blob_v2_field(field) or (field.metadata or {}).get(b"lance-encoding:blob") == b"true"


def _blobs(fields, prefix: str, in_list: bool, wanted: Callable[[pa.Field], bool]) -> Iterator[Tuple[str, bool]]:
    """(dotted path, whether it lies in a list) of the wanted fields."""
    for field in fields:
        path = prefix + field.name
        kind = field.type
        if wanted(field):
            yield path, in_list
        elif pa.types.is_struct(kind):
            yield from _blobs(kind, path + ".", in_list, wanted)
        elif pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
            yield from _blobs([kind.value_field], path + ".", True, wanted)


def blob_column_paths(schema: pa.Schema) -> List[str]:
    """Dotted paths of the columns with blobs of either kind."""
    return [path for path, _ in _blobs(schema, "", False, is_blob_like_field)]


def blob_v2_column_paths(schema: pa.Schema) -> List[str]:
    """Dotted paths of the columns that `blob` makes."""
    return [path for path, _ in _blobs(schema, "", False, is_blob_v2_field)]


def row_addressable_blob_v2_paths(schema: pa.Schema) -> List[str]:
    """Those of `blob_v2_column_paths` with one blob a row: not inside lists."""
    return [path for path, in_list in _blobs(schema, "", False, is_blob_v2_field) if not in_list]


def schema_has_blob_field(schema: pa.Schema) -> bool:
    """Whether there are blobs of either kind."""
    return any(True for _ in _blobs(schema, "", False, is_blob_like_field))


def __getattr__(name: str):
    if name == "BlobType":
        from .lance.blob import BlobType

        return BlobType
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
