"""Async query builders; see query.py."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any, Dict, List, Literal, Optional, Tuple, Type, TypeVar, Union

from . import _pool
from ._lazy import lazy, pa
from ._order import check_ordering
from ._plan import DEFAULT_LIMIT, DEFAULT_NPROBES, Plan, check_count, check_metric, prepare_queries
from ._query_common import (
    ColumnOrdering,
    Query,
    Take,
    positive_nprobes,
    to_frame,
    to_models,
    to_polars_frame,
    vector_query,
)
from ._unsupported import not_built, refuse
from .arrow import AsyncRecordBatchReader
from .exceptions import InvalidInputError, InvalidTypeError
from .types import BlobMode

if TYPE_CHECKING:
    import sys

    import pandas as pd
    import polars as pl
    import pyarrow

    from .common import VEC
    from .pydantic import LanceModel
    from .table import AsyncTable

    if sys.version_info >= (3, 11):
        from typing import Self
    else:
        from typing_extensions import Self

_blob = lazy("_blob")
T = TypeVar("T", bound="LanceModel")


class AsyncQueryBase:
    """What all async query builders share: the ways to get the result."""

    _plan: Plan

    def __init__(self, inner: Plan, table: "Optional[AsyncTable]" = None):
        self._plan = inner
        self._table = table

    def select(self, columns: Union[List[str], Dict[str, str]]) -> "Self":
        """The columns of the result: a list of names or paths, or a dict from output name to SQL expression."""
        if not isinstance(columns, (list, dict)):
            raise InvalidTypeError("columns must be a list of column names or a dict")
        self._plan.select(columns)
        return self

    def with_row_id(self) -> "Self":
        """Adds the column `_rowid` (uint64) at the end."""
        self._plan.with_row_id = True
        return self

    def with_row_address(self, with_row_address: bool = True) -> "Self":
        """Adds the column `_rowaddr` (uint64)."""
        self._plan.with_row_address = bool(with_row_address)
        return self

    def fragment_ids(self, fragment_ids: List[int]) -> "Self":
        """Reads only these fragments of the table (scans only)."""
        self._plan.fragment_ids = [check_count("fragment id", i) for i in fragment_ids]
        return self

    def with_fragments(self, fragments: Any) -> "Self":
        """Reads only these fragments (`glaive.lance.LanceFragment`) of the table (scans only)."""
        self._plan.with_fragments(fragments)
        return self

    async def to_arrow(self, timeout: Optional[timedelta] = None) -> "pyarrow.Table":
        """The result as a `pa.Table`. RuntimeError "Query timeout" when it takes longer than `timeout`."""
        return await _pool.run_cancellable(self._plan.copy().to_table, timeout)

    async def to_batches(
        self, *, max_batch_length: Optional[int] = None, timeout: Optional[timedelta] = None
    ) -> AsyncRecordBatchReader:
        """The result as an async iterator over batches of at most `max_batch_length` rows."""
        return AsyncRecordBatchReader(await _pool.run(self._plan.copy().to_reader, max_batch_length, timeout))

    async def to_list(self, timeout: Optional[timedelta] = None) -> List[dict]:
        """The result as one dict per row."""
        return (await self.to_arrow(timeout)).to_pylist()

    async def to_pandas(
        self,
        flatten: Optional[Union[int, bool]] = None,
        timeout: Optional[timedelta] = None,
        *,
        blob_mode: BlobMode = "lazy",
        **kwargs,
    ) -> "pd.DataFrame":
        """The result as a pandas frame; see `LanceQueryBuilder.to_pandas`."""
        _blob.validate_blob_mode(blob_mode)
        if await _pool.run(_blob.plan_shows_blobs, self._plan):
            return await _pool.run(_blob.plan_frame, self._plan.copy(), blob_mode, flatten, timeout, kwargs)
        return to_frame(await self.to_arrow(timeout), flatten, kwargs)

    async def to_polars(self, timeout: Optional[timedelta] = None) -> "pl.DataFrame":
        """The result as a Polars frame."""
        return to_polars_frame(await self.to_arrow(timeout))

    async def to_pydantic(self, model: "Type[T]", *, timeout: Optional[timedelta] = None) -> "List[T]":
        """The result as one object of `model` per row."""
        return to_models(await self.to_arrow(timeout), model)

    async def output_schema(self) -> "pyarrow.Schema":
        """The schema of the result, without running the query."""
        return await _pool.run(self._plan.output_schema)

    async def explain_plan(self, verbose: Optional[bool] = False) -> str:
        """The steps of the plan as text."""
        return await _pool.run(self._plan.explain)

    async def analyze_plan(self, distributed_metrics: Literal["aggregate", "per_worker", "full"] = "aggregate") -> str:
        """The steps of the plan as text, after carrying it out: with the time it took and the rows that came out."""
        return await _pool.run(self._plan.copy().analyze)

    def to_query_object(self) -> Query:
        """The options gathered so far."""
        plan = self._plan
        return Query(
            filter=plan.filter,
            limit=plan.limit,
            offset=plan.offset,
            columns=plan.columns,
            with_row_id=plan.with_row_id,
            order_by=plan.ordering,
        )


class AsyncStandardQuery(AsyncQueryBase):
    """Filters, limits and order, for scans and searches."""

    def where(self, predicate: str) -> "Self":
        """Only rows for which the SQL predicate is true; repeated calls must all hold."""
        self._plan.where(predicate)
        return self

    def limit(self, limit: int) -> "Self":
        """At most `limit` rows. TypeError for no integer, OverflowError for a negative one."""
        self._plan.limit = check_count("limit", limit)
        return self

    def offset(self, offset: int) -> "Self":
        """Leaves out the first `offset` rows."""
        self._plan.offset = check_count("offset", offset)
        return self

    def postfilter(self) -> "Self":
        """Filters the nearest rows instead of searching among the rows that pass; only searches differ."""
        self._plan.postfilter = True
        return self

    def order_by(self, ordering: Optional[List[ColumnOrdering]]) -> "Self":
        """Sorts the rows by these columns; see `LanceQueryBuilder.order_by`."""
        self._plan.ordering = check_ordering(ordering)
        return self

    def fast_search(self) -> "Self":
        """Leaves rows out that are in no index; without an index a search finds nothing."""
        self._plan.fast_search = True
        return self

    def use_lsm(self, enable: bool) -> "Self":
        """False: the base table alone, without the fresh rows of an LSM write path. True: ValueError when there is none."""
        self._plan.set_use_lsm(enable)
        return self


class AsyncQuery(AsyncStandardQuery):
    """A plain scan, and the start of searches. Made by `AsyncTable.query`."""

    def nearest_to(self, query_vector: "Union[VEC, Tuple, List[VEC]]") -> "AsyncVectorQuery":
        """The rows nearest to the vector, or to each of several vectors. ValueError for None and for no vector of numbers."""
        if query_vector is None:
            raise InvalidInputError("query_vector can not be None")
        plan = self._plan.copy()
        plan.queries, plan.batch = prepare_queries(query_vector)
        return AsyncVectorQuery(plan, self._table)

    def nearest_to_text(self, query: str, columns: Union[str, List[str], None] = None):
        """Not supported yet."""
        raise refuse("AsyncQuery.nearest_to_text")


class AsyncVectorQueryBase:
    """The options of vector searches."""

    _plan: Plan

    def column(self, column: str) -> "Self":
        """The vector column to search; needed when more than one fits."""
        if not isinstance(column, str):
            raise InvalidTypeError(f"a column is named by text, not {column!r}")
        self._plan.column = column
        return self

    def distance_type(self, distance_type: str) -> "Self":
        """"l2" (default), "cosine", "dot" or "hamming"; ValueError otherwise."""
        self._plan.metric = check_metric(distance_type)
        return self

    def distance_range(self, lower_bound: Optional[float] = None, upper_bound: Optional[float] = None) -> "Self":
        """Only rows with lower_bound <= distance < upper_bound."""
        self._plan.distance_range(lower_bound, upper_bound)
        return self

    def nprobes(self, nprobes: int) -> "Self":
        """Partitions of an index to look into. No effect on an exact search."""
        self._plan.minimum_nprobes = self._plan.maximum_nprobes = check_count("nprobes", nprobes)
        return self

    def minimum_nprobes(self, minimum_nprobes: int) -> "Self":
        """Least number of partitions; ValueError unless at least 1 and at most the maximum (20 unless set)."""
        return self._set_nprobes(minimum=positive_nprobes(minimum_nprobes))

    def maximum_nprobes(self, maximum_nprobes: int) -> "Self":
        """Greatest number of partitions, 0 for no bound; ValueError below the minimum (20 unless set)."""
        return self._set_nprobes(maximum=check_count("maximum_nprobes", maximum_nprobes))

    def _set_nprobes(self, minimum=None, maximum=None) -> "Self":
        plan = self._plan.copy()
        if minimum is not None:
            plan.minimum_nprobes = minimum
        if maximum is not None:
            plan.maximum_nprobes = maximum
        plan.check_nprobes()
        self._plan.minimum_nprobes, self._plan.maximum_nprobes = plan.minimum_nprobes, plan.maximum_nprobes
        return self

    def refine_factor(self, refine_factor: int) -> "Self":
        """Candidates per row when an index is approximate. No effect on an exact search."""
        self._plan.refine_factor = check_count("refine_factor", refine_factor)
        return self

    def ef(self, ef: int) -> "Self":
        """Candidates that a graph index keeps. No effect on an exact search."""
        self._plan.ef = check_count("ef", ef)
        return self

    def bypass_vector_index(self) -> "Self":
        """Exact search also where there is an index."""
        self._plan.bypass_vector_index = True
        return self


class AsyncVectorQuery(AsyncStandardQuery, AsyncVectorQueryBase):
    """The nearest neighbours of one vector or of each of several: by `_distance`, ascending; 10 unless `limit` says otherwise."""

    def nearest_to_text(self, query: str, columns: Union[str, List[str], None] = None):
        """Not supported yet."""
        raise refuse("AsyncVectorQuery.nearest_to_text")

    def rerank(self, reranker: Any = None, query_string: Optional[str] = None):
        """Not supported yet."""
        raise refuse("AsyncVectorQuery.rerank")

    def to_query_object(self) -> Query:
        """The options gathered so far."""
        query = vector_query(self._plan)
        vectors = self._plan.queries if self._plan.batch else [self._plan.queries]
        query.vector = [pa.array(vector) for vector in vectors]
        query.limit = DEFAULT_LIMIT if query.limit is None else query.limit
        query.postfilter = bool(query.postfilter)
        query.with_row_id = self._plan.with_row_id
        query.bypass_vector_index = bool(query.bypass_vector_index)
        query.minimum_nprobes = DEFAULT_NPROBES if query.minimum_nprobes is None else query.minimum_nprobes
        query.maximum_nprobes = DEFAULT_NPROBES if query.maximum_nprobes is None else query.maximum_nprobes
        return query


@not_built("fragment_ids", "with_fragments")
class AsyncTakeQuery(Take, AsyncQueryBase):
    """Rows by position or by row id, in the table's order. Made by `AsyncTable.take_offsets` and `AsyncTable.take_row_ids`."""
