"""Casts incoming batches to a wanted schema, by name at every level."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ._lazy import pa
from .exceptions import SchemaMismatchError

if TYPE_CHECKING:
    import pyarrow


def fit_batch(batch: "pyarrow.RecordBatch", target: "pyarrow.Schema") -> "pyarrow.RecordBatch":
    """The batch with exactly the columns of `target`, in its order and types.

    SchemaMismatchError (a ValueError) for an unknown or missing column, a value that cannot be cast without loss, or a null where
    `target` allows none.
    """
    if batch.schema.equals(target, check_metadata=False) and not _may_break_nullability(target):
        return batch if batch.schema.equals(target, check_metadata=True) else batch.replace_schema_metadata(target.metadata)
    check_names(batch.schema.names, target)
    if batch.num_columns != len(target):
        missing = [f.name for f in target if batch.schema.get_field_index(f.name) < 0]
        raise SchemaMismatchError(f"Input table has different number of columns than target schema: {missing} are missing")
    return pa.RecordBatch.from_arrays([fit_array(batch.column(field.name), field) for field in target], schema=target)


def check_names(names, target: "pyarrow.Schema") -> None:
    """SchemaMismatchError when one of `names` is no column of `target`, or comes twice."""
    seen = set()
    for name in names:
        if target.get_field_index(name) < 0:
            raise SchemaMismatchError(f"Field '{name}' not found in target schema")
        if name in seen:
            raise SchemaMismatchError(f"column '{name}' comes twice")
        seen.add(name)


def _may_break_nullability(schema) -> bool:
    return any(not field.nullable for field in schema)


def fit_array(array, field, path: str = ""):
    """The array cast to the field's type; see `fit_batch`."""
    path = f"{path}.{field.name}" if path else field.name
    if array.null_count and not field.nullable:
        raise SchemaMismatchError(
            f"The field `{path}` contained null values even though the field is marked non-null in the schema"
        )
    wanted = field.type
    if array.type == wanted and not pa.types.is_struct(wanted):
        return array
    try:
        return _cast(array, wanted, path)
    except SchemaMismatchError:
        raise
    except (pa.ArrowException, ValueError, TypeError) as e:
        raise SchemaMismatchError(f"Cast error in column '{path}': {array.type} does not become {wanted}: {e}") from None


def _cast(array, wanted, path):
    if isinstance(wanted, pa.BaseExtensionType):
        storage = array.storage if isinstance(array.type, pa.BaseExtensionType) else array
        if wanted.extension_name == "lance.blob.v2":
            storage = _as_blobs(storage, wanted.storage_type)
        return wanted.wrap_array(_cast(storage, wanted.storage_type, path))
    if array.type == wanted and not pa.types.is_struct(wanted):
        return array
    if pa.types.is_null(array.type):
        return pa.nulls(len(array), wanted)
    if isinstance(array.type, pa.BaseExtensionType):
        array = array.storage
    if pa.types.is_struct(array.type) and pa.types.is_struct(wanted):
        return _fit_struct(array, wanted, path)
    if pa.types.is_dictionary(wanted) and not pa.types.is_dictionary(array.type):
        encoded = array.cast(wanted.value_type).dictionary_encode()
        return pa.DictionaryArray.from_arrays(encoded.indices.cast(wanted.index_type), encoded.dictionary, ordered=wanted.ordered)
    if _lists_to_rebuild(array.type, wanted):
        return _fit_list(array, wanted, path)
    return array.cast(wanted)


def _as_blobs(array, storage_type):
    """Bytes as the contents of blobs, texts as where they lie; everything else as it is."""
    kind = array.type
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_binary_view(kind):
        name = "data"
    elif pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        name = "uri"
    else:
        return array
    members = [array.cast(f.type) if f.name == name else pa.nulls(len(array), f.type) for f in storage_type]
    return pa.StructArray.from_arrays(members, fields=list(storage_type), mask=array.is_null() if array.null_count else None)


def _fit_struct(array, wanted, path):
    for i in range(array.type.num_fields):
        name = array.type.field(i).name
        if wanted.get_field_index(name) < 0:
            raise SchemaMismatchError(f"Field '{name}' not found in target schema: '{path}' has no such member")
    null = array.is_null() if array.null_count else None
    children = []
    for field in wanted:
        index = array.type.get_field_index(field.name)
        if index < 0:
            if not field.nullable and array.null_count < len(array):
                raise SchemaMismatchError(f"The field `{path}.{field.name}` is missing even though it is marked non-null")
            children.append(pa.nulls(len(array), field.type))
            continue
        child = array.field(index)
        if null is not None and not field.nullable:  # a null struct may hide null members
            children.append(_cast(child, field.type, f"{path}.{field.name}"))
        else:
            children.append(fit_array(child, field, path))
    return pa.StructArray.from_arrays(children, fields=list(wanted), mask=null)


def _lists_to_rebuild(found, wanted) -> bool:
    lists = (pa.types.is_list, pa.types.is_large_list)
    return (
        any(f(found) for f in lists)
        and any(f(wanted) for f in lists)
        and (
            pa.types.is_struct(found.value_type)
            and pa.types.is_struct(wanted.value_type)
            or isinstance(wanted.value_type, pa.BaseExtensionType)
        )
    )


def _fit_list(array, wanted, path):
    if array.offset or array.null_count:  # from_arrays takes neither together with a mask
        array = pa.concat_arrays([array])
        null = array.is_null()
    else:
        null = None
    offsets = array.offsets
    values = array.values.slice(offsets[0].as_py(), offsets[-1].as_py() - offsets[0].as_py()) if len(array) else array.values[:0]
    values = fit_array(values, wanted.value_field, path)
    offsets = pa.array(offsets.to_numpy() - (offsets[0].as_py() if len(offsets) else 0))
    kind, offset_type = (pa.LargeListArray, pa.int64()) if pa.types.is_large_list(wanted) else (pa.ListArray, pa.int32())
    return kind.from_arrays(offsets.cast(offset_type), values, type=wanted, mask=null)
