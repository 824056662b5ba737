"""Types of the extension module: everything that crosses from Python into the engine.

Conventions:

* Arrow data comes in as any object with ``__arrow_c_stream__`` (``pa.Table``,
  ``pa.RecordBatchReader``, polars, duckdb, ...), ``__arrow_c_array__`` (``pa.RecordBatch``,
  ``pa.Array``) or ``__arrow_c_schema__`` (``pa.Schema``). Results are ``pyarrow`` objects; pyarrow is
  imported at the first call that needs it, not with this module.
* Every call that may block releases the GIL. On the main thread signals are looked at between
  morsels, so a KeyboardInterrupt ends a long call.
* ``timeout`` is in seconds; a passed deadline raises QueryTimeoutError ("Query timeout").
  ``cancel`` takes a CancelToken that another thread may fire.
* ``columns`` is a list of column paths ("a", "a.b", "`odd name`") or a dict from output name to SQL
  expression; None means all columns. "_rowid", "_rowaddr" and "_rowoffset" may be named as well.
* ``filter`` is SQL text or None.
* Everything here is thread-safe and usable after fork in the child.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, Protocol

import pyarrow as pa

__version__: str
"""Version of the engine, e.g. "0.1.0"."""

class _ArrowStream(Protocol):
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...

class _ArrowArray(Protocol):
    def __arrow_c_array__(self, requested_schema: object | None = None) -> tuple[object, object]: ...

class _ArrowSchema(Protocol):
    def __arrow_c_schema__(self) -> object: ...

_Data = _ArrowStream | _ArrowArray
_Columns = Sequence[str] | Mapping[str, str] | None
_Queries = Any
"""Query vectors: a flat list of numbers or a one-dimensional array (one query), a list of such lists
or a two-dimensional array (several), or a ``pa.Array`` of lists. Buffers of float16/32/64, int8 and
uint8 (numpy arrays) are taken as they are; lists become float32."""

# --- errors -----------------------------------------------------------------------------------------

class GlaiveError(Exception):
    """Root of all errors of the engine. Each subclass is also a subclass of the built-in exceptions
    that users of the LanceDB and Lance APIs catch for this condition."""

    kind: str
    """Name of the failure class, e.g. "NotFound"; see each subclass."""

class NotFoundError(GlaiveError, ValueError, FileNotFoundError):
    """kind "NotFound": a table, version, tag, column or file does not exist."""

class AlreadyExistsError(GlaiveError, ValueError, OSError):
    """kind "AlreadyExists": table, tag or file exists."""

class InvalidInputError(GlaiveError, ValueError, OSError):
    """kind "InvalidInput": an argument is wrong."""

class EvaluationError(GlaiveError, RuntimeError, OSError):
    """kind "Evaluation": an expression that is well-formed failed on the rows."""

class SchemaMismatchError(GlaiveError, ValueError, RuntimeError, OSError):
    """kind "SchemaMismatch": data does not fit the table's schema."""

class CommitConflictError(GlaiveError, RuntimeError, OSError):
    """kind "Conflict": a concurrent commit makes this operation impossible."""

class RetryableCommitConflictError(CommitConflictError):
    """kind "RetryableConflict": run the whole operation again on the latest version."""

class TooManyRetriesError(CommitConflictError):
    """kind "TooManyRetries": own retries are used up."""

class CorruptionError(GlaiveError, RuntimeError, OSError):
    """kind "Corruption": bytes on disk are not what the format says."""

class StoreError(GlaiveError, OSError):
    """kind "Io": the operating system or the object store failed."""

class NotSupportedError(GlaiveError, NotImplementedError):
    """kind "NotSupported": this build does not have the feature (named in the message)."""

class ResourceExhaustedError(GlaiveError, RuntimeError):
    """kind "ResourceExhausted": the memory budget or another bound was reached."""

class CancelledError(GlaiveError, RuntimeError):
    """kind "Cancelled": a CancelToken was fired. (An interrupt raises KeyboardInterrupt itself.)"""

class QueryTimeoutError(GlaiveError, RuntimeError, TimeoutError):
    """kind "Timeout": the message is "Query timeout"."""

class ClosedError(GlaiveError, RuntimeError):
    """kind "Closed": the connection or table "is closed"."""

class WriterFencedError(GlaiveError, RuntimeError, OSError):
    """kind "Fenced": another writer claimed the shard; open a new one."""

class WriterFailedError(GlaiveError, RuntimeError, OSError):
    """kind "WriterFailed": an append to the log failed; open a new writer, which replays what was acknowledged."""

class InternalError(GlaiveError, RuntimeError):
    """kind "Internal": a broken invariant of the engine."""

# --- functions --------------------------------------------------------------------------------------

def simd_info() -> dict[str, Any]:
    """CPU tier in use: ``tier``, ``target_arch``, ``host_features``, and ``kernels``, a dict from kernel
    name to its tier."""

def num_threads() -> int:
    """Threads that compute in this process, the calling thread included."""

def validate_table_name(name: str) -> None:
    """InvalidInputError unless ``name`` matches ``^[a-zA-Z0-9_\\-\\.]+$``, is not made of dots alone, and
    is short enough for a file name."""

def format_field_path(segments: Sequence[str]) -> str:
    """["a", "b.c"] -> "a.`b.c`"."""

def parse_field_path(path: str) -> list[str]:
    """The inverse; InvalidInputError on an unclosed quote or an empty segment."""

def validate_filter(sql: str, schema: _ArrowSchema, meta_columns: bool = True) -> list[str]:
    """Parses and binds a predicate; returns the column paths it reads. InvalidInputError shows the
    place of a mistake. Without `meta_columns`, _rowid and the like are unknown."""

def expression_schema(sql: str, schema: _ArrowSchema) -> pa.Schema:
    """One field, of the type that the expression has over the columns of `schema`."""

def volatile_function(sql: str) -> str:
    """The name of a function in `sql` that gives another value each time, as random does; empty when there is none."""

class CancelToken:
    """Stops calls from another thread. One token may be given to several calls."""

    def __init__(self) -> None: ...
    def cancel(self) -> None: ...
    @property
    def cancelled(self) -> bool: ...

# --- reading ----------------------------------------------------------------------------------------

class BatchReader:
    """A running scan; iterate for ``pa.RecordBatch``. Each step releases the GIL and can be interrupted.

    Also an Arrow stream (``pa.RecordBatchReader.from_stream(reader)``); prefer
    ``pa.RecordBatchReader.from_batches(reader.schema, reader)``, which passes typed errors through."""

    @property
    def schema(self) -> pa.Schema: ...
    def __iter__(self) -> BatchReader: ...
    def __next__(self) -> pa.RecordBatch: ...
    def read_all(self) -> pa.Table: ...
    def close(self) -> None:
        """Stops the scan and lets go of the snapshot. Idempotent."""
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Hands the rest of the stream over; the reader is empty afterwards."""

class _Readable:
    """What a table handle and a dataset snapshot have in common. (Documents signatures; the classes
    below do not share a base at run time.)"""

    def count_rows(
        self, filter: str | None = None, *, timeout: float | None = None, cancel: CancelToken | None = None, use_lsm: bool | None = None
    ) -> int: ...
    def scan(
        self,
        columns: _Columns = None,
        filter: str | None = None,
        limit: int | None = None,
        offset: int | None = None,
        *,
        with_row_id: bool = False,
        with_row_address: bool = False,
        fragment_ids: Sequence[int] | None = None,
        in_order: bool = True,
        batch_size: int | None = None,
        batch_size_bytes: int | None = None,
        timeout: float | None = None,
        cancel: CancelToken | None = None,
        use_lsm: bool | None = None,
    ) -> BatchReader:
        """Streams rows in insertion order. ``batch_size`` bounds the rows of a batch (8192 by default)."""
    def to_table(
        self,
        columns: _Columns = None,
        filter: str | None = None,
        limit: int | None = None,
        offset: int | None = None,
        *,
        with_row_id: bool = False,
        with_row_address: bool = False,
        fragment_ids: Sequence[int] | None = None,
        in_order: bool = True,
        batch_size: int | None = None,
        batch_size_bytes: int | None = None,
        timeout: float | None = None,
        cancel: CancelToken | None = None,
        use_lsm: bool | None = None,
    ) -> pa.Table:
        """The whole result at once, computed on all threads; faster than draining ``scan``."""
    def nearest(
        self,
        queries: _Queries,
        column: str | None = None,
        k: int = 10,
        *,
        metric: str = "l2",
        filter: str | None = None,
        prefilter: bool = True,
        offset: int = 0,
        lower_bound: float | None = None,
        upper_bound: float | None = None,
        columns: _Columns = None,
        with_row_id: bool = False,
        with_row_address: bool = False,
        timeout: float | None = None,
        cancel: CancelToken | None = None,
        use_lsm: bool | None = None,
    ) -> pa.Table:
        """Exact k nearest neighbours by ``_distance`` (float32, appended last), ties by row id.

        ``column`` None: the only vector column of the query's dimension. Several queries against a
        column of vectors give k rows each, with ``query_index`` (int32) telling which; against a
        multivector column (list of vectors) all queries together are one multi-vector query."""
    def infer_vector_column(self, dimension: int | None = None) -> str:
        """The vector column a search without a column name means; InvalidInputError when none or several."""
    def take_offsets(
        self,
        offsets: Sequence[int],
        columns: _Columns = None,
        *,
        with_row_id: bool = False,
        with_row_address: bool = False,
        nested: bool = False,
    ) -> pa.Table:
        """Rows by position among the live rows, in the order asked for, repeats included. A list of
        ints, a numpy array or a ``pa.Array`` of integers. InvalidInputError when out of range.
        ``nested``: names with dots cut structs down to these members instead of giving columns of their own."""
    def take_row_ids(
        self,
        row_ids: Sequence[int],
        columns: _Columns = None,
        *,
        with_row_id: bool = False,
        with_row_address: bool = False,
        nested: bool = False,
    ) -> pa.Table:
        """Rows by ``_rowid``, in the order asked for; ids that no longer exist are left out."""
    def head(self, n: int, columns: _Columns = None) -> pa.Table: ...
    def output_schema(
        self, columns: _Columns = None, *, with_row_id: bool = False, with_row_address: bool = False
    ) -> pa.Schema:
        """Schema of ``scan`` with the same arguments."""
    def explain_scan(
        self,
        columns: _Columns = None,
        filter: str | None = None,
        limit: int | None = None,
        offset: int | None = None,
        *,
        with_row_id: bool = False,
        with_row_address: bool = False,
    ) -> str: ...
    def explain_nearest(
        self,
        queries: _Queries,
        column: str | None = None,
        k: int = 10,
        *,
        metric: str = "l2",
        filter: str | None = None,
        prefilter: bool = True,
        offset: int = 0,
        lower_bound: float | None = None,
        upper_bound: float | None = None,
        columns: _Columns = None,
        with_row_id: bool = False,
    ) -> str: ...
    def list_versions(self) -> list[dict[str, Any]]:
        """Oldest first: ``version`` (int), ``timestamp_us`` (int, microseconds since the epoch, UTC),
        ``metadata`` (dict of str)."""
    def list_tags(self) -> dict[str, dict[str, Any]]:
        """Name -> ``branch`` (None on main), ``version``, ``created_us``, ``updated_us`` (microseconds since 1970 or None),
        ``manifest_size``, ``metadata``."""
    def tag_version(self, tag: str) -> int: ...
    def create_tag(self, tag: str, version: int) -> None: ...
    def update_tag(self, tag: str, version: int) -> None: ...
    def delete_tag(self, tag: str) -> None: ...
    def stats(self) -> dict[str, Any]:
        """``total_bytes``, ``num_rows``, ``num_indices``, ``fragment_stats`` with ``num_fragments``,
        ``num_small_fragments`` and ``lengths`` (min, max, mean, p25, p50, p75, p99)."""

# --- LanceDB level ----------------------------------------------------------------------------------

class Connection:
    """A database: a directory (or store prefix) in which table ``t`` is the directory ``t.lance``.

    ``uri``: a path, ``file://`` or ``memory://`` (each connection its own). The directory is made when
    missing. ``read_consistency_interval`` in seconds: None, handles never look for newer versions by
    themselves; 0, every read does; d, when the last look is older than d.
    ``storage_options``: unknown schemes raise NotSupportedError; the keys
    ``new_table_data_storage_version``, ``new_table_enable_v2_manifest_paths`` and
    ``new_table_enable_stable_row_ids`` are the defaults of new tables."""

    def __init__(
        self,
        uri: str,
        *,
        read_consistency_interval: float | None = None,
        storage_options: Mapping[str, str] | None = None,
    ) -> None: ...
    @property
    def uri(self) -> str:
        """As an absolute path for local databases."""
    @property
    def read_consistency_interval(self) -> float | None: ...
    @property
    def is_open(self) -> bool: ...
    def close(self) -> None:
        """Later calls raise ClosedError; tables already open stay usable."""
    def table_names(self, start_after: str | None = None, limit: int | None = None) -> list[str]:
        """Sorted; ``start_after`` is exclusive."""
    def table_exists(self, name: str) -> bool: ...
    def table_uri(self, name: str) -> str: ...
    def open_table(self, name: str, *, version: int | str | None = None, directory: str = "") -> Table:
        """NotFoundError "Table 'x' was not found". With ``version`` (number or tag) the handle is pinned."""
    def create_table(
        self,
        name: str,
        data: _Data | _ArrowSchema,
        *,
        mode: Literal["create", "overwrite", "exist_ok"] = "create",
        storage_options: Mapping[str, str] | None = None,
        progress: Callable[[int], None] | None = None,
        directory: str = "",
    ) -> Table:
        """Writes the stream as version 1; given only a schema (``pa.Schema``), a table without rows.

        AlreadyExistsError "Table 'x' already exists" with "create"; "exist_ok" opens the existing table
        and leaves the data alone; "overwrite" commits a new version with the new schema.
        ``progress`` is called with the rows written so far; what it raises is ignored."""
    def clone_table(self, name: str, source_uri: str, *, version: int | str | None = None) -> Table:
        """A shallow clone: the new table begins with the files of another one where they are."""
    def drop_table(self, name: str, *, ignore_missing: bool = False, directory: str = "") -> None: ...
    def drop_all_tables(self) -> None: ...
    def rename_table(self, cur_name: str, new_name: str) -> None:
        """Local and memory stores. (LanceDB's own API refuses this on local databases.)"""

class Table(_Readable):
    """A table handle: follows versions as the connection's read consistency says, or is pinned.

    Writes build on the latest version, and the handle then shows the result. A pinned handle refuses
    writes with InvalidInputError "table cannot be modified when a specific version is checked out"."""

    @property
    def name(self) -> str: ...
    @property
    def uri(self) -> str: ...
    @property
    def is_open(self) -> bool: ...
    def close(self) -> None: ...
    @property
    def is_pinned(self) -> bool: ...
    def version(self) -> int: ...
    def schema(self) -> pa.Schema: ...
    def add(
        self,
        data: _Data,
        *,
        mode: Literal["append", "overwrite"] = "append",
        progress: Callable[[int], None] | None = None,
        storage_options: Mapping[str, str] | None = None,
    ) -> int:
        """Streams the rows in and returns the new version. Columns are matched by name at every level,
        missing nullable ones become null, numbers and strings are cast to the table's types; unknown
        columns, missing non-nullable ones, nulls in non-nullable ones and vectors of another length
        raise SchemaMismatchError or InvalidInputError and leave the table unchanged.
        "overwrite" replaces data and schema. ``progress``: see ``Connection.create_table``."""
    def add_columns(self, expressions: list[tuple[str, str]]) -> int:
        """Name and SQL expression of each new column; like all of these returns the new version."""
    def add_null_columns(self, schema: Any) -> int: ...
    def merge_columns(self, data: Any, left_on: str, right_on: str) -> int: ...
    def alter_columns(self, alterations: list[tuple[str, str | None, bool | None, Any]]) -> int: ...
    def drop_columns(self, columns: list[str]) -> int: ...
    def update_field_metadata(self, updates: list[tuple[str, list[tuple[str, str | None]], bool]]) -> int: ...
    def set_unenforced_primary_key(self, columns: list[str]) -> int: ...
    def delete(self, predicate: str) -> tuple[int, int]:
        """(deleted rows, new version)."""
    def update(self, where: str | None, expressions: Sequence[tuple[str, str]], values: Any = None) -> tuple[int, int]:
        """(updated rows, new version). ``expressions``: column and SQL; ``values``: a table of one row."""
    def merge_insert(self, options: Mapping[str, Any], data: Any, *, timeout: float | None = None) -> dict[str, int]:
        """``version``, ``num_inserted_rows``, ``num_updated_rows``, ``num_deleted_rows``, ``num_skipped_duplicates``,
        ``num_attempts``, ``spilled_bytes``, ``num_passes``. ``options``: ``on``, ``matched`` (keep, update, delete or
        fail), ``update_condition``, ``insert``, ``delete_not_in_source``, ``delete_condition``, ``first_seen``,
        ``conflict_retries``, ``retry_timeout``, ``data_storage_version``, ``in_memory``, ``memory_bytes``,
        ``spill_directory``, ``compacted`` (list of shard and generation), and ``use_lsm``, ``single_shard`` of the LSM
        write path; ``num_rows`` counts the rows written."""
    def set_lsm_write_spec(
        self,
        sharding: Literal["unsharded", "bucket", "identity"],
        *,
        column: str | None = None,
        num_buckets: int | None = None,
        maintained_indexes: list[str] | None = None,
        writer_config_defaults: Mapping[str, str] = {},
    ) -> int:
        """Gives the table an LSM write path; the new version. InvalidInputError when there is one."""
    def unset_lsm_write_spec(self) -> int: ...
    def get_lsm_write_spec(self) -> dict[str, Any] | None: ...
    def close_lsm_writers(self) -> None: ...
    def flush_lsm(self) -> int:
        """Fresh rows become generations; their number."""
    def compact_lsm(self, *, cancel: CancelToken | None = None) -> dict[str, int]:
        """``generations_consumed``, ``generations_remaining``, ``rows_merged``, ``rows_deleted``."""
    def checkpoint_lsm(
        self,
        *,
        timeout: float | None = None,
        progress: Callable[[int, int], Any] | None = None,
        cancel: CancelToken | None = None,
    ) -> dict[str, Any]:
        """``generations_consumed``, ``generations_remaining``, ``passes``, ``converged``."""
    def get_lsm_stats(self, *, include_generation_rows: bool = False) -> list[dict[str, Any]] | None:
        """One entry per shard; None when the table has no LSM write path."""
    def checkout(self, version: int | str) -> None:
        """Pins to a version number or a tag. NotFoundError when there is none."""
    def checkout_latest(self) -> None:
        """Unpins and looks for the newest version."""
    def current_branch(self) -> str | None: ...
    def list_branches(self) -> dict[str, dict[str, Any]]: ...
    def create_branch(
        self, name: str, from_branch: str | None = None, from_version: int | None = None
    ) -> Table:
        """A handle of the new branch; from the newest version of main if nothing else is said."""
    def checkout_branch(self, name: str, version: int | None = None) -> Table: ...
    def delete_branch(self, name: str) -> None: ...
    def restore(self, version: int | str | None = None) -> int:
        """Commits the given (or the pinned) version's content as a new version, returns it and unpins.
        Without argument and checkout: InvalidInputError "checkout before running restore"."""
    def uses_v2_manifest_paths(self) -> bool: ...
    def migrate_manifest_names(self) -> None:
        """Renames manifests of the first naming scheme; nothing else may write meanwhile."""
    def dataset(self) -> Dataset:
        """The snapshot that a read would use now."""

# --- Lance level ------------------------------------------------------------------------------------

class Dataset(_Readable):
    """One version of a table: immutable. Operations that commit return the next snapshot."""

    @staticmethod
    def open(
        uri: str,
        version: int | str | None = None,
        *,
        asof_us: int | None = None,
        storage_options: Mapping[str, str] | None = None,
    ) -> Dataset: ...
    @staticmethod
    def write_fragments(
        data: _Data,
        dest: Dataset | str,
        *,
        mode: str = "append",
        max_rows_per_file: int | None = None,
        max_bytes_per_file: int | None = None,
        data_storage_version: str | None = None,
    ) -> list[dict[str, Any]]:
        """Data files that no version has yet: fragments as `fragment` gives them, with id 0."""
    def delete_in_fragment(self, fragment_id: int, offsets: Sequence[int]) -> dict[str, Any] | None:
        """The fragment without the rows at these physical offsets, its deletion file written; None when no row is left."""
    def fragment_of_file(self, name: str, fragment_id: int) -> dict[str, Any]:
        """A fragment of a data file that lies in the table's data folder."""
    @staticmethod
    def commit(
        dest: Dataset | str,
        operation: str,
        *,
        schema: Any = None,
        field_ids: list[int] | None = None,
        read_version: int | None = None,
        max_retries: int = 20,
        stable_row_ids: bool = False,
        v2_manifest_paths: bool = True,
        timeout: float | None = None,
    ) -> Dataset:
        """Commits a transaction, given as JSON of its message. `schema` is that of an overwrite, merge or projection;
        without `field_ids` known names keep their ids. TimeoutError after so many seconds."""
    @staticmethod
    def exists(uri: str, *, storage_options: Mapping[str, str] | None = None) -> bool: ...
    @staticmethod
    def write(
        data: _Data | _ArrowSchema,
        dest: str | Dataset,
        *,
        mode: Literal["create", "append", "overwrite"] = "create",
        max_rows_per_file: int | None = None,
        max_bytes_per_file: int | None = None,
        data_storage_version: str | None = None,
        enable_stable_row_ids: bool = False,
        enable_v2_manifest_paths: bool = True,
        transaction_properties: Mapping[str, str] | None = None,
        progress: Callable[[int], None] | None = None,
        storage_options: Mapping[str, str] | None = None,
    ) -> Dataset: ...
    @staticmethod
    def drop(uri: str, *, ignore_not_found: bool = False) -> None: ...
    @property
    def uri(self) -> str: ...
    @property
    def version(self) -> int: ...
    @property
    def timestamp_us(self) -> int:
        """Commit time, microseconds since the epoch, UTC."""
    @property
    def schema(self) -> pa.Schema: ...
    @property
    def fields(self) -> list[dict[str, Any]]:
        """The Lance schema in pre-order: ``id``, ``parent_id``, ``name``, ``logical_type``, ``nullable``,
        ``metadata``."""
    @property
    def data_storage_version(self) -> str: ...
    @property
    def has_stable_row_ids(self) -> bool: ...
    @property
    def max_field_id(self) -> int: ...
    @property
    def config(self) -> dict[str, str]: ...
    @property
    def table_metadata(self) -> dict[str, str]: ...
    def latest(self) -> Dataset:
        """The newest version (self when there is none newer)."""
    def latest_version(self) -> int: ...
    def checkout(self, version: int | str) -> Dataset: ...
    def add_columns(
        self,
        expressions: list[tuple[str, str]],
        *,
        batch_size: int | None = None,
        progress: Callable[[int], Any] | None = None,
        cancel: CancelToken | None = None,
    ) -> Dataset:
        """Name and SQL expression of each new column."""
    def add_null_columns(self, schema: Any) -> Dataset:
        """Columns of nulls; writes no data."""
    def add_columns_from_reader(
        self, data: Any, *, progress: Callable[[int], Any] | None = None, cancel: CancelToken | None = None
    ) -> Dataset:
        """The values of all rows, in order."""
    def write_fragment_columns(
        self, fragment_id: int, data: Any, *, replace: bool = False
    ) -> tuple[dict[str, Any], pa.Schema, list[dict[str, Any]], list[int]]:
        """Writes columns of one fragment and commits nothing: (the fragment, schema, its fields, ids of what was written)."""
    def merge_columns(self, data: Any, left_on: str, right_on: str) -> Dataset:
        """A left join."""
    def alter_columns(self, alterations: list[tuple[str, str | None, bool | None, Any]]) -> Dataset:
        """Path, new name, nullability, and a schema of one field that has the new type; None: as it is."""
    def drop_columns(self, columns: list[str]) -> Dataset: ...
    def update_metadata(self, map: str, entries: list[tuple[str, str | None]], replace: bool) -> Dataset:
        """``map`` is config, table or schema; an entry without a value removes the key."""
    def update_field_metadata(self, updates: list[tuple[str, list[tuple[str, str | None]], bool]]) -> Dataset:
        """Path, entries, and whether they replace the field's whole map."""
    def restore(self) -> Dataset: ...
    @property
    def branch(self) -> str | None:
        """The branch that this is a version of; None: the main one."""
    def list_branches(self) -> dict[str, dict[str, Any]]:
        """Name -> ``parent_branch``, ``parent_version``, ``branch_identifier``, ``create_at``,
        ``manifest_size``, ``metadata``."""
    def create_branch(self, name: str) -> Dataset: ...
    def checkout_branch(self, name: str | None, version: int | None = None) -> Dataset: ...
    def delete_branch(self, name: str) -> None: ...
    def replace_branch_metadata(self, name: str, metadata: dict[str, str]) -> None: ...
    def shallow_clone(self, uri: str) -> Dataset: ...
    def delete(
        self,
        predicate: str,
        *,
        timeout: float | None = None,
        cancel: CancelToken | None = None,
        conflict_retries: int | None = None,
        retry_timeout: float | None = None,
    ) -> tuple[Dataset, int]:
        """(next snapshot, deleted rows)."""
    def update(
        self,
        where: str | None,
        expressions: Sequence[tuple[str, str]],
        values: Any = None,
        *,
        conflict_retries: int | None = None,
        retry_timeout: float | None = None,
        data_storage_version: str | None = None,
    ) -> tuple[Dataset, int]:
        """(next snapshot, updated rows). ``expressions``: column and SQL; ``values``: a table of one row."""
    def merge_insert(self, options: Mapping[str, Any], data: Any) -> tuple[Dataset, dict[str, int]]:
        """(next snapshot, counts); options and counts as for ``Table.merge_insert``."""
    def initialize_mem_wal(
        self,
        sharding: Literal["manual", "unsharded", "bucket", "identity"],
        *,
        column: str | None = None,
        num_buckets: int | None = None,
        maintained_indexes: list[str] | None = None,
        writer_config_defaults: Mapping[str, str] = {},
    ) -> Dataset: ...
    def drop_mem_wal(self) -> Dataset: ...
    def mem_wal_index_details(self) -> dict[str, Any] | None: ...
    def mem_wal_compacted(self) -> list[tuple[str, int]]:
        """Shard and the highest generation of it that is merged."""
    def mem_wal_writer(self, shard_id: str, config: Mapping[str, Any]) -> ShardWriter: ...
    def primary_key(self) -> list[str]:
        """Names of the columns of the unenforced primary key."""
    def check_filter(self, filter: str) -> None:
        """InvalidInputError when the predicate does not parse or does not fit the columns."""
    def explain_merge(self, options: Mapping[str, Any], schema: Any = None) -> str: ...
    def analyze_merge(self, options: Mapping[str, Any], data: Any) -> str: ...
    def num_fragments(self) -> int: ...
    def fragment_ids(self) -> list[int]: ...
    def fragment(self, fragment_id: int) -> dict[str, Any] | None:
        """``id``, ``physical_rows``, ``num_deletions``, ``files`` (list of ``path``, ``fields``,
        ``column_indices``, ``file_major_version``, ``file_minor_version``, ``file_size_bytes``,
        ``base_id``), ``deletion_file`` (None or ``path``, ``file_type``, ``read_version``, ``id``,
        ``num_deleted_rows``, ``base_id``), ``row_id_meta`` (None or bytes, the serialized sequence)."""
    def take_fragment_offsets(
        self,
        fragment_id: int,
        offsets: Sequence[int],
        columns: _Columns = None,
        *,
        with_row_id: bool = False,
        with_row_address: bool = False,
        nested: bool = False,
    ) -> pa.Table:
        """Rows by position among the live rows of one fragment."""
    def read_data_file(self, path: str, offset: int, length: int, base_id: Optional[int] = None) -> bytes:
        """Bytes of the data file ``path`` (as in ``fragment``), for blobs that lie outside the pages."""
    def uses_v2_manifest_paths(self) -> bool: ...
    def migrate_manifest_names(self) -> None:
        """Renames manifests of the first naming scheme; nothing else may write meanwhile."""

class FileReader:
    """One Lance file."""

    def __init__(
        self,
        path: str,
        *,
        columns: Sequence[str] | None = None,
        storage_options: Mapping[str, str] | None = None,
    ) -> None: ...
    @property
    def num_rows(self) -> int: ...
    @property
    def schema(self) -> pa.Schema:
        """Of the selected columns."""
    @property
    def version(self) -> tuple[int, int]:
        """(major, minor) of the footer."""
    def read_range(self, start: int, num_rows: int) -> pa.RecordBatch: ...
    def take_rows(self, rows: Sequence[int]) -> pa.RecordBatch: ...
    def read(
        self, start: int = 0, num_rows: int | None = None, *, batch_size: int = 1024
    ) -> BatchReader: ...
    def num_global_buffers(self) -> int: ...
    def global_buffer(self, index: int) -> bytes: ...
    def metadata(self) -> dict[str, Any]:
        """Footer facts: ``num_data_bytes``, ``num_column_metadata_bytes``, ``num_global_buffer_bytes``,
        ``global_buffers`` (list of (position, size)), ``columns`` (list of dicts: ``column_buffers``, and ``pages``,
        dicts of ``num_rows``, ``buffers``, ``encoding``)."""

class FileWriter:
    """Writes one Lance file; invisible until ``finish``."""

    def __init__(
        self,
        path: str,
        schema: _ArrowSchema,
        *,
        version: str | None = None,
        data_cache_bytes: int | None = None,
        max_page_bytes: int | None = None,
        storage_options: Mapping[str, str] | None = None,
    ) -> None: ...
    def write(self, data: _Data) -> None: ...
    def add_global_buffer(self, data: bytes) -> int: ...
    def add_schema_metadata(self, key: str, value: str) -> None: ...
    @property
    def num_rows(self) -> int: ...
    def finish(self) -> int:
        """Returns the number of rows."""
    def abort(self) -> None: ...

class CompactionTask:
    """Neighbouring fragments to be rewritten together."""

    @staticmethod
    def from_json(json: str) -> CompactionTask: ...
    def json(self) -> str: ...
    def execute(self, dataset: Dataset) -> RewriteResult: ...

class CompactionPlan:
    """Tasks for one version."""

    @staticmethod
    def from_json(json: str) -> CompactionPlan: ...
    def json(self) -> str: ...
    @property
    def read_version(self) -> int: ...
    @property
    def tasks(self) -> list[CompactionTask]: ...

class RewriteResult:
    """What a task wrote. As long as it lives, clean-ups of this process leave the files alone."""

    @staticmethod
    def from_json(json: str) -> RewriteResult: ...
    def json(self) -> str: ...

_Metrics = tuple[int, int, int, int]  # fragments removed, added, files removed, added

def compact(
    dataset: Dataset, options: str, progress: Callable[[int], None] | None = None
) -> tuple[_Metrics, Dataset]:
    """``options``: a JSON object. Returns the metrics and the new version."""

def plan_compaction(dataset: Dataset, options: str) -> CompactionPlan: ...
def commit_compaction(dataset: Dataset, rewrites: Sequence[RewriteResult]) -> tuple[_Metrics, Dataset]: ...
def clean_up(
    dataset: Dataset,
    *,
    older_than_us: int | None = None,
    retain_versions: int | None = None,
    delete_unverified: bool = False,
    error_if_tagged: bool = True,
    delete_rate_limit: int | None = None,
    versions: Sequence[int] | None = None,
    dry_run: bool = False,
    max_files: int = 0,
) -> dict[str, Any]:
    """``read_version``, ``stats``, ``files`` (path, kind, unverified, bytes), ``files_truncated``, ``branches``, ``warnings``."""

def optimize(
    table: Table,
    *,
    older_than_us: int | None = None,
    delete_unverified: bool = False,
    progress: Callable[[int], None] | None = None,
) -> tuple[_Metrics, dict[str, int]]: ...
def verify(
    uri: str,
    *,
    decode: bool = False,
    repair: bool = False,
    progress: Callable[[int], None] | None = None,
) -> dict[str, Any]: ...
def wait_for_maintenance(seconds: float) -> bool:
    """False when upkeep still had something to do after that time."""


# --- the LSM write path -------------------------------------------------------------------------------

class ShardWriter:
    """The writer of a shard; see ``glaive.lance.mem_wal``. Thread-safe. Errors: WriterFencedError, WriterFailedError, ClosedError."""

    @property
    def shard_id(self) -> str: ...
    @property
    def epoch(self) -> int: ...
    @property
    def is_closed(self) -> bool: ...
    def put(self, data: Any) -> None:
        """All rows in one put. SchemaMismatchError when they do not fit."""
    def put_stream(self, data: Any) -> int:
        """In puts of bounded size; the number of rows."""
    def delete(self, keys: Any) -> None: ...
    def flush(self) -> bool: ...
    def close(self) -> None: ...
    def abort(self) -> None: ...
    def dataset(self) -> Dataset:
        """The version of the base that it was opened on."""
    def stats(self) -> dict[str, Any]: ...
    def memtable_stats(self) -> dict[str, Any]: ...

class LsmSnapshot:
    """Base, generations and memtables as one table."""

    @staticmethod
    def open(
        dataset: Dataset, shards: list[tuple[str, int, int, list[tuple[int, str]]]], writer: ShardWriter | None = None
    ) -> LsmSnapshot:
        """``shards``: id, sharding spec, current generation, and (number, directory) of each generation."""
    def scan(
        self,
        columns: Any = None,
        filter: str | None = None,
        limit: int | None = None,
        offset: int | None = None,
        *,
        with_row_address: bool = False,
        with_memtable_gen: bool = False,
    ) -> BatchReader: ...
    def count_rows(self, filter: str | None = None) -> int: ...
    def output_schema(
        self, columns: Any = None, *, with_row_address: bool = False, with_memtable_gen: bool = False
    ) -> pa.Schema: ...
    def explain(
        self,
        columns: Any = None,
        filter: str | None = None,
        limit: int | None = None,
        offset: int | None = None,
        *,
        with_row_address: bool = False,
        with_memtable_gen: bool = False,
    ) -> str: ...
    def lookup(self, keys: Any, columns: Any = None) -> pa.Table:
        """``keys``: a batch with a column per key column."""
    def nearest(
        self,
        queries: Any,
        column: str | None = None,
        k: int = 10,
        *,
        metric: str = "l2",
        filter: str | None = None,
        prefilter: bool = True,
        offset: int = 0,
        lower_bound: float | None = None,
        upper_bound: float | None = None,
        columns: Any = None,
    ) -> pa.Table: ...

def evaluate_sharding_spec(batch: pa.RecordBatch, spec_id: int, fields: list[dict[str, Any]], ids: Mapping[int, str]) -> pa.RecordBatch: ...
def parse_shard_id(text: str) -> str:
    """Its usual spelling. InvalidInputError "Invalid shard_id UUID: ..."."""
