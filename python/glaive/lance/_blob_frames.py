"""Results of scans with the contents of blob columns in place of what describes them."""

from __future__ import annotations

from typing import Dict, List, Optional, Tuple, Union

import pyarrow as pa

from .._glaive import format_field_path, parse_field_path
from ._refuse import refusal
from .blob import BlobPlaces

_Columns = Optional[Union[List[str], Dict[str, str]]]


def is_descriptor(field: pa.Field) -> bool:
    """Whether a field of a scan's result describes blobs."""
    metadata = field.metadata or {}
    return metadata.get(b"lance-encoding:blob") == b"true" and pa.types.is_struct(field.type)


def has_descriptors(field: pa.Field) -> bool:
    """Whether blobs are described by this field or one inside it."""
    if is_descriptor(field):
        return True
    return any(has_descriptors(field.type.field(i)) for i in range(field.type.num_fields))


def _source(columns: _Columns, name: str) -> List[str]:
    """The path of the table's column that the output column `name` shows."""
    if columns is None:
        return [name]
    text = columns[name] if isinstance(columns, dict) else name
    try:
        return parse_field_path(text)
    except ValueError:
        return [text]


class _Filler:
    """Replaces descriptors by files or bytes, for one result."""

    def __init__(self, engine, addresses: List[int], mode: str):
        self._engine, self._addresses, self._mode = engine, addresses, mode

    def values(self, array, field: pa.Field, path: List[str]) -> list:
        """The Python values of a column, its blobs filled in."""
        rows = array.to_pylist()
        if is_descriptor(field):
            places = BlobPlaces(self._engine, format_field_path(path))
            files = [places.open(address, where) for address, where in zip(self._addresses, rows)]
            return files if self._mode == "lazy" else [None if file is None else file.read() for file in files]
        if not pa.types.is_struct(field.type):
            raise refusal(f"the contents of blobs inside lists (column {'.'.join(path)!r}; blob_mode='descriptions' describes them)")
        for member in field.type:
            if has_descriptors(member):
                inner = pa.chunked_array([_member(chunk, member.name) for chunk in array.chunks], member.type)
                for row, value in zip(rows, self.values(inner, member, [*path, member.name])):
                    if row is not None:
                        row[member.name] = value
        return rows


def _member(chunk: pa.StructArray, name: str) -> pa.Array:
    """One member, null where the struct is."""
    return chunk.flatten()[chunk.type.get_field_index(name)]


def to_frame(engine, table: pa.Table, columns: _Columns, mode: str, keep_address: bool, kwargs: dict):
    """A pandas frame of `table`, which has row addresses, with files ("lazy") or bytes for blobs."""
    import pandas

    addresses = table["_rowaddr"].to_pylist()
    if not keep_address:
        table = table.drop_columns(["_rowaddr"])
    filler = _Filler(engine, addresses, mode)
    filled: List[Tuple[str, list]] = []
    for index, field in enumerate(table.schema):
        if has_descriptors(field):
            filled.append((field.name, filler.values(table.column(index), field, _source(columns, field.name))))
            table = table.set_column(index, pa.field(field.name, pa.null()), pa.nulls(table.num_rows))
    frame = table.to_pandas(**kwargs)
    for name, values in filled:
        series = pandas.Series([None] * len(values), index=frame.index, dtype=object)
        series[:] = values
        frame[name] = series
    return frame


def binary_field(field: pa.Field) -> pa.Field:
    """What a field of a scan becomes when blobs come as their bytes."""
    if is_descriptor(field):
        kept = {k: v for k, v in (field.metadata or {}).items() if k != b"lance-encoding:packed"}
        if field.type.num_fields != 2:
            kept.pop(b"lance-encoding:blob", None)  # of blobs of the second kind
        return pa.field(field.name, pa.large_binary(), field.nullable, kept or None)
    if has_descriptors(field):
        raise refusal(f"blob_handling='all_binary' for blobs inside the column {field.name!r}")
    return field


def fill_batch(engine, batch: pa.RecordBatch, columns: _Columns, keep_address: bool) -> pa.RecordBatch:
    """`batch`, which has row addresses, with the bytes of its blobs."""
    filler = _Filler(engine, batch.column("_rowaddr").to_pylist(), "bytes")
    arrays, fields = [], []
    for array, field in zip(batch.columns, batch.schema):
        if field.name == "_rowaddr" and not keep_address:
            continue
        fields.append(binary_field(field))
        if is_descriptor(field):
            array = pa.array(filler.values(array, field, _source(columns, field.name)), pa.large_binary())
        arrays.append(array)
    return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields, batch.schema.metadata))
