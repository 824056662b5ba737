"""What sync and async query builders share: the options they report, ways to convert results, takes."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, Dict, Iterator, List, Optional, Tuple, Union

from ._plan import Plan, check_count
from .exceptions import InvalidInputError, InvalidTypeError
from .util import MANY_VECTOR_COLUMNS, NO_VECTOR_COLUMN, flatten_columns, vector_column_paths

if TYPE_CHECKING:
    import sys

    import pandas as pd
    import polars as pl
    import pyarrow as pa

    if sys.version_info >= (3, 11):
        from typing import Self
    else:
        from typing_extensions import Self

class _Options:
    """What options have in common with pydantic models, whose methods programs call on them."""

    def __iter__(self) -> Iterator[Tuple[str, Any]]:
        """(name, value) of each option."""
        return iter([(field.name, getattr(self, field.name)) for field in fields(self)])  # type: ignore[arg-type]

    def model_dump(self, *, exclude_none: bool = False) -> Dict[str, Any]:
        """The options as a dict; `exclude_none` leaves out those that are not set."""

        def plain(value):
            if isinstance(value, _Options):
                return value.model_dump(exclude_none=exclude_none)
            return [plain(v) for v in value] if isinstance(value, list) else value

        return {name: plain(value) for name, value in self if value is not None or not exclude_none}

    def model_copy(self, *, update: Optional[Dict[str, Any]] = None):
        """The same options, changed as `update` says."""
        return replace(self, **(update or {}))  # type: ignore[type-var]

    def copy(self, *, update: Optional[Dict[str, Any]] = None):
        """Same as `model_copy`."""
        return self.model_copy(update=update)

    def dict(self, *, exclude_none: bool = False) -> Dict[str, Any]:
        """Same as `model_dump`."""
        return self.model_dump(exclude_none=exclude_none)


@dataclass(frozen=True)
class ColumnOrdering(_Options):
    """One column of a sort order."""

    column_name: str
    ascending: bool = True
    nulls_first: bool = False


@dataclass
class Query(_Options):
    """The options of a query, as `to_query_object` reports them. None: not set."""

    vector_column: Optional[str] = None
    vector: Any = None
    filter: Optional[str] = None
    postfilter: Optional[bool] = None
    full_text_query: Optional[Any] = None
    limit: Optional[int] = None
    distance_type: Optional[str] = None
    columns: Optional[Union[List[str], Dict[str, str]]] = None
    minimum_nprobes: Optional[int] = None
    maximum_nprobes: Optional[int] = None
    lower_bound: Optional[float] = None
    upper_bound: Optional[float] = None
    refine_factor: Optional[int] = None
    with_row_id: Optional[bool] = None
    with_row_address: Optional[bool] = None
    fragments: Optional[Any] = None
    fragment_ids: Optional[List[int]] = None
    offset: Optional[int] = None
    take_offsets: Optional[List[int]] = None
    fast_search: Optional[bool] = None
    use_lsm: Optional[bool] = None
    ef: Optional[int] = None
    bypass_vector_index: Optional[bool] = None
    order_by: Optional[List[ColumnOrdering]] = None

# --- results ------------------------------------------------------------------------------------------------


def to_frame(table, flatten, kwargs) -> "pd.DataFrame":
    return flatten_columns(table, flatten).to_pandas(**kwargs)


def to_polars_frame(table) -> "pl.DataFrame":
    import polars

    return polars.from_arrow(table)


def to_models(table, model):
    from .pydantic import model_from_row

    return [model_from_row(model, row) for row in table.to_pylist()]


def vector_column_for(table, column: Optional[str], width: Optional[int]) -> str:
    """The vector column that a search means; ValueError with the candidates when there is none or more than one."""
    if column is not None:
        return column
    try:
        return table.infer_vector_column(width)
    except ValueError:
        candidates = vector_column_paths(table.schema(), width)
        if not candidates:
            raise InvalidInputError(NO_VECTOR_COLUMN) from None
        if len(candidates) > 1:
            raise InvalidInputError(f"{MANY_VECTOR_COLUMNS} Candidates: {candidates}") from None
        raise


def positive_nprobes(value: int) -> int:
    value = check_count("minimum_nprobes", value)
    if value == 0:
        raise InvalidInputError("minimum_nprobes must be greater than 0")
    return value


def vector_query(plan: Plan) -> Query:
    return Query(
        vector_column=plan.column,
        filter=plan.filter,
        postfilter=plan.postfilter,
        limit=plan.limit,
        distance_type=plan.metric,
        columns=plan.columns,
        minimum_nprobes=plan.minimum_nprobes,
        maximum_nprobes=plan.maximum_nprobes,
        lower_bound=plan.lower_bound,
        upper_bound=plan.upper_bound,
        refine_factor=plan.refine_factor,
        with_row_id=plan.with_row_id or None,
        with_row_address=plan.with_row_address or None,
        offset=plan.offset,
        ef=plan.ef,
        bypass_vector_index=plan.bypass_vector_index,
        fast_search=plan.fast_search,
        order_by=plan.ordering,
    )


class Take:
    """What sync and async takes share."""

    _plan: Plan

    def select(self, columns: Union[List[str], Dict[str, str]]) -> "Self":
        """The columns of the result: a list of names or a dict from output name to SQL expression. TypeError otherwise."""
        if not isinstance(columns, (list, dict)):
            raise InvalidTypeError("columns must be a list of column names or a dict")
        self._plan.select(columns)
        return self

    def with_row_id(self) -> "Self":
        """Adds the column `_rowid` (uint64)."""
        self._plan.with_row_id = True
        return self

    def with_row_address(self, with_row_address: bool = True) -> "Self":
        """Adds the column `_rowaddr` (uint64)."""
        self._plan.with_row_address = bool(with_row_address)
        return self

    def use_lsm(self, enable: bool) -> "Self":
        """False: the base table alone, without the fresh rows of an LSM write path. True: ValueError when there is none."""
        self._plan.set_use_lsm(enable)
        return self

    def to_query_object(self) -> Query:
        """The options gathered so far."""
        plan = self._plan
        meta, values = ("_rowoffset", plan.offsets) if plan.offsets is not None else ("_rowid", plan.row_ids)
        return Query(
            filter=f"{meta} IN ({', '.join(map(str, values))})",
            columns=plan.columns,
            with_row_id=plan.with_row_id,
            take_offsets=plan.offsets,
        )
