"""The LSM write path of a dataset: a write-ahead log per shard, memtables, generations, and reads over all of them.

    ds.initialize_mem_wal(unsharded=True)
    with ds.mem_wal_writer(shard_id) as writer:
        writer.put(rows)                      # durable and visible on return
        writer.lsm_scanner().filter("id = 7").to_table()

Names of earlier releases (region, flushed generation, merged generation) are aliases of those used here.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field
from typing import Any, Callable, Dict, List, Mapping, Optional, Union

import pyarrow as pa

from .. import _glaive
from ..exceptions import InvalidInputError, InvalidTypeError, OutOfRangeError
from ._data import to_stream
from ._refuse import refusal

__all__ = [
    "CompactedSsTable",
    "ExecutionPlan",
    "LsmPointLookupPlanner",
    "LsmScanner",
    "LsmVectorSearchPlanner",
    "MergedGeneration",
    "RegionField",
    "RegionSnapshot",
    "RegionSpec",
    "RegionWriter",
    "ShardSnapshot",
    "ShardWriter",
    "ShardingField",
    "ShardingSpec",
    "evaluate_sharding_spec",
]

_U64 = 2**64 - 1
_METRICS = {
    "l2": "l2",
    "euclidean": "l2",
    "cosine": "cosine",
    "dot": "dot",
    "inner_product": "dot",
    "hamming": "hamming",
}


@dataclass
class ShardingField:
    """One value that rows are routed by.

    `source_ids` are ids of the dataset's fields; `transform` is "bucket" (with the parameter "num_buckets"), "identity" or
    "unsharded"; `result_type` names the type of the value.
    """

    field_id: str
    source_ids: List[int]
    transform: Optional[str] = None
    expression: Optional[str] = None
    result_type: str = ""
    parameters: Dict[str, str] = field(default_factory=dict)


@dataclass
class ShardingSpec:
    """How rows are routed to shards."""

    spec_id: int
    fields: List[ShardingField] = field(default_factory=list)


@dataclass(frozen=True)
class CompactedSsTable:
    """Progress of a shard: its generations up to this one are in the base table."""

    shard_id: str
    generation: int

    @property
    def region_id(self) -> str:
        """The name of `shard_id` in earlier releases."""
        return self.shard_id


def native_markers(markers: Any) -> List[tuple]:
    """(shard, generation) pairs; ValueError for a bad id, OverflowError for a number out of range."""
    if isinstance(markers, CompactedSsTable):
        markers = [markers]
    pairs = []
    for marker in markers:
        if not isinstance(marker, CompactedSsTable):
            raise InvalidTypeError(f"progress is told by CompactedSsTable, not {marker!r}")
        pairs.append((_shard(marker.shard_id), _count("generation", marker.generation)))
    return pairs


def evaluate_sharding_spec(
    batch: pa.RecordBatch, spec: Union[ShardingSpec, Mapping[str, Any]], schema: Any = None, source_id_to_column: Any = None
) -> pa.RecordBatch:
    """The routing values of the rows of a batch: a column per field of the spec, named by its `field_id`.

    Parameters
    ----------
    batch : pa.RecordBatch
    spec : ShardingSpec, or one of `mem_wal_index_details()["sharding_specs"]`
    schema : LanceSchema
        `dataset.lance_schema`: tells which column a source id is. Earlier releases took a dict of id to name instead.
    """
    if not isinstance(batch, pa.RecordBatch):
        raise TypeError(f"Expected pyarrow.RecordBatch, got {type(batch)}")
    if isinstance(spec, Mapping):
        for name in ("spec_id", "fields"):
            if name not in spec:
                raise InvalidInputError(f"Missing sharding spec field '{name}'")
        spec_id, fields = spec["spec_id"], spec["fields"]
    else:
        spec_id, fields = spec.spec_id, spec.fields
    if source_id_to_column is None:
        source_id_to_column = _columns_by_id(schema)
    return _glaive.evaluate_sharding_spec(batch, spec_id, [_field_dict(f) for f in fields], dict(source_id_to_column))


def _columns_by_id(schema: Any) -> Dict[int, str]:
    if isinstance(schema, Mapping):
        return dict(schema)
    if schema is None or isinstance(schema, pa.Schema):
        raise TypeError("evaluate_sharding_spec needs the dataset's lance_schema, which knows the ids of fields")
    return {f.id(): f.name() for f in schema.fields()}


def _field_dict(one: Any) -> Dict[str, Any]:
    get = one.get if isinstance(one, Mapping) else lambda name, default=None: getattr(one, name, default)
    return {
        "field_id": get("field_id"),
        "source_ids": list(get("source_ids") or []),
        "transform": get("transform"),
        "expression": get("expression"),
        "result_type": get("result_type") or "",
        "parameters": {str(k): str(v) for k, v in (get("parameters") or {}).items()},
    }


def _shard(text: Any) -> str:
    """A shard's id in its usual spelling. ValueError for anything else."""
    if isinstance(text, uuid.UUID):
        text = str(text)
    if not isinstance(text, str):
        raise InvalidTypeError(f"a shard is named by the text of a UUID, not {text!r}")
    return _glaive.parse_shard_id(text)


def _count(name: str, value: Any) -> int:
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise InvalidTypeError(f"{name} must be an integer, not {value!r}")
    number = value.__index__()
    if not 0 <= number <= _U64:
        raise OutOfRangeError(f"{name} must be between 0 and {_U64}, not {number}")
    return number


class ShardSnapshot:
    """The generations of a shard that a read shall look at, named by the caller. The `with_` methods change and return it."""

    def __init__(self, shard_id: str):
        self._shard_id = _shard(shard_id)
        self._spec_id = 0
        self._current_generation = 1
        self._sstables: List[tuple] = []

    @property
    def shard_id(self) -> str:
        """Lower case, hyphenated."""
        return self._shard_id

    @property
    def region_id(self) -> str:
        """The name of `shard_id` in earlier releases."""
        return self._shard_id

    def with_spec_id(self, spec_id: int) -> "ShardSnapshot":
        """The sharding spec that the shard was made by; 0: by hand."""
        self._spec_id = _count("spec_id", spec_id)
        return self

    def with_current_generation(self, generation: int) -> "ShardSnapshot":
        """The number that the next generation gets."""
        self._current_generation = _count("generation", generation)
        return self

    def with_sstable(self, generation: int, path: str) -> "ShardSnapshot":
        """Adds a generation: its number (from 1 on) and its directory within that of the shard."""
        generation = _count("generation", generation)
        if generation == 0:
            raise InvalidInputError("generation 0 is the base table: generations of a shard begin at 1")
        if not isinstance(path, str):
            raise InvalidTypeError(f"the path of a generation is text, not {path!r}")
        self._sstables.append((generation, path))
        return self

    with_flushed_generation = with_sstable

    def __repr__(self) -> str:
        return f"_ShardSnapshot(shard_id='{self._shard_id}', current_gen={self._current_generation}, sstables={len(self._sstables)})"

    def _native(self) -> tuple:
        return (self._shard_id, self._spec_id, self._current_generation, list(self._sstables))


def _native_snapshots(snapshots: Any) -> List[tuple]:
    if isinstance(snapshots, ShardSnapshot):
        snapshots = [snapshots]
    natives = []
    for one in snapshots or []:
        if not isinstance(one, ShardSnapshot):
            raise InvalidTypeError(f"a snapshot is a ShardSnapshot, not {one!r}")
        natives.append(one._native())
    return natives


class ShardWriter:
    """The writer of one shard. Get one from `LanceDataset.mem_wal_writer`; opening it fences every other writer of the shard.

    Thread-safe: puts of many threads share the entries of the log. A context manager that closes it in any case.
    """

    def __init__(self, _raw: Any):
        self._raw = _raw

    @property
    def shard_id(self) -> str:
        """The shard that is written."""
        return self._raw.shard_id

    @property
    def region_id(self) -> str:
        """The name of `shard_id` in earlier releases."""
        return self._raw.shard_id

    def put(self, data: Any, *, schema: Optional[pa.Schema] = None) -> None:
        """Writes rows: new ones, and new versions of those whose key exists. Durable and visible on return.

        `data` is whatever `write_dataset` takes, with the dataset's columns in their order and of their types (there is no cast).
        Tables, batches, frames, lists and dicts become durable as one; what is streamed (readers, iterables) is written in pieces
        as it comes, each durable by itself. Without rows nothing happens.

        Raises ValueError for rows that do not fit, before anything is written; OSError when the writer is closed, or was fenced by
        another one (`WriterFencedError`), or when the log failed (`WriterFailedError`): then open a new writer, which replays what
        was acknowledged.
        """
        if schema is None and type(data) is pa.RecordBatch:  # the shortest way for the smallest puts
            if data.num_rows:
                self._raw.put(data)
            return
        payload = to_stream(data, schema)
        if isinstance(payload, pa.Table):
            if payload.num_rows:
                self._raw.put(payload)
        else:
            self._raw.put_stream(payload)

    def delete(self, keys: Any, *, schema: Optional[pa.Schema] = None) -> None:
        """Deletes rows by key. `keys` has at least the columns of the primary key; one that does not exist is no error."""
        payload = to_stream(keys, schema)
        if isinstance(payload, pa.Table) and not payload.num_rows:
            return
        self._raw.delete(payload)

    def flush(self) -> bool:
        """Turns the rows that are visible now into a generation; False when there are none. (Upstream has no such call.)"""
        return self._raw.flush()

    def close(self) -> None:
        """Flushes and lets go. May be repeated."""
        self._raw.close()

    def stats(self) -> Dict[str, Any]:
        """Counts and times of puts, log entries and flushes since the writer was opened, and its `durability` level."""
        return self._raw.stats()

    def memtable_stats(self) -> Dict[str, Any]:
        """Sizes of the rows that are not flushed yet."""
        return self._raw.memtable_stats()

    def lsm_scanner(self, shard_snapshots: Any = None, *, region_snapshots: Any = None) -> "LsmScanner":
        """A scan of base, generations and memtables. Its own shard is read from the writer; others may be named."""
        named = _native_snapshots(shard_snapshots if shard_snapshots is not None else region_snapshots)
        return LsmScanner(_SnapshotSource(self._raw.dataset(), named, self._raw))

    def __enter__(self) -> "ShardWriter":
        return self

    def __exit__(self, exc_type, exc_val, exc_tb) -> bool:
        self.close()
        return False


class _SnapshotSource:
    """Opens the snapshot anew for each read, so that a scanner of a writer sees what was put meanwhile."""

    def __init__(self, dataset: Any, shards: List[tuple], writer: Any = None):
        self.dataset, self._shards, self._writer = dataset, shards, writer
        first = self.open()  # what is wrong is told at once
        self._fixed = first if writer is None else None

    def open(self):
        return _glaive.LsmSnapshot.open(self.dataset, self._shards, self._writer)

    def get(self):
        return self._fixed if self._fixed is not None else self.open()


class LsmScanner:
    """A scan over base, generations and memtables: the newest version of each key. The builder's methods change and return it."""

    def __init__(self, _raw: _SnapshotSource):
        self._source = _raw
        self._columns: Optional[List[str]] = None
        self._filter: Optional[str] = None
        self._limit: Optional[int] = None
        self._offset: Optional[int] = None
        self._row_address = self._generation = False

    @classmethod
    def from_snapshots(cls, dataset: Any, shard_snapshots: Any) -> "LsmScanner":
        """Over a dataset and the generations that the caller names; rows that are only in logs are not seen."""
        return cls(_SnapshotSource(dataset._ds, _native_snapshots(shard_snapshots)))

    def project(self, columns: List[str]) -> "LsmScanner":
        """The columns of the result; those of the primary key are appended when they are not among them."""
        if isinstance(columns, (str, bytes)) or not all(isinstance(c, str) for c in columns):
            raise InvalidTypeError(f"columns are a list of names, not {columns!r}")
        self._columns = list(columns)
        return self

    def filter(self, expr: str) -> "LsmScanner":
        """SQL; a later one replaces it. ValueError when it does not parse."""
        if not isinstance(expr, str):
            raise InvalidTypeError(f"a filter is SQL text, not {expr!r}")
        try:
            self._source.dataset.check_filter(expr)
        except InvalidInputError as e:
            raise InvalidInputError(f"Failed to parse filter expression: {e}") from None
        self._filter = expr
        return self

    def limit(self, n: Optional[int] = None, offset: Optional[int] = None) -> "LsmScanner":
        """At most `n` rows after skipping `offset`."""
        self._limit = None if n is None else _count("n", n)
        self._offset = None if offset is None else _count("offset", offset)
        return self

    def with_row_address(self) -> "LsmScanner":
        """Adds `_rowaddr`; null for rows that are not in the base."""
        self._row_address = True
        return self

    def with_memtable_gen(self) -> "LsmScanner":
        """Adds `_memtable_gen`, the generation that a row is of; 0: the base."""
        self._generation = True
        return self

    def to_reader(self) -> pa.RecordBatchReader:
        """The rows in batches, each computed when it is asked for."""
        source = self._source.get()
        reader = source.scan(
            self._names(source),
            self._filter,
            self._limit,
            self._offset,
            with_row_address=self._row_address,
            with_memtable_gen=self._generation,
        )
        return pa.RecordBatchReader.from_batches(reader.schema, reader)

    def to_batches(self) -> List[pa.RecordBatch]:
        """All rows; an empty result is one batch without rows."""
        reader = self.to_reader()
        batches = [batch for batch in reader if batch.num_rows]
        return batches or [pa.RecordBatch.from_pylist([], schema=reader.schema)]

    def to_batch(self) -> pa.RecordBatch:
        """All rows as one batch."""
        return self.to_table().combine_chunks().to_batches()[0] if self.count_rows() else self.to_batches()[0]

    def to_table(self) -> pa.Table:
        """All rows."""
        return self.to_reader().read_all()

    def count_rows(self) -> int:
        """How many rows there are, filter and limit applied."""
        rows = self._source.get().count_rows(self._filter)
        rows = max(0, rows - (self._offset or 0))
        return rows if self._limit is None else min(rows, self._limit)

    def explain(self) -> str:
        """The sources and the steps of the scan."""
        source = self._source.get()
        return source.explain(self._names(source), self._filter, self._limit, self._offset)

    def _names(self, source) -> Optional[List[str]]:
        if self._columns is None:
            return None
        names = list(self._columns)
        return [*names, *(key for key in _key_names(self._source.dataset) if key not in names)]


def _key_names(native: Any) -> List[str]:
    """Columns of the unenforced primary key, in its order."""
    return native.primary_key()


class ExecutionPlan:
    """A read that is ready to run, as often as one likes."""

    def __init__(self, run: Callable[[], pa.Table], schema: Callable[[], pa.Schema], explain: Callable[[], str], dataset_schema: pa.Schema):
        self._run, self._schema, self._explain, self._dataset_schema = run, schema, explain, dataset_schema

    @property
    def schema(self) -> pa.Schema:
        """The columns of the result."""
        return self._schema()

    @property
    def dataset_schema(self) -> pa.Schema:
        """The columns of the dataset that the plan reads."""
        return self._dataset_schema

    def explain(self) -> str:
        """The steps as text."""
        return self._explain()

    def to_reader(self) -> pa.RecordBatchReader:
        """The result in batches; nothing is computed before the first one is asked for."""

        def batches():
            yield from self._run().to_batches()

        return pa.RecordBatchReader.from_batches(self.schema, batches())

    def to_batches(self) -> List[pa.RecordBatch]:
        """The result in batches; at least one."""
        table = self._run()
        return [b for b in table.to_batches() if b.num_rows] or [pa.RecordBatch.from_pylist([], schema=table.schema)]

    def to_table(self) -> pa.Table:
        """The result."""
        return self._run()


def _check_keys(dataset: Any, pk_columns: Optional[List[str]]) -> List[str]:
    declared = _key_names(dataset._ds)
    if pk_columns is None or list(pk_columns) == declared:
        return declared
    raise refusal(f"reading by other columns ({', '.join(pk_columns)}) than the primary key ({', '.join(declared) or 'none'})")


class LsmPointLookupPlanner:
    """Finds rows by key in generations, newest first, and then in the base."""

    def __init__(self, dataset: Any, shard_snapshots: Any, pk_columns: Optional[List[str]] = None):
        self._keys = _check_keys(dataset, pk_columns)
        self._source = _SnapshotSource(dataset._ds, _native_snapshots(shard_snapshots))
        self._dataset_schema = dataset.schema

    def plan_lookup(self, pk_value: pa.Array, columns: Optional[List[str]] = None) -> ExecutionPlan:
        """A plan for the row of one key: an array of one value, or a struct array of one row for a key of several columns."""
        keys = self._as_batch(pk_value)
        names = None if columns is None else [*columns, *(key for key in self._keys if key not in columns)]
        source = self._source.get()
        return ExecutionPlan(
            lambda: source.lookup(keys, names),
            lambda: source.output_schema(names),
            lambda: f"LsmPointLookup: {', '.join(self._keys)}\n" + source.explain(names),
            self._dataset_schema,
        )

    def _as_batch(self, value: Any) -> pa.RecordBatch:
        if not isinstance(value, pa.Array):
            raise TypeError(f"pk_value must be a pyarrow.Array, not {type(value).__name__}")
        if len(self._keys) == 1 and not pa.types.is_struct(value.type):
            if len(value) != 1:
                raise InvalidInputError(f"pk_value must contain exactly one row, got {len(value)}")
            return pa.record_batch([value], names=self._keys)
        wanted = len(self._keys)
        if not pa.types.is_struct(value.type) or len(value) != 1:
            raise InvalidInputError(
                f"Composite primary key lookup requires a StructArray with exactly one row and {wanted} fields"
            )
        if value.type.num_fields != wanted:
            raise InvalidInputError(
                f"Composite primary key lookup requires a StructArray: expected {wanted} fields, got {value.type.num_fields}"
            )
        for name in self._keys:
            if value.type.get_field_index(name) < 0:
                raise InvalidInputError(f"Composite primary key lookup requires field '{name}' in pk_value")
        return pa.record_batch([value.field(name) for name in self._keys], names=self._keys)


class LsmVectorSearchPlanner:
    """Exact nearest neighbours over base and generations; see `plan_search`."""

    def __init__(
        self,
        dataset: Any,
        shard_snapshots: Any,
        vector_column: str,
        pk_columns: Optional[List[str]] = None,
        distance_type: Optional[str] = None,
        filter: Optional[str] = None,
    ):
        self._keys = _check_keys(dataset, pk_columns)
        name = "l2" if distance_type is None else str(distance_type).lower()
        if name not in _METRICS:
            raise InvalidInputError(f"Unknown distance_type '{distance_type}'. Valid values: 'l2', 'cosine', 'dot', 'hamming'")
        self._metric = _METRICS[name]
        schema = dataset.schema
        if vector_column not in schema.names:
            raise InvalidInputError(f"Column '{vector_column}' not found in dataset schema")
        type_ = schema.field(vector_column).type
        if not pa.types.is_fixed_size_list(type_):
            raise InvalidInputError(f"Column '{vector_column}' is not a FixedSizeList (got {type_}); a vector column is one")
        self._column, self._dimension, self._filter = vector_column, type_.list_size, filter
        self._source = _SnapshotSource(dataset._ds, _native_snapshots(shard_snapshots))
        self._dataset_schema = schema
        if filter is not None:
            LsmScanner(self._source).filter(filter)

    def plan_search(
        self,
        query: pa.Array,
        k: int = 10,
        nprobes: int = 20,
        columns: Optional[List[str]] = None,
        refine_base_table: bool = False,
        overfetch_factor: float = 1.0,
    ) -> ExecutionPlan:
        """A plan for the k nearest rows, by ascending `_distance`.

        The search is exact, so that `nprobes`, `refine_base_table` and `overfetch_factor`, which trade effort for recall in searches
        by an index, are checked and change nothing.
        """
        if k <= 0:
            raise InvalidInputError(f"k must be positive, got {k}")
        if nprobes <= 0:
            raise InvalidInputError(f"nprobes must be positive, got {nprobes}")
        if not (1.0 <= overfetch_factor < float("inf")):
            raise InvalidInputError(f"overfetch_factor must be finite and >= 1.0, got {overfetch_factor}")
        if isinstance(query, pa.FixedSizeListArray) and len(query) == 1:
            query = query.flatten()
        if not isinstance(query, pa.Array) or not pa.types.is_float32(query.type):
            raise InvalidInputError("query must be a Float32Array. Use pa.array(values, type=pa.float32())")
        if len(query) != self._dimension:
            raise InvalidInputError(f"Query vector has {len(query)} dimensions, expected {self._dimension}")
        names = None if columns is None else [c for c in columns if c != "_distance"]
        if names is not None:
            names += [key for key in self._keys if key not in names]
        order = None
        if columns is not None and "_distance" in columns:
            order = [*columns, *(key for key in self._keys if key not in columns)]
        source = self._source.get()

        def run() -> pa.Table:
            found = source.nearest(query, self._column, k, metric=self._metric, filter=self._filter, columns=names)
            return found if order is None else found.select(order)

        def schema() -> pa.Schema:
            shown = source.output_schema(names).append(pa.field("_distance", pa.float32()))
            return shown if order is None else pa.schema([shown.field(name) for name in order])

        return ExecutionPlan(
            run,
            schema,
            lambda: f"LsmVectorSearch: {self._column}, k={k}, metric={self._metric}\n" + source.explain(names, self._filter),
            self._dataset_schema,
        )


# The names of earlier releases.
RegionField = ShardingField
RegionSpec = ShardingSpec
RegionSnapshot = ShardSnapshot
RegionWriter = ShardWriter
MergedGeneration = CompactedSsTable


# --- methods of LanceDataset -----------------------------------------------------------------------------

_WRITER_OPTIONS = (
    "durable_write max_wal_buffer_size max_wal_flush_interval_ms max_memtable_size max_memtable_rows max_memtable_batches "
    "max_unflushed_memtable_bytes manifest_scan_batch_size backpressure_log_interval_ms stats_log_interval_ms"
).split()
# What a recorded configuration holds for keywords that were not given.
_DEFAULTS = {
    "durable_write": "true",
    "max_wal_buffer_size": str(10 << 20),
    "max_wal_flush_interval_ms": "100",
    "max_wal_persist_retries": "3",
    "wal_persist_retry_base_delay_ms": "50",
    "max_memtable_size": str(256 << 20),
    "max_memtable_rows": "100000",
    "max_memtable_batches": "8000",
    "manifest_scan_batch_size": "2",
    "max_unflushed_memtable_bytes": str(1 << 30),
    "backpressure_log_interval_ms": "30000",
    "stats_log_interval_ms": "60000",
    "enable_memtable": "true",
}
# Keywords that bear on logs and listings of upstream's writer alone.
_NO_EFFECT = ("manifest_scan_batch_size", "backpressure_log_interval_ms", "stats_log_interval_ms")


def _checked_options(given: Dict[str, Any]) -> Dict[str, Any]:
    out: Dict[str, Any] = {}
    for name, value in given.items():
        if value is None:
            continue
        if name == "durable_write":
            if not isinstance(value, bool):
                raise InvalidTypeError(f"durable_write must be True or False, not {value!r}")
            out[name] = value
        else:
            out[name] = _count(name, value)
    return out


def _check_hnsw(params: Any) -> Dict[str, str]:
    out = {}
    for index, values in (params or {}).items():
        for name, value in values.items():
            if name not in ("num_edges", "ef_construction", "max_level"):
                raise InvalidInputError(
                    f"unknown HNSW build param '{name}' for index '{index}'; expected one of 'num_edges', 'ef_construction', 'max_level'"
                )
            out[f"hnsw.{index}.{name}"] = str(_count(name, value))
    return out


class MemWalMethods:
    """Mixed into `LanceDataset`."""

    _ds: Any

    def initialize_mem_wal(
        self,
        *,
        maintained_indexes: Optional[List[str]] = None,
        bucket_column: Optional[str] = None,
        num_buckets: Optional[int] = None,
        identity_column: Optional[str] = None,
        unsharded: bool = False,
        durable_write: Optional[bool] = None,
        max_wal_buffer_size: Optional[int] = None,
        max_wal_flush_interval_ms: Optional[int] = None,
        max_memtable_size: Optional[int] = None,
        max_memtable_rows: Optional[int] = None,
        max_memtable_batches: Optional[int] = None,
        max_unflushed_memtable_bytes: Optional[int] = None,
        manifest_scan_batch_size: Optional[int] = None,
        backpressure_log_interval_ms: Optional[int] = None,
        stats_log_interval_ms: Optional[int] = None,
        hnsw_params: Optional[Dict[str, Dict[str, int]]] = None,
    ) -> None:
        """Gives the dataset an LSM write path, as one version.

        Parameters
        ----------
        maintained_indexes : list of str, optional
            Indexes that fresh rows are kept in as well; None: all that the dataset has, now and later.
        bucket_column, num_buckets : optional
            Rows are spread over `num_buckets` shards by the hash of a column.
        identity_column : str, optional
            A shard per value of a column.
        unsharded : bool
            One shard. Without any of these, shards are named by whoever writes.

        The others are recorded as defaults of writers; see `mem_wal_writer`.
        """
        options = _checked_options({name: value for name, value in locals().items() if name in _WRITER_OPTIONS})
        hnsw = _check_hnsw(hnsw_params)
        if (bucket_column is None) != (num_buckets is None):
            raise InvalidInputError("bucket sharding requires both `bucket_column` and `num_buckets`")
        if sum((bucket_column is not None, identity_column is not None, bool(unsharded))) > 1:
            raise InvalidInputError("at most one of bucket sharding, `identity_column`, or `unsharded` may be set")
        defaults: Dict[str, str] = {}
        if options or hnsw:
            defaults = {**_DEFAULTS, **{k: str(v).lower() if isinstance(v, bool) else str(v) for k, v in options.items()}, **hnsw}
            if options.get("stats_log_interval_ms") == 0:
                del defaults["stats_log_interval_ms"]
        kind = "bucket" if bucket_column is not None else "identity" if identity_column is not None else "unsharded" if unsharded else "manual"
        self._ds = self._ds.initialize_mem_wal(
            kind,
            column=bucket_column if bucket_column is not None else identity_column,
            num_buckets=None if num_buckets is None else _count("num_buckets", num_buckets),
            maintained_indexes=None if maintained_indexes is None else list(maintained_indexes),
            writer_config_defaults=defaults,
        )

    def mem_wal_index_details(self) -> Optional[Dict[str, Any]]:
        """How the LSM write path is set up; None when the dataset has none."""
        return self._ds.mem_wal_index_details()

    def mem_wal_writer(
        self,
        shard_id: str,
        *,
        durable_write: Optional[bool] = None,
        max_wal_buffer_size: Optional[int] = None,
        max_wal_flush_interval_ms: Optional[int] = None,
        max_memtable_size: Optional[int] = None,
        max_memtable_rows: Optional[int] = None,
        max_memtable_batches: Optional[int] = None,
        max_unflushed_memtable_bytes: Optional[int] = None,
        manifest_scan_batch_size: Optional[int] = None,
        backpressure_log_interval_ms: Optional[int] = None,
        stats_log_interval_ms: Optional[int] = None,
        hnsw_params: Optional[Dict[str, Dict[str, int]]] = None,
        durability: str = "fsync",
        write_generation: bool = True,
    ) -> ShardWriter:
        """Claims a shard and opens its writer, which replays the log behind the last generation.

        Parameters
        ----------
        shard_id : str
            A UUID in any usual spelling.
        durable_write : bool, optional
            False: puts return when rows are visible, and the log follows within `max_wal_flush_interval_ms` (100) or after
            `max_wal_buffer_size` bytes (10 MiB). True (the default): when they are in the log.
        max_memtable_size, max_memtable_rows, max_memtable_batches : int, optional
            When a memtable becomes a generation (256 MiB, 100,000, 8,000).
        max_unflushed_memtable_bytes : int, optional
            Puts wait while memtables hold more (1 GiB).
        durability : "fsync" or "os"
            What acknowledged rows survive: a power cut, or the death of the process.
        write_generation : bool
            False leaves out of the log's entries what LanceDB 0.40 cannot replay.

        The intervals of logging and `manifest_scan_batch_size` are accepted and change nothing: this writer logs nothing and finds
        manifests by its own rule. `hnsw_params` bear on graphs over fresh vectors, which are searched exactly here.
        """
        config = _checked_options({name: value for name, value in locals().items() if name in _WRITER_OPTIONS})
        _check_hnsw(hnsw_params)
        for name in _NO_EFFECT:
            config.pop(name, None)
        config.update(durability=durability, write_generation=write_generation)
        return ShardWriter(self._ds.mem_wal_writer(_shard(shard_id), config))
