"""Query builders, sync and async.

Builders gather options and return themselves; `to_arrow` and its kin carry the query out. A search without an index is exact, so
`nprobes`, `refine_factor` and `ef` are checked as in LanceDB and change nothing.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Dict, List, Literal, Optional, Type, TypeVar, Union

from . import _handle, _not_built
from ._full_text import (
    BooleanQuery,
    BoostQuery,
    DocumentGranularity,
    FullTextOperator,
    FullTextQuery,
    FullTextQueryType,
    FullTextSearchQuery,
    MatchQuery,
    MultiMatchQuery,
    Occur,
    PhraseQuery,
)
from ._lazy import lazy, np, pa
from ._order import check_ordering
from ._plan import Plan, check_count, prepare_queries, query_width
from ._query_async import (
    AsyncQuery,
    AsyncQueryBase,
    AsyncStandardQuery,
    AsyncTakeQuery,
    AsyncVectorQuery,
    AsyncVectorQueryBase,
)
from ._query_common import (
    ColumnOrdering,
    Query,
    Take,
    positive_nprobes,
    to_frame,
    to_models,
    to_polars_frame,
    vector_column_for,
    vector_query,
)
from ._unsupported import not_built, refuse
from .exceptions import InvalidInputError, InvalidTypeError
from .types import BlobMode

if TYPE_CHECKING:
    import sys

    import pandas as pd
    import polars as pl
    import pyarrow

    from .common import VEC
    from .pydantic import LanceModel
    from .table import Table

    if sys.version_info >= (3, 11):
        from typing import Self
    else:
        from typing_extensions import Self

_blob = lazy("_blob")
T = TypeVar("T", bound="LanceModel")

__all__ = [
    "AsyncQuery",
    "AsyncQueryBase",
    "AsyncStandardQuery",
    "AsyncTakeQuery",
    "AsyncVectorQuery",
    "AsyncVectorQueryBase",
    "BooleanQuery",
    "BoostQuery",
    "ColumnOrdering",
    "DocumentGranularity",
    "FullTextOperator",
    "FullTextQuery",
    "FullTextQueryType",
    "FullTextSearchQuery",
    "LanceEmptyQueryBuilder",
    "LanceQueryBuilder",
    "LanceTakeQueryBuilder",
    "LanceVectorQueryBuilder",
    "MatchQuery",
    "MultiMatchQuery",
    "Occur",
    "PhraseQuery",
    "Query",
    "ensure_vector_query",
]


__getattr__ = _not_built.missing_names(__name__)


def ensure_vector_query(val: Any) -> Any:
    """`val`, a vector or a list of vectors. ValueError when it is an empty list, or a list of one."""
    inner = val
    while isinstance(inner, (list, tuple)):
        if not inner:
            raise InvalidInputError("Vector query must be a non-empty list")
        inner = inner[0]
    return val


class LanceQueryBuilder(ABC):
    """What all sync query builders share. Made by `Table.search`."""

    @classmethod
    def create(
        cls,
        table: "Table",
        query: Any,
        query_type: str,
        vector_column_name: Optional[str],
        ordering_field_name: Optional[str] = None,
        fts_columns: Optional[Union[str, List[str]]] = None,
        fast_search: Optional[bool] = None,
    ) -> "LanceQueryBuilder":
        """The builder for what `query` is: a vector (or several) or None for a plain scan."""
        if query_type == "hybrid":
            raise refuse("hybrid search")
        if query is None:
            return LanceEmptyQueryBuilder(table)
        if query_type == "fts":
            if not isinstance(query, str):
                raise InvalidTypeError(f"'fts' query must be a string or FullTextQuery: {type(query)}")
            raise refuse("full text search")
        if query_type not in ("auto", "vector"):
            raise InvalidInputError(f"Invalid query_type, must be 'vector', 'fts', or 'auto': {query_type}")
        if isinstance(query, (list, tuple, np.ndarray, pa.Array, pa.ChunkedArray)):
            return LanceVectorQueryBuilder(table, query, vector_column_name)
        column, function = _handle.embedding_for(table._inner, vector_column_name)
        if function is not None:
            vector = function.compute_query_embeddings_with_retry(query)[0]
            return LanceVectorQueryBuilder(table, vector, column, query if isinstance(query, str) else None)
        if query_type == "vector":
            raise InvalidInputError(f"No embedding function for {vector_column_name or 'vector'}")
        if isinstance(query, str):
            raise refuse("full text search")
        raise InvalidTypeError(f"Unsupported query type: {type(query)}")

    def __init__(self, table: "Table"):
        self._table = table
        self._plan = Plan(table._inner)

    @property
    def _where(self) -> Optional[str]:
        """The conditions so far."""
        return self._plan.filter

    def limit(self, limit: Union[int, None]) -> "Self":
        """At most `limit` rows. None or a number <= 0 takes the limit away: all rows."""
        self._plan.limit = None if limit is None or limit <= 0 else check_count("limit", limit)
        return self

    def offset(self, offset: int) -> "Self":
        """Leaves out the first `offset` rows of the ordered result. None: none is left out; ValueError for a negative number."""
        self._plan.offset = None if offset is None else check_count("offset", offset)
        return self

    def select(self, columns: Union[List[str], Dict[str, str]]) -> "Self":
        """The columns of the result: a list of names or paths, or a dict from output name to SQL expression.

        ValueError for any other type, and for a name that comes twice.
        """
        if not isinstance(columns, (list, dict)):
            raise InvalidTypeError("columns must be a list or a dictionary")
        self._plan.select(columns)
        return self

    def where(self, where: str, prefilter: bool = True) -> "Self":
        """Only rows for which the SQL predicate is true. Repeated calls must all hold: `(a) AND (b)`."""
        self._plan.where(where)
        if prefilter is False:
            self._plan.postfilter = True
        elif prefilter is True and self._plan.postfilter is not None:
            self._plan.postfilter = False
        return self

    def with_row_id(self, with_row_id: bool) -> "Self":
        """Adds the column `_rowid` (uint64) at the end."""
        self._plan.with_row_id = bool(with_row_id)
        return self

    def with_row_address(self, with_row_address: bool = True) -> "Self":
        """Adds the column `_rowaddr` (uint64): fragment number in the upper half, position in the lower."""
        self._plan.with_row_address = bool(with_row_address)
        return self

    def fragment_ids(self, fragment_ids: List[int]) -> "Self":
        """Reads only these fragments of the table (scans only)."""
        self._plan.fragment_ids = [check_count("fragment id", i) for i in fragment_ids]
        return self

    def order_by(self, ordering: Optional[List[ColumnOrdering]]) -> "Self":
        """Sorts the rows by these columns, the first one deciding most; of a search: the nearest rows. None: as they come."""
        self._plan.ordering = check_ordering(ordering)
        return self

    def use_lsm(self, enable: bool) -> "Self":
        """False: the base table alone, without the fresh rows of an LSM write path. True: ValueError when there is none."""
        self._plan.set_use_lsm(enable)
        return self

    def with_fragments(self, fragments: Any) -> "Self":
        """Reads only these fragments (`glaive.lance.LanceFragment`) of the table (scans only)."""
        self._plan.with_fragments(fragments)
        return self

    def rerank(self, reranker: Any, query_string: Optional[str] = None) -> "Self":
        """Not supported yet."""
        raise refuse(f"{type(self).__name__}.rerank")

    def text(self, text: str) -> "Self":
        """Not supported yet."""
        raise refuse(f"{type(self).__name__}.text")

    def vector(self, vector: Any) -> "Self":
        """Not supported yet."""
        raise refuse(f"{type(self).__name__}.vector")

    def analyze_plan(self, distributed_metrics: Literal["aggregate", "per_worker", "full"] = "aggregate") -> str:
        """The steps of the plan as text, after carrying it out: with the time it took and the rows that came out."""
        return self._plan.analyze()

    @abstractmethod
    def to_query_object(self) -> Query:
        """The options gathered so far."""

    def to_arrow(self, *, timeout: Optional[timedelta] = None) -> "pyarrow.Table":
        """The result as a `pa.Table`. A query that takes longer than `timeout` raises RuntimeError "Query timeout"."""
        return self._plan.to_table(timeout)

    def to_batches(
        self, /, batch_size: Optional[int] = None, *, timeout: Optional[timedelta] = None
    ) -> "pyarrow.RecordBatchReader":
        """The result as a reader whose batches have at most `batch_size` rows; a scan streams."""
        return self._plan.to_reader(batch_size, timeout)

    def to_list(self, *, timeout: Optional[timedelta] = None) -> List[dict]:
        """The result as one dict per row."""
        return self.to_arrow(timeout=timeout).to_pylist()

    def to_pandas(
        self,
        flatten: Optional[Union[int, bool]] = None,
        *,
        blob_mode: BlobMode = "lazy",
        timeout: Optional[timedelta] = None,
        **kwargs,
    ) -> "pd.DataFrame":
        """The result as a pandas frame; `kwargs` go to `pa.Table.to_pandas`.

        `flatten`: True spreads structs into columns "a.b", a positive number so many levels of them. ValueError otherwise.
        """
        _blob.validate_blob_mode(blob_mode)
        if _blob.plan_shows_blobs(self._plan):
            return _blob.plan_frame(self._plan, blob_mode, flatten, timeout, kwargs)
        return to_frame(self.to_arrow(timeout=timeout), flatten, kwargs)

    def to_df(self) -> "pd.DataFrame":
        """Old name of `to_pandas`."""
        import warnings

        warnings.warn("to_df is deprecated, use to_pandas", DeprecationWarning, stacklevel=2)
        return self.to_pandas()

    def to_polars(self, *, timeout: Optional[timedelta] = None) -> "pl.DataFrame":
        """The result as a Polars frame."""
        return to_polars_frame(self.to_arrow(timeout=timeout))

    def to_pydantic(self, model: Type[T], *, timeout: Optional[timedelta] = None) -> List[T]:
        """The result as one object of `model` per row."""
        return to_models(self.to_arrow(timeout=timeout), model)

    def output_schema(self) -> "pyarrow.Schema":
        """The schema of the result, without running the query."""
        return self._plan.output_schema()

    def explain_plan(self, verbose: Optional[bool] = False) -> str:
        """The steps that the query takes, as text."""
        return self._plan.explain()


class LanceEmptyQueryBuilder(LanceQueryBuilder):
    """A plain scan: all rows in insertion order, filtered and limited as asked."""

    def to_batches(
        self, /, batch_size: Optional[int] = None, timeout: Optional[timedelta] = None
    ) -> "pyarrow.RecordBatchReader":
        """The rows as a reader whose batches have at most `batch_size` rows; it streams."""
        return self._plan.to_reader(batch_size, timeout)

    def to_query_object(self) -> Query:
        """The options gathered so far."""
        plan = self._plan
        return Query(
            filter=plan.filter,
            limit=plan.limit,
            offset=plan.offset,
            columns=plan.columns,
            with_row_id=plan.with_row_id or None,
            with_row_address=plan.with_row_address or None,
            fragment_ids=plan.fragment_ids,
            order_by=plan.ordering,
        )


class LanceVectorQueryBuilder(LanceQueryBuilder):
    """The nearest neighbours of one vector or of each of several: by `_distance`, ascending; 10 unless `limit` says otherwise.

    ValueError when the query is empty or no vector of numbers, or no single column fits it.
    """

    def __init__(
        self,
        table: "Table",
        query: "VEC",
        vector_column: Optional[str],
        str_query: Optional[str] = None,
        fast_search: Optional[bool] = None,
    ):
        super().__init__(table)
        plan = self._plan
        plan.fast_search = bool(fast_search) or None
        plan.queries, plan.batch = prepare_queries(query)
        plan.column = vector_column_for(plan.table, vector_column, query_width(plan.queries))

    def limit(self, limit: Union[int, None]) -> "Self":
        """At most `limit` rows (for each query vector). ValueError for None or a number <= 0."""
        if limit is None or limit <= 0:
            raise InvalidInputError("Limit is required for ANN/KNN queries")
        self._plan.limit = check_count("limit", limit)
        return self

    def where(self, where: str, prefilter: Optional[bool] = None) -> "LanceVectorQueryBuilder":
        """Only rows for which the predicate is true; repeated calls must all hold.

        prefilter=True (the default): the nearest of the rows that pass. False: those that pass of the nearest, maybe fewer.
        """
        super().where(where, prefilter)  # type: ignore[arg-type]
        return self

    def metric(self, metric: Literal["l2", "cosine", "dot"]) -> "LanceVectorQueryBuilder":
        """Same as `distance_type`."""
        return self.distance_type(metric)

    def distance_type(self, distance_type: Literal["l2", "cosine", "dot"]) -> "LanceVectorQueryBuilder":
        """How vectors are compared: "l2" (squared Euclidean; default), "cosine", "dot", or "hamming" for uint8 vectors.

        Any other name raises ValueError when the query runs.
        """
        self._plan.metric = distance_type.lower()
        return self

    def distance_range(
        self, lower_bound: Optional[float] = None, upper_bound: Optional[float] = None
    ) -> "LanceVectorQueryBuilder":
        """Only rows with lower_bound <= distance < upper_bound."""
        self._plan.distance_range(lower_bound, upper_bound)
        return self

    def nprobes(self, nprobes: int) -> "LanceVectorQueryBuilder":
        """Partitions of an index to look into. No effect on an exact search."""
        self._plan.minimum_nprobes = self._plan.maximum_nprobes = check_count("nprobes", nprobes)
        return self

    def minimum_nprobes(self, minimum_nprobes: int) -> "LanceVectorQueryBuilder":
        """Least number of partitions. ValueError, when the query runs, unless it is at least 1 and at most the maximum."""
        self._plan.minimum_nprobes = positive_nprobes(minimum_nprobes)
        return self

    def maximum_nprobes(self, maximum_nprobes: int) -> "LanceVectorQueryBuilder":
        """Greatest number of partitions, 0 for no bound. ValueError, when the query runs, if below the minimum."""
        self._plan.maximum_nprobes = check_count("maximum_nprobes", maximum_nprobes)
        return self

    def refine_factor(self, refine_factor: int) -> "LanceVectorQueryBuilder":
        """Candidates per row when an index is approximate. No effect on an exact search."""
        self._plan.refine_factor = check_count("refine_factor", refine_factor)
        return self

    def ef(self, ef: int) -> "LanceVectorQueryBuilder":
        """Candidates that a graph index keeps. No effect on an exact search."""
        self._plan.ef = check_count("ef", ef)
        return self

    def bypass_vector_index(self) -> "LanceVectorQueryBuilder":
        """Exact search also where there is an index."""
        self._plan.bypass_vector_index = True
        return self

    def fast_search(self) -> "LanceVectorQueryBuilder":
        """Leaves rows out that are in no index; without an index the result is empty. NotImplementedError when there is one."""
        self._plan.fast_search = True
        return self

    def to_query_object(self) -> Query:
        """The options gathered so far."""
        query = vector_query(self._plan)
        query.vector = self._plan.queries.tolist()
        return query


@not_built("fragment_ids", "with_fragments")
class LanceTakeQueryBuilder(Take):
    """Rows by position or by row id, in the table's order. Made by `Table.take_offsets` and `Table.take_row_ids`."""

    def __init__(self, inner: "Union[AsyncTakeQuery, Plan]"):
        self._plan = inner if isinstance(inner, Plan) else inner._plan

    def to_arrow(self, timeout: Optional[timedelta] = None) -> "pyarrow.Table":
        """The rows as a `pa.Table`."""
        return self._plan.to_table(timeout)

    def to_batches(
        self, *, max_batch_length: Optional[int] = None, timeout: Optional[timedelta] = None
    ) -> "pyarrow.RecordBatchReader":
        """The rows as a reader of batches."""
        return self._plan.to_reader(max_batch_length, timeout)

    def to_list(self, timeout: Optional[timedelta] = None) -> List[dict]:
        """The rows as dicts."""
        return self.to_arrow(timeout).to_pylist()

    def to_pandas(
        self,
        flatten: Optional[Union[int, bool]] = None,
        timeout: Optional[timedelta] = None,
        *,
        blob_mode: BlobMode = "lazy",
        **kwargs,
    ) -> "pd.DataFrame":
        """The rows as a pandas frame; see `LanceQueryBuilder.to_pandas`."""
        _blob.validate_blob_mode(blob_mode)
        if _blob.plan_shows_blobs(self._plan):
            return _blob.plan_frame(self._plan, blob_mode, flatten, timeout, kwargs)
        return to_frame(self.to_arrow(timeout), flatten, kwargs)

    def to_polars(self, timeout: Optional[timedelta] = None) -> "pl.DataFrame":
        """The rows as a Polars frame."""
        return to_polars_frame(self.to_arrow(timeout))

    def output_schema(self) -> "pyarrow.Schema":
        """The schema of the result."""
        return self._plan.output_schema()

    def explain_plan(self, verbose: Optional[bool] = False) -> str:
        """The steps of the plan as text."""
        return self._plan.explain()

    def analyze_plan(self, distributed_metrics: Literal["aggregate", "per_worker", "full"] = "aggregate") -> str:
        """The steps of the plan as text, after carrying it out."""
        return self._plan.analyze()


for _class in (
    AsyncQuery,
    AsyncQueryBase,
    AsyncStandardQuery,
    AsyncTakeQuery,
    AsyncVectorQuery,
    AsyncVectorQueryBase,
    BooleanQuery,
    BoostQuery,
    ColumnOrdering,
    DocumentGranularity,
    FullTextOperator,
    FullTextQuery,
    FullTextQueryType,
    FullTextSearchQuery,
    MatchQuery,
    MultiMatchQuery,
    Occur,
    PhraseQuery,
    Query,
):
    _class.__module__ = __name__  # this is where users find them
