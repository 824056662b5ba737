"""Arrow tables out of Python rows (dicts and models)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, List, Optional

from ._lazy import pa
from .exceptions import InvalidInputError, InvalidTypeError, SchemaMismatchError

if TYPE_CHECKING:
    import pyarrow

ONE_DICT = "Cannot create or add rows from a single dictionary. Use a list of dictionaries instead."
ONE_MODEL = "Cannot add a single LanceModel to a table. Use a list."


def is_model(value: Any) -> bool:
    """Whether `value` is an instance of a LanceModel (asked without importing pydantic)."""
    return hasattr(type(value), "to_arrow_schema") and hasattr(value, "model_dump")


def is_model_class(value: Any) -> bool:
    return isinstance(value, type) and hasattr(value, "to_arrow_schema") and hasattr(value, "model_fields")


def rows_to_table(rows: List[Any], target: Optional["pyarrow.Schema"]) -> "pyarrow.Table":
    """A table of the rows. Keys missing in a row become null; columns come in the order in which keys are first seen.

    With `target` its types guide the conversion (so that a column of None has the right type); names are not checked here, and
    values that do not fit keep the type they have by themselves, for the cast that follows.
    """
    rows = [_as_dict(row) for row in rows]
    names = list(rows[0])
    known = rows[0].keys()
    if any(row.keys() != known for row in rows):
        names = list(dict.fromkeys(name for row in rows for name in row))
    arrays = []
    for name in names:
        if not isinstance(name, str):
            raise InvalidTypeError(f"a row has the key {name!r}: names of columns are text")
        index = -1 if target is None else target.get_field_index(name)
        wanted = None if index < 0 else target.field(index).type
        arrays.append(_column(name, [row.get(name) for row in rows], wanted))
    return pa.Table.from_arrays(arrays, names=names)


def _as_dict(row: Any) -> dict:
    if isinstance(row, dict):
        return row
    if is_model(row):
        from .pydantic import model_to_dict

        return model_to_dict(row)
    raise InvalidTypeError(f"each row must be a dict or a LanceModel, not {type(row).__name__}")


def _column(name: str, values: list, wanted: Optional["pyarrow.DataType"]):
    refusals = (pa.ArrowException, TypeError, ValueError, OverflowError)
    if wanted is not None and _takes_python_values(wanted):
        try:
            return pa.array(values, wanted)
        except refusals:
            pass  # let the values have their own type; the cast decides
    try:
        array = pa.array(values)
    except refusals as e:
        if wanted is None:
            raise
        try:
            return pa.array(values, wanted)
        except refusals:
            raise SchemaMismatchError(f"column '{name}': the values have no common type: {e}") from None
    if wanted is not None and has_null(array.type):
        completed = complete(array.type, wanted)
        if completed != array.type:
            try:
                return pa.array(values, completed)
            except refusals:
                pass
    return array


def _takes_python_values(wanted) -> bool:
    """Whether pyarrow makes arrays of this type straight from Python values without losing any: vectors and maps.

    For other types values are given their own type first, as pyarrow cuts 1.5 to 1 and leaves out unknown members of structs.
    """
    if pa.types.is_map(wanted):
        return not has_struct(wanted.item_type)
    is_list = pa.types.is_list(wanted) or pa.types.is_large_list(wanted) or pa.types.is_fixed_size_list(wanted)
    return is_list and pa.types.is_floating(wanted.value_type)


def _children(data_type):
    if isinstance(data_type, pa.BaseExtensionType):
        return [data_type.storage_type]
    if pa.types.is_dictionary(data_type):
        return [data_type.value_type]
    return [data_type.field(i).type for i in range(data_type.num_fields)]


def has_struct(data_type: "pyarrow.DataType") -> bool:
    return pa.types.is_struct(data_type) or any(map(has_struct, _children(data_type)))


def has_null(data_type: "pyarrow.DataType") -> bool:
    """Whether null is the type of the values or of any member."""
    return pa.types.is_null(data_type) or any(map(has_null, _children(data_type)))


def complete(found: "pyarrow.DataType", wanted: "pyarrow.DataType") -> "pyarrow.DataType":
    """`found` with every null type in it replaced by what `wanted` has at that place."""
    if pa.types.is_null(found):
        return wanted
    if pa.types.is_struct(found) and pa.types.is_struct(wanted):
        fields = []
        for field in found:
            index = wanted.get_field_index(field.name)
            fields.append(field if index < 0 else field.with_type(complete(field.type, wanted.field(index).type)))
        return pa.struct(fields)
    if pa.types.is_list(found) and hasattr(wanted, "value_field"):
        return pa.list_(found.value_field.with_type(complete(found.value_type, wanted.value_type)))
    return found


def refuse_single(value: Any) -> None:
    """ValueError when `value` is one row instead of a list of rows."""
    if isinstance(value, dict):
        raise InvalidInputError(ONE_DICT)
    if is_model(value):
        raise InvalidInputError(ONE_MODEL)
