"""Columns added to one fragment, or given new values in it, for changes that several machines make and one commits."""

from __future__ import annotations

from typing import Any, Optional, Tuple

import pyarrow as pa
import pyarrow.compute as pc

from .._glaive import validate_filter
from ..exceptions import InvalidInputError, SchemaMismatchError
from . import _roaring
from ._data import to_stream


def _written(fragment, values, replace: bool):
    """(metadata of the fragment with the columns of `values`, schema, ids of the fields that were written)."""
    from ._dataset_parts import LanceSchema
    from .fragment import FragmentMetadata

    engine = fragment._engine
    info, schema, fields, ids = engine.write_fragment_columns(fragment.fragment_id, values, replace=replace)
    return FragmentMetadata._of(info), LanceSchema(fields, schema), ids


class _OneFragment:
    """The part of a dataset's interface that functions over batches are run by, for one fragment."""

    def __init__(self, fragment):
        self._fragment = fragment

    def get_fragments(self):
        return [self._fragment]

    def scanner(self, **options):
        options["fragments"] = [self._fragment]
        return self._fragment._dataset.scanner(**options)


def _values(fragment, value_func, columns, batch_size, reader_schema):
    """A stream of the new columns, of the fragment's live rows."""
    from .udf import BatchUDF, normalize_transform, run_udf

    one = _OneFragment(fragment)
    transform = normalize_transform(value_func, one, columns, reader_schema)
    if isinstance(transform, dict):
        for expression in transform.values():
            validate_filter(f"({expression}) IS NULL", fragment._engine.schema, meta_columns=False)
        return one.scanner(columns=transform, batch_size=batch_size).to_reader()
    if isinstance(transform, BatchUDF):
        return run_udf(transform, one, columns, batch_size)
    return transform


def merge_columns(fragment, value_func, columns, batch_size, reader_schema) -> Tuple[Any, Any]:
    metadata, schema, _ = _written(fragment, _values(fragment, value_func, columns, batch_size, reader_schema), False)
    return metadata, schema


def _joined(fragment, data_obj, left_on: str, right_on: Optional[str], schema: Optional[pa.Schema]):
    """(the other table without its key, for each live row of the fragment the place of its row there or null)."""
    right_on = left_on if right_on is None else right_on
    stream = to_stream(data_obj, schema)
    right = stream.empty_table() if isinstance(stream, pa.Schema) else pa.table(stream)
    if right_on not in right.schema.names:
        raise InvalidInputError(f"the given data has no column '{right_on}' to join by (columns: {', '.join(right.schema.names)})")
    if left_on not in ("_rowid", "_rowaddr") and fragment._engine.schema.get_field_index(left_on) < 0:
        raise InvalidInputError(f"fragment {fragment.fragment_id} has no column '{left_on}' to join by")
    keys = fragment.to_table(columns=[left_on])[left_on]
    if not right[right_on].type.equals(keys.type):
        raise InvalidInputError(f"Index column type mismatch: expected {right[right_on].type}, got {keys.type}")
    values = right[right_on].combine_chunks()
    # Of several rows with a key the last one counts.
    last = pc.index_in(keys, value_set=values[::-1])
    places = pc.subtract(pa.scalar(len(values) - 1, pa.int64()), last.cast(pa.int64()))
    return right.drop_columns([right_on]), places.combine_chunks()


def merge(fragment, data_obj, left_on, right_on, schema) -> Tuple[Any, Any]:
    right, places = _joined(fragment, data_obj, left_on, right_on, schema)
    metadata, new_schema, _ = _written(fragment, right.take(places), False)
    return metadata, new_schema


def update_columns(fragment, data_obj, left_on, right_on, schema, with_offsets):
    right, places = _joined(fragment, data_obj, left_on, right_on, schema)
    known = fragment._engine.schema
    for name in right.schema.names:
        if known.get_field_index(name) < 0:
            raise ValueError(f"Column {name} in right side fragment does not exist in left side fragment")
        given, wanted = right.schema.field(name).type, known.field(name).type
        if not given.equals(wanted):
            raise SchemaMismatchError(f"column '{name}' is of type {wanted}, its new values are of type {given}; cast them first")
    if not right.num_columns:
        raise ValueError("the data holds no column to update besides the key")
    old = fragment.to_table(columns=[f"`{name}`" for name in right.schema.names]).rename_columns(right.schema.names)
    rows = pa.array(range(old.num_rows), pa.int64())
    chosen = pc.coalesce(pc.add(places, pa.scalar(old.num_rows, pa.int64())), rows)
    arrays, fields = [], []
    for name in right.schema.names:
        field = known.field(name)
        both = pa.chunked_array([*old[name].chunks, *right[name].cast(old[name].type).chunks], old[name].type)
        arrays.append(both.take(chosen))
        fields.append(field.with_type(old[name].type))
    metadata, _, ids = _written(fragment, pa.table(arrays, schema=pa.schema(fields)), True)
    if not with_offsets:
        return metadata, ids
    addresses = fragment.to_table(columns=[], with_row_address=True)["_rowaddr"]
    matched = addresses.filter(pc.is_valid(places))
    return metadata, ids, _roaring.encode(address & 0xFFFFFFFF for address in matched.to_pylist())
