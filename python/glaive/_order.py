"""Sorting the result of a query by columns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Iterable, List, Optional, Sequence

from ._lazy import pa, pc
from ._unsupported import refuse
from .exceptions import InvalidTypeError

if TYPE_CHECKING:
    import pyarrow

    from ._query_common import ColumnOrdering

# Rows that are held back at least before those that cannot be part of the result are dropped.
_HELD = 1 << 16


def check_ordering(ordering: Any) -> "Optional[List[ColumnOrdering]]":
    """A list of `ColumnOrdering`s (dicts with their fields will do), None for none; TypeError for anything else."""
    from ._query_common import ColumnOrdering

    if ordering is None:
        return None
    if not isinstance(ordering, (list, tuple)):
        raise InvalidTypeError(f"order_by takes a list of ColumnOrdering, not {ordering!r}")
    out = []
    for one in ordering:
        if isinstance(one, dict):
            one = ColumnOrdering(**one)
        if not hasattr(one, "column_name") or not isinstance(one.column_name, str):
            raise InvalidTypeError(f"order_by takes a list of ColumnOrdering, not one of {one!r}")
        out.append(one)
    return out or None


def describe(ordering: "Sequence[ColumnOrdering]") -> str:
    """"a ASC NULLS LAST, b DESC NULLS FIRST"."""
    return ", ".join(
        f"{o.column_name} {'ASC' if o.ascending else 'DESC'} NULLS {'FIRST' if o.nulls_first else 'LAST'}" for o in ordering
    )


def _order_of(table: "pyarrow.Table", ordering: "Sequence[ColumnOrdering]", positions: Sequence[int]) -> "pyarrow.Array":
    """Row numbers in the wanted order; rows that are equal keep theirs. NaN is greater than all numbers."""
    keys, names, sort = [], [], []

    def add(column, direction):
        names.append(str(len(names)))
        keys.append(column)
        sort.append((names[-1], direction))

    for one, position in zip(ordering, positions):
        column = table.column(position)
        kind = column.type
        if pa.types.is_dictionary(kind):
            column = column.cast(kind.value_type)
        elif pa.types.is_float16(kind):
            column = column.cast(pa.float32())
        elif pa.types.is_nested(kind) or isinstance(kind, pa.BaseExtensionType):
            raise refuse(f"sorting by column {one.column_name!r} of type {kind}")
        if column.null_count:
            add(column.is_null(), "descending" if one.nulls_first else "ascending")
        if pa.types.is_floating(column.type):
            add(pc.is_nan(column), "ascending" if one.ascending else "descending")
        if not pa.types.is_null(column.type):
            add(column, "ascending" if one.ascending else "descending")
    if not keys:
        return pa.array(range(table.num_rows), pa.int64())
    return pc.sort_indices(pa.Table.from_arrays(keys, names=names), sort_keys=sort)


def sorted_rows(
    schema: "pyarrow.Schema",
    batches: Iterable["pyarrow.RecordBatch"],
    ordering: "Sequence[ColumnOrdering]",
    positions: Sequence[int],
    limit: Optional[int] = None,
    offset: int = 0,
) -> "pyarrow.Table":
    """The rows of the batches, sorted by the columns at `positions`, from `offset` on, `limit` of them.

    With a limit only rows that may be part of the result are kept while the batches come.
    """
    wanted = None if limit is None else limit + offset
    held: List[Any] = []
    rows = 0

    def sort():
        table = pa.Table.from_batches(held, schema)
        order = _order_of(table, ordering, positions)
        return table.take(order if wanted is None else order[:wanted])

    for batch in batches:
        held.append(batch)
        rows += batch.num_rows
        if wanted is not None and rows > max(_HELD, 4 * wanted):
            # Sorted rows come before later ones that are equal to them, as they did in the table.
            held = sort().to_batches()
            rows = sum(batch.num_rows for batch in held)
    result = sort()
    return result.slice(offset, limit)
