"""`update`: what callers may pass, brought into the form that the engine takes."""

from __future__ import annotations

from datetime import date, time, timedelta
from decimal import Decimal
from typing import Any, Dict, List, Optional, Tuple

from . import _ingest
from ._lazy import np, pa
from ._plan import check_count
from ._results import UpdateResult
from ._sql import as_sql
from .exceptions import InvalidInputError, InvalidTypeError
from .util import value_to_sql


def check_where(where: Any) -> Optional[str]:
    """The text of a predicate; None for all rows."""
    if where is None:
        return None
    where = as_sql(where)
    if not isinstance(where, str):
        raise InvalidTypeError(f"a filter must be SQL text or an Expr, not {type(where).__name__}")
    if not where.strip():
        raise InvalidInputError("Invalid input, the filter is empty: an expression is expected")
    return where


def update(native, where, values, values_sql) -> UpdateResult:
    if values is None and values_sql is None:
        raise InvalidInputError("Either updates or updates_sql must be provided")
    if values is not None and values_sql is not None:
        raise InvalidInputError("Only one of updates or updates_sql can be provided")
    where = check_where(where)
    if values_sql is not None:
        expressions, literals = check_expressions(values_sql), None
        _ingest.check_not_computed(native.schema(), values_sql)
    else:
        schema = native.schema()
        expressions, literals = split_values(values, schema)
        _ingest.check_not_computed(schema, values)
    rows, version = native.update(where, expressions, literals)
    return UpdateResult(rows, version)


def check_expressions(values_sql: Any) -> List[Tuple[str, str]]:
    """Pairs of column and SQL text out of a dict."""
    if not hasattr(values_sql, "items"):
        raise InvalidTypeError(f"a dict of column -> SQL is expected, not {type(values_sql).__name__}")
    pairs = [(column, as_sql(sql)) for column, sql in values_sql.items()]
    for column, sql in pairs:
        if not isinstance(column, str) or not isinstance(sql, str):
            raise InvalidTypeError(f"a dict of column -> SQL text is expected, not {column!r}: {sql!r}")
    return pairs


def split_values(values: Any, schema) -> Tuple[List[Tuple[str, str]], Any]:
    """Values as a table of one row; those that their column's type does not take as they are become SQL literals, which are cast."""
    if not hasattr(values, "items"):
        raise InvalidTypeError(f"a dict of column -> value is expected, not {type(values).__name__}")
    expressions: List[Tuple[str, str]] = []
    arrays: Dict[str, Any] = {}
    for column, value in values.items():
        if not isinstance(column, str):
            raise InvalidTypeError(f"the name of a column is text, not {column!r}")
        index = schema.get_field_index(column)
        array = None if index < 0 else _as_array(_plain(value), schema.field(index).type)
        if array is not None:
            arrays[column] = array
            continue
        # As upstream: a literal, which is cast to the type of the column.
        expressions.append((column, value_to_sql(value)))
    return expressions, pa.table(arrays) if arrays else None


def _plain(value: Any) -> Any:
    """numpy and pyarrow values as those of Python, at every level of lists and dicts."""
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, np.generic):
        return value.item()
    if type(value).__module__.partition(".")[0] == "pyarrow" and hasattr(value, "as_py"):
        return value.as_py()
    if isinstance(value, (list, tuple)):
        return [_plain(v) for v in value]
    if isinstance(value, dict):
        return {k: _plain(v) for k, v in value.items()}
    return value


def _as_array(value: Any, wanted):
    """An array of one value of the type `wanted`, or None when Python's value is none of it."""
    if isinstance(wanted, pa.BaseExtensionType):
        wanted = wanted.storage_type
    if not _same_kind(value, wanted):
        return None
    if isinstance(value, dict) and not _members_known(value, wanted):
        return None
    try:
        if pa.types.is_dictionary(wanted):
            return pa.array([value], wanted.value_type).dictionary_encode().cast(wanted)
        return pa.array([value], wanted)
    except (pa.ArrowException, ValueError, TypeError, OverflowError):
        return None


def _same_kind(value: Any, wanted) -> bool:
    """False for values that Arrow would take as another kind than Python means: text as a list of letters, 1.5 as a date."""
    if value is None:
        return True
    if isinstance(value, (list, tuple, dict)):
        return pa.types.is_nested(wanted)
    if pa.types.is_nested(wanted):
        return False
    if isinstance(value, (bool, int, float)):
        return isinstance(value, float) == pa.types.is_floating(wanted) and not pa.types.is_temporal(wanted)
    if isinstance(value, Decimal):
        return pa.types.is_decimal(wanted) or pa.types.is_floating(wanted)
    return isinstance(value, (str, bytes, bytearray, date, time, timedelta))


def _members_known(value: dict, wanted) -> bool:
    """False when Arrow would drop members that the type does not have."""
    if not pa.types.is_struct(wanted):
        return True
    return all(wanted.get_field_index(name) >= 0 for name in value)


def check_retries(conflict_retries: Any) -> int:
    """How often to run again after a conflict; OverflowError for a negative number."""
    return check_count("conflict_retries", conflict_retries, 2**31 - 1)


def seconds(duration: Any, name: str) -> Optional[float]:
    """A timedelta in seconds; None stays None."""
    if duration is None:
        return None
    if not isinstance(duration, timedelta):
        raise InvalidTypeError(f"{name} must be a timedelta, not {type(duration).__name__}")
    if duration < timedelta(0):
        raise InvalidInputError(f"{name} must not be negative, but is {duration}")
    return duration.total_seconds()
