"""What a query builder has gathered, and how it is carried out.

Sync and async builders fill in the same `Plan`; each of its executing methods makes one blocking engine call.
"""

from __future__ import annotations

import time
from datetime import timedelta
from typing import TYPE_CHECKING, Any, List, Optional

from ._glaive import format_field_path
from ._lazy import np, pa
from ._order import describe, sorted_rows
from ._sql import as_sql
from ._unsupported import refuse
from .exceptions import InvalidInputError, InvalidTypeError, NotFoundError, OutOfRangeError, QueryTimeoutError

if TYPE_CHECKING:
    import pyarrow

METRICS = ("l2", "cosine", "dot", "hamming")
DEFAULT_LIMIT = 10
DEFAULT_NPROBES = 20
_U32 = 2**32 - 1
_DISTANCE = "_distance"
_QUERY_INDEX = "query_index"


class Plan:
    """A read of one table: a scan, a vector search (when `queries` is set) or a take (`offsets` or `row_ids`)."""

    __slots__ = (
        "table",
        "queries",
        "batch",
        "column",
        "columns",
        "filter",
        "limit",
        "offset",
        "with_row_id",
        "with_row_address",
        "fragment_ids",
        "metric",
        "postfilter",
        "lower_bound",
        "upper_bound",
        "minimum_nprobes",
        "maximum_nprobes",
        "refine_factor",
        "ef",
        "bypass_vector_index",
        "fast_search",
        "ordering",
        "offsets",
        "row_ids",
        "use_lsm",
    )

    def __init__(self, table):
        self.table = table
        self.queries = self.column = self.columns = self.filter = self.limit = self.offset = None
        self.with_row_id = self.with_row_address = self.batch = False
        self.fragment_ids = self.metric = self.postfilter = self.lower_bound = self.upper_bound = None
        self.minimum_nprobes = self.maximum_nprobes = self.refine_factor = self.ef = None
        self.bypass_vector_index = self.fast_search = self.ordering = self.offsets = self.row_ids = None
        self.use_lsm = None

    def copy(self) -> "Plan":
        other = Plan.__new__(Plan)
        for name in Plan.__slots__:
            setattr(other, name, getattr(self, name))
        return other

    # --- options with rules ---

    def select(self, columns) -> None:
        """A list of column paths or a dict from output name to expression; an empty one means all columns."""
        if isinstance(columns, (list, tuple)):
            if not all(isinstance(c, str) for c in columns):
                raise InvalidTypeError("columns must be a list of names")
            if len(set(columns)) != len(columns):
                twice = sorted({c for c in columns if columns.count(c) > 1})
                raise InvalidInputError(f"Duplicate column name: {', '.join(twice)}")
        else:
            columns = {name: as_sql(expression) for name, expression in columns.items()}
            for name, expression in columns.items():
                if not isinstance(name, str) or not isinstance(expression, str):
                    raise InvalidTypeError(f"columns must map names to SQL text, not {name!r} to {expression!r}")
        self.columns = columns or None

    def where(self, predicate) -> None:
        """Adds a condition; several ones must all hold."""
        if predicate is None:
            return
        predicate = as_sql(predicate)
        if not isinstance(predicate, str):
            raise InvalidTypeError(f"a filter must be SQL text or an Expr, not {type(predicate).__name__}")
        if not predicate.strip():
            raise InvalidInputError("the filter is empty: an expression is expected")
        self.filter = predicate if self.filter is None else f"({self.filter}) AND ({predicate})"

    def with_fragments(self, fragments) -> None:
        """Fragments of a dataset, by their numbers; None: all."""
        if fragments is None:
            self.fragment_ids = None
            return
        fragments = list(fragments)
        for fragment in fragments:
            if not hasattr(fragment, "fragment_id"):
                raise InvalidTypeError(f"fragments must be LanceFragments, not {type(fragment).__name__}")
        self.fragment_ids = [fragment.fragment_id for fragment in fragments]

    def distance_range(self, lower, upper) -> None:
        self.lower_bound = _bound("lower_bound", lower)
        self.upper_bound = _bound("upper_bound", upper)

    def check_nprobes(self) -> None:
        """The rules for nprobes; they bear on indexes alone, and are kept for searches without one too."""
        low, high = self.minimum_nprobes, self.maximum_nprobes
        if low is None and high is None:
            return
        if low is not None and high is not None:
            if high and low > high:
                raise InvalidInputError("minimum_nprobes must be less than or equal to maximum_nprobes")
        elif low is not None and low > DEFAULT_NPROBES:
            raise InvalidInputError("minimum_nprobes must be less than or equal to maximum_nprobes")
        elif high and high < DEFAULT_NPROBES:
            raise InvalidInputError("maximum_nprobes must be greater than or equal to minimum_nprobes")

    def set_use_lsm(self, enable) -> None:
        """Whether fresh rows of an LSM write path are seen; by default they are, where the table has one."""
        if not isinstance(enable, bool):
            raise InvalidTypeError(f"use_lsm must be True or False, not {enable!r}")
        self.use_lsm = enable

    # --- execution ---

    def to_table(self, timeout: Optional[timedelta] = None, cancel=None) -> "pyarrow.Table":
        """The whole result. Descriptions of blobs carry row ids."""
        seconds = _seconds(timeout)
        result = self._run(seconds, cancel)
        if self.with_row_id or not any(map(pa.types.is_struct, result.schema.types)):
            return result
        from ._blob import carry

        return carry(self, result, lambda plan: plan._run(seconds, cancel))

    def _run(self, seconds, cancel) -> "pyarrow.Table":
        if self.ordering is not None:
            return self._ordered(seconds, cancel)
        if self.queries is not None:
            return self._nearest(seconds, cancel)
        if self.offsets is not None or self.row_ids is not None:
            return self._take()
        return self.table.to_table(
            self.columns,
            self.filter,
            self.limit,
            self.offset,
            with_row_id=self.with_row_id,
            with_row_address=self.with_row_address,
            fragment_ids=self.fragment_ids,
            timeout=seconds,
            cancel=cancel,
            use_lsm=self.use_lsm,
        )

    def to_reader(self, batch_size: Optional[int] = None, timeout: Optional[timedelta] = None) -> "pyarrow.RecordBatchReader":
        """The result in batches of at most `batch_size` rows; scans stream, searches and takes are computed first."""
        if batch_size is not None:
            batch_size = check_count("batch_size", batch_size)
            if batch_size == 0:
                raise InvalidInputError("batch_size must be greater than 0")
        if any(x is not None for x in (self.queries, self.offsets, self.row_ids, self.ordering)):
            return self.to_table(timeout).combine_chunks().to_reader(max_chunksize=batch_size)
        reader = self._scan(batch_size, _seconds(timeout))
        if not self.with_row_id and any(map(pa.types.is_struct, reader.schema.types)):
            from ._blob import carries_blobs

            if carries_blobs(reader.schema):  # the row id is what blobs are fetched by
                plan = self.copy()
                plan.with_row_id = True
                reader = plan._scan(batch_size, _seconds(timeout))
        return pa.RecordBatchReader.from_batches(reader.schema, reader)

    def _scan(self, batch_size, seconds):
        return self.table.scan(
            self.columns,
            self.filter,
            self.limit,
            self.offset,
            with_row_id=self.with_row_id,
            with_row_address=self.with_row_address,
            fragment_ids=self.fragment_ids,
            batch_size=batch_size,
            timeout=seconds,
            use_lsm=self.use_lsm,
        )

    def output_schema(self) -> "pyarrow.Schema":
        """The schema of the result, told without computing it."""
        if self.queries is None:
            return self.table.output_schema(self.columns, with_row_id=self.with_row_id, with_row_address=self.with_row_address)
        columns, order = self._searched_columns()
        schema = self.table.output_schema(columns).append(pa.field(_DISTANCE, pa.float32()))
        if order is not None:
            schema = pa.schema([schema.field(name) for name in order])
        for wanted, name in ((self.with_row_id, "_rowid"), (self.with_row_address, "_rowaddr")):
            if wanted and name not in schema.names:
                schema = schema.append(pa.field(name, pa.uint64()))
        if self.batch and not self._multivector():
            schema = schema.insert(0, pa.field(_QUERY_INDEX, pa.int32(), nullable=False))
        return schema

    def explain(self) -> str:
        """The steps of the plan as text."""
        if self.ordering is not None:
            plan = self.copy()
            plan.ordering = None
            unlimited = self.queries is None
            if unlimited:
                plan.limit = plan.offset = None
            top = "" if self.limit is None or not unlimited else f"TopK(fetch={self.limit + (self.offset or 0)}), "
            return f"SortExec: {top}expr=[{describe(self.ordering)}]\n" + _indented(plan.explain())
        common = dict(with_row_id=self.with_row_id, use_lsm=self.use_lsm)
        if self.queries is None:
            return self.table.explain_scan(self.columns, self.filter, self.limit, self.offset, **common)
        columns, _ = self._searched_columns()
        return self.table.explain_nearest(columns=columns, **self._search(), **common)

    def analyze(self) -> str:
        """The steps of the plan, after carrying it out: with the time it took and what came out."""
        began = time.perf_counter()
        result = self.to_table()
        elapsed = (time.perf_counter() - began) * 1000
        metrics = f"output_rows={result.num_rows}, output_bytes={result.nbytes}"
        return f"AnalyzeExec verbose=true, elapsed={elapsed:.3f}ms, metrics=[{metrics}]\n" + _indented(self.explain())

    # --- order ---

    def _ordered(self, seconds, cancel):
        """Reads the columns to sort by along, sorts, and leaves out those that were not asked for."""
        names = [one.column_name for one in self.ordering]
        plan = self.copy()
        plan.ordering = None
        if self.columns is None:
            fields = self.table.schema().names
            plan.columns = [format_field_path([name]) for name in fields]
            if self.queries is not None:
                plan.columns.append(_DISTANCE)
                fields = [*fields, _DISTANCE]
            known = dict(zip(fields, range(len(fields))))
        elif isinstance(self.columns, dict):
            plan.columns = dict(self.columns)
            known = {}
        else:
            plan.columns = list(self.columns)
            if self.queries is not None and _DISTANCE not in plan.columns:
                plan.columns.append(_DISTANCE)
            known = dict(zip(plan.columns, range(len(plan.columns))))
        shown = len(plan.columns)
        positions = []
        for name in names:
            if name not in known:
                known[name] = len(plan.columns)
                if isinstance(plan.columns, dict):
                    plan.columns[f"__order_{len(positions)}"] = name
                else:
                    plan.columns.append(name)
            positions.append(known[name])
        if self.queries is None:
            plan.limit = plan.offset = None
            rows = plan._scan(None, seconds)
            result = sorted_rows(rows.schema, rows, self.ordering, positions, self.limit, self.offset or 0)
        else:
            found = plan._nearest(seconds, cancel)
            lead = 1 if self.batch and _QUERY_INDEX in found.column_names else 0
            shown += lead
            result = sorted_rows(found.schema, found.to_batches(), self.ordering, [p + lead for p in positions])
            plan_columns = len(plan.columns) + lead
            return result.select([*range(shown), *range(plan_columns, result.num_columns)])
        return result.select([*range(shown), *range(len(plan.columns), result.num_columns)])

    # --- vector search ---

    def _search(self) -> dict:
        metric = self.metric
        if metric is not None and metric not in METRICS:
            check_metric(metric)
        self.check_nprobes()
        limit = DEFAULT_LIMIT if self.limit is None else self.limit
        if metric is None:  # that of the column's index, which a search without the index does not know
            metric = "l2" if self.bypass_vector_index else ""
        return dict(
            queries=self.queries,
            column=self.column,
            k=limit,
            metric=metric.lower(),
            filter=self.filter,
            prefilter=not self.postfilter,
            offset=self.offset or 0,
            lower_bound=self.lower_bound,
            upper_bound=self.upper_bound,
        )

    def _searched_columns(self):
        """(columns to ask the engine for, order of the result's columns or None when it is as it comes)."""
        columns = self.columns
        if columns is None:
            return None, None
        if isinstance(columns, dict):
            asked = {name: sql for name, sql in columns.items() if sql != _DISTANCE}
            if len(asked) == len(columns) and _DISTANCE not in columns:
                return columns, None
            renamed = [name for name, sql in columns.items() if sql == _DISTANCE and name != _DISTANCE]
            if renamed:
                raise refuse(f"renaming the column {_DISTANCE}")
            return asked or ["_rowid"], list(columns)
        if _DISTANCE not in columns:
            return columns, None
        return [c for c in columns if c != _DISTANCE] or ["_rowid"], list(columns)

    def _nearest(self, seconds, cancel):
        if self.fast_search:
            if self.table.stats()["num_indices"]:
                raise refuse("fast_search on a table with an index")
            return self.output_schema().empty_table()  # rows that are in no index are left out: all of them
        columns, order = self._searched_columns()
        found = self.table.nearest(
            columns=columns,
            with_row_id=self.with_row_id,
            with_row_address=self.with_row_address,
            timeout=seconds,
            cancel=cancel,
            use_lsm=self.use_lsm,
            **self._search(),
        )
        if order is None and not self.batch:
            return found
        names = found.column_names
        head = [_QUERY_INDEX] if _QUERY_INDEX in names else []
        if order is None:
            order = [name for name in names if name != _QUERY_INDEX]
        else:
            order = [*order, *(n for n in ("_rowid", "_rowaddr") if n not in order and n in names and self._wants(n))]
        found = found.select([*head, *order])
        if head and found.schema.field(0).nullable:
            field = pa.field(_QUERY_INDEX, pa.int32(), nullable=False)
            found = found.set_column(0, field, found.column(0))
        return found

    def _wants(self, name: str) -> bool:
        return self.with_row_id if name == "_rowid" else self.with_row_address

    def _multivector(self) -> bool:
        from .util import vector_column_paths

        schema = self.table.schema()
        path = self.column or self.table.infer_vector_column(query_width(self.queries))
        field = schema.field(path) if path in schema.names else None
        return field is not None and not pa.types.is_fixed_size_list(field.type) and path in vector_column_paths(schema)

    # --- take ---

    def _take(self):
        options = dict(with_row_id=self.with_row_id, with_row_address=self.with_row_address, use_lsm=self.use_lsm)
        if self.row_ids is not None:
            return self.table.take_row_ids(self.row_ids, self.columns, **options)
        try:
            return self.table.take_offsets(self.offsets, self.columns, **options)
        except (InvalidInputError, NotFoundError, OverflowError):  # the engine counts rows in 63 bits
            rows = self.table.count_rows(use_lsm=self.use_lsm)  # offsets behind the end are left out
            there = [x for x in self.offsets if x < rows]
            if len(there) == len(self.offsets):
                raise
            return self.table.take_offsets(there, self.columns, **options)


def _indented(plan: str) -> str:
    return "".join(f"  {line}\n" if line else "\n" for line in plan.splitlines())


# --- arguments ----------------------------------------------------------------------------------------------


def check_count(name: str, value: Any, most: int = _U32) -> int:
    """`value` as an int in 0..most; TypeError for no integer, OverflowError for one out of range (both ValueErrors too)."""
    try:
        number = value.__index__()
    except AttributeError:
        raise InvalidTypeError(f"{name} must be an integer, not {value!r}") from None
    if not 0 <= number <= most:
        raise OutOfRangeError(f"{name} must be between 0 and {most}, not {number}")
    return number


def check_int64(name: str, value: Any) -> int:
    """`value` as an int of 64 bits; its sign is checked where it is used. The errors of `check_count`."""
    if isinstance(value, str) or not hasattr(value, "__index__"):
        raise InvalidTypeError(f"{name} must be an integer, not {value!r}")
    number = value.__index__()
    if not -(2**63) <= number < 2**63:
        raise OutOfRangeError(f"{name} does not fit into 64 bits: {number}")
    return number


def check_unsigned(name: str, value: Any) -> int:
    """`value` as an int of 64 bits that is not negative. The errors of `check_count`."""
    number = check_int64(name, value)
    if number < 0:
        raise OutOfRangeError(f"{name} must not be negative: {number}")
    return number


def check_sequence(name: str, values: Any) -> Any:
    """`values`, if they can be many; what is in them is checked where it is used."""
    if isinstance(values, (str, bytes)) or not hasattr(values, "__iter__"):
        raise InvalidTypeError(f"{name} must be a sequence of integers, not {type(values).__name__}")
    return values


def check_positions(name: str, values: Any) -> List[int]:
    """A list of integers >= 0 out of a sequence, a numpy array or an Arrow array."""
    check_sequence(name, values)
    if hasattr(values, "tolist"):
        values = values.tolist()
    return [check_count(name, value, 2**64 - 1) for value in values]


def check_metric(metric: Any) -> str:
    """The metric in lower case; ValueError for an unknown one."""
    if not isinstance(metric, str):
        raise InvalidTypeError(f"a distance type is text, not {metric!r}")
    if metric.lower() not in METRICS:
        raise InvalidInputError(f"Invalid distance type '{metric}'.  Must be one of l2, cosine, dot, or hamming")
    return metric.lower()


def _bound(name: str, value: Any) -> Optional[float]:
    if value is None:
        return None
    if isinstance(value, (str, bytes)) or not hasattr(value, "__float__"):
        raise InvalidTypeError(f"{name} must be a number, not {value!r}")
    return float(value)


def _seconds(timeout: Optional[timedelta]) -> Optional[float]:
    if timeout is None:
        return None
    if not isinstance(timeout, timedelta):
        raise InvalidTypeError(f"timeout must be a datetime.timedelta, not {type(timeout).__name__}")
    seconds = timeout.total_seconds()
    if seconds <= 0:
        raise QueryTimeoutError("Query timeout")
    return seconds


def query_width(queries) -> int:
    """Values per vector of prepared queries."""
    return queries.shape[-1]


def prepare_queries(query: Any):
    """Query vectors for the engine: (array of one or two dimensions, whether several vectors were given).

    A list, tuple, numpy or Arrow array of numbers is one query; a list (or array) of those is several. uint8 and int8 arrays
    stay, all else becomes float32. ValueError when it is empty, ragged or not of numbers.
    """
    if isinstance(query, (pa.Array, pa.ChunkedArray)):
        query = _from_arrow(query)
    elif isinstance(query, (list, tuple)) and len(query) and isinstance(query[0], (pa.Array, pa.ChunkedArray)):
        query = [_from_arrow(q) for q in query]
    if not isinstance(query, np.ndarray):
        small = isinstance(query, (list, tuple)) and len(query) and isinstance(query[0], np.ndarray) and query[0].dtype == np.uint8
        array = _to_numpy(query, np.uint8 if small else np.float32)
    elif query.dtype == np.uint8 or query.dtype == np.int8 or query.dtype == np.float32:
        array = query
    else:
        array = _to_numpy(query, np.float32)
    if array.ndim == 2 and array.shape[0] == 1:
        array = array[0]
    if array.ndim not in (1, 2):
        raise InvalidInputError(f"a query is a vector or a list of vectors, not an array of {array.ndim} dimensions")
    if array.size == 0:
        raise InvalidInputError("a query needs a non-empty list of numbers, or several of them")
    return array, array.ndim == 2


def _to_numpy(values, dtype):
    try:
        return np.array(values, dtype=dtype)
    except (TypeError, ValueError) as e:
        raise InvalidInputError(f"the query is no vector of numbers: {e}") from None


def _from_arrow(array):
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    if hasattr(array, "flatten") and hasattr(array.type, "value_type") and array.type.num_fields == 1:
        return array.to_pylist()
    return array.to_numpy(zero_copy_only=False)
