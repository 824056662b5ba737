"""Tables, sync and async."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, Callable, Dict, Iterable, List, Optional, Tuple, Union

from . import _changes, _database, _handle, _later, _not_built
from . import merge as _merge
from ._blob_methods import BlobMethods
from ._branches import AsyncBranches, Branches
from ._lazy import lazy
from ._lsm import LsmMethods
from ._maintenance import SyncMaintenance
from ._plan import Plan
from ._results import AddResult, DeleteResult, MergeResult, UpdateResult
from ._schema_changes import SchemaChanges
from ._table_async import AsyncTable, AsyncTags
from ._unsupported import declare, not_built, refuse
from .merge import LanceMergeInsertBuilder
from .query import LanceQueryBuilder, LanceTakeQueryBuilder
from .types import AddMode, BlobMode, CreateMode, OnBadVectorsType, QueryType

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow

    from ._glaive import Table as _NativeTable
    from .common import DATA, VEC
    from .db import LanceDBConnection
    from .lance import LanceDataset

__all__ = ["AddResult", "AsyncBranches", "AsyncTable", "AsyncTags", "Branches", "DeleteResult", "LanceTable", "MergeResult", "Table", "Tags", "UpdateResult"]

_blob = lazy("_blob")
__getattr__ = _not_built.missing_names(__name__)


class Tags:
    """Names for versions of a table. A tag keeps its version from being cleaned up."""

    def __init__(self, table: "LanceTable"):
        self._inner = table._inner

    def list(self) -> Dict[str, Dict[str, int]]:
        """Tag -> `{"version": int, "manifest_size": int}`."""
        return _handle.list_tags(self._inner)

    def get_version(self, tag: str) -> int:
        """The version that the tag names. RuntimeError when there is no such tag."""
        return _handle.tag_version(self._inner, tag)

    def create(self, tag: str, version: int) -> None:
        """Names a version. RuntimeError when the tag exists, the version does not, or the text cannot be a tag."""
        _handle.create_tag(self._inner, tag, version)

    def update(self, tag: str, version: int) -> None:
        """Moves a tag to another version. RuntimeError when either does not exist."""
        _handle.update_tag(self._inner, tag, version)

    def delete(self, tag: str) -> None:
        """Removes a tag; the version stays. RuntimeError when there is no such tag."""
        _handle.delete_tag(self._inner, tag)


class Table(ABC):
    """A table: rows in a fixed set of typed columns, with versions.

    Get one from `db.create_table` or `db.open_table`. Each change makes a new version. A handle shows other writers' versions as
    the connection's `read_consistency_interval` says; after `checkout` it stays at one version and refuses changes.
    """

    @property
    @abstractmethod
    def name(self) -> str:
        """The table's name."""

    @property
    @abstractmethod
    def version(self) -> int:
        """The number of the version that reads see."""

    @property
    @abstractmethod
    def schema(self) -> "pyarrow.Schema":
        """The columns, as an Arrow schema."""

    @property
    @abstractmethod
    def tags(self) -> Tags:
        """Names for versions."""

    @abstractmethod
    def count_rows(self, filter: Optional[str] = None) -> int:
        """How many rows there are, or for how many the predicate is true."""

    @abstractmethod
    def to_arrow(self) -> "pyarrow.Table":
        """All rows as a `pa.Table`."""

    @abstractmethod
    def add(
        self,
        data: "DATA",
        mode: AddMode = "append",
        on_bad_vectors: OnBadVectorsType = "error",
        fill_value: float = 0.0,
        progress: Optional[Union[bool, Callable, Any]] = None,
        write_parallelism: Optional[int] = None,
        allow_external_blob_outside_bases: bool = False,
    ) -> AddResult:
        """Adds rows."""

    @abstractmethod
    def delete(self, where: str) -> DeleteResult:
        """Deletes the rows for which the predicate is true."""

    @abstractmethod
    def search(
        self,
        query: "Optional[Union[VEC, str, Tuple]]" = None,
        vector_column_name: Optional[str] = None,
        query_type: QueryType = "auto",
        ordering_field_name: Optional[str] = None,
        fts_columns: Optional[Union[str, List[str]]] = None,
    ) -> LanceQueryBuilder:
        """Starts a search or a scan."""

    def __len__(self) -> int:
        """How many rows there are."""
        return self.count_rows()

    def to_pandas(self, blob_mode: BlobMode = "lazy", **kwargs) -> "pd.DataFrame":
        """All rows as a pandas frame; `kwargs` go to `pa.Table.to_pandas`.

        `blob_mode`: values of blob columns are files that read when they are used ("lazy"), bytes, or descriptions.
        """
        _blob.validate_blob_mode(blob_mode)
        plan = Plan(self._inner)
        if _blob.plan_shows_blobs(plan):
            return _blob.plan_frame(plan, blob_mode, None, None, kwargs)
        return self.to_arrow().to_pandas(**kwargs)


@not_built(*_later.TABLE, *_later.TABLE_WARM, *_later.TABLE_SYNC)
class LanceTable(SyncMaintenance, SchemaChanges, LsmMethods, BlobMethods, Table):
    """A table in a local or in-memory database. All methods block; they may be called from any thread and inside event loops."""

    def __init__(
        self,
        connection: "LanceDBConnection",
        name: str,
        *,
        namespace_path: Optional[List[str]] = None,
        storage_options: Optional[Dict[str, str]] = None,
        index_cache_size: Optional[int] = None,
        location: Optional[str] = None,
        namespace_client: Optional[Any] = None,
        managed_versioning: Optional[bool] = None,
        pushdown_operations: Optional[set] = None,
        route_pushdown_to_rust: bool = False,
        _async: "Optional[AsyncTable]" = None,
    ):
        if namespace_client or managed_versioning or pushdown_operations or route_pushdown_to_rust:
            raise refuse("opening a table through a namespace client")
        if location is not None:
            raise refuse("opening a table by location")
        self._conn = connection
        self._namespace = list(namespace_path or [])
        if _async is None:
            self._inner: "_NativeTable" = _database.open_table(connection._inner, name, namespace=namespace_path)
        else:
            self._inner = _async._inner

    @classmethod
    def _wrap(
        cls, connection: "LanceDBConnection", native: "_NativeTable", namespace_path: Optional[List[str]] = None
    ) -> "LanceTable":
        table = cls.__new__(cls)
        table._conn, table._inner, table._namespace = connection, native, list(namespace_path or [])
        return table

    @classmethod
    def open(
        cls,
        db: "LanceDBConnection",
        name: str,
        *,
        namespace_path: Optional[List[str]] = None,
        storage_options: Optional[Dict[str, str]] = None,
        index_cache_size: Optional[int] = None,
        location: Optional[str] = None,
        namespace_client: Optional[Any] = None,
        managed_versioning: Optional[bool] = None,
        pushdown_operations: Optional[set] = None,
    ) -> "LanceTable":
        """Opens a table of `db`. ValueError "Table 'x' was not found" when there is none."""
        return cls(
            db,
            name,
            namespace_path=namespace_path,
            storage_options=storage_options,
            index_cache_size=index_cache_size,
            location=location,
            namespace_client=namespace_client,
            managed_versioning=managed_versioning,
            pushdown_operations=pushdown_operations,
        )

    @classmethod
    def create(
        cls,
        db: "LanceDBConnection",
        name: str,
        data: "Optional[DATA]" = None,
        schema: "Optional[pyarrow.Schema]" = None,
        mode: CreateMode = "create",
        exist_ok: bool = False,
        on_bad_vectors: OnBadVectorsType = "error",
        fill_value: float = 0.0,
        embedding_functions: Optional[List[Any]] = None,
        *,
        namespace_path: Optional[List[str]] = None,
        storage_options: Optional[Dict[str, Union[str, bool]]] = None,
        data_storage_version: Optional[str] = None,
        enable_v2_manifest_paths: Optional[bool] = None,
        location: Optional[str] = None,
        namespace_client: Optional[Any] = None,
        pushdown_operations: Optional[set] = None,
        route_pushdown_to_rust: bool = False,
    ) -> "LanceTable":
        """Same as `db.create_table`."""
        if namespace_client or pushdown_operations or route_pushdown_to_rust:
            raise refuse("creating a table inside a namespace")
        if location is not None:
            raise refuse("creating a table by location")
        return db.create_table(
            name,
            data,
            schema,
            mode,
            exist_ok,
            on_bad_vectors,
            fill_value,
            embedding_functions,
            namespace_path=namespace_path,
            storage_options=storage_options,
            data_storage_version=data_storage_version,
            enable_v2_manifest_paths=enable_v2_manifest_paths,
        )

    def __repr__(self) -> str:
        return f"LanceTable(name={self.name!r}, _conn={self._conn!r})"

    # --- what it is ---

    @property
    def name(self) -> str:
        """The table's name."""
        return self._inner.name

    @property
    def id(self) -> str:
        """The name, with the namespace before it when there is one: "inside$name"."""
        return "$".join([*self._namespace, self._inner.name])

    @property
    def namespace(self) -> List[str]:
        """The path of the namespace that the table is in; `[]` for none."""
        return list(self._namespace)

    @property
    def uri(self) -> str:
        """Where the table is stored: a path for local databases."""
        return self._inner.uri

    @property
    def version(self) -> int:
        """The number of the version that reads see."""
        return self._inner.version()

    @property
    def schema(self) -> "pyarrow.Schema":
        """The columns, as an Arrow schema."""
        return self._inner.schema()

    @property
    def embedding_functions(self) -> Dict[str, Any]:
        """Vector column -> `EmbeddingFunctionConfig`. KeyError for a function that is not registered in this process."""
        return _handle.embedding_functions(self._inner)

    def stats(self) -> Dict[str, Any]:
        """`total_bytes`, `num_rows`, `num_indices` and `fragment_stats` (`num_fragments`, `num_small_fragments`, `lengths`)."""
        return self._inner.stats()

    def list_indices(self) -> Iterable[Any]:
        """The indices of the table: empty. NotImplementedError for a table that has some, which other programs can make."""
        return _handle.list_indices(self._inner)

    def index_stats(self, index_name: str) -> Optional[Any]:
        """None: there is no index of this name. NotImplementedError for a table that has indices."""
        return _handle.index_stats(self._inner, index_name)

    def current_branch(self) -> Optional[str]:
        """The branch that the handle is on: None, the main one."""
        return self._inner.current_branch()

    @property
    def branches(self) -> "Branches":
        """Lines of versions of their own."""
        return Branches(self)

    def uses_v2_manifest_paths(self) -> bool:
        """Whether manifests are named so that the newest is found first."""
        return self._inner.uses_v2_manifest_paths()

    def migrate_v2_manifest_paths(self) -> None:
        """Names manifests so that the newest is found first; nothing happens when they are. Nobody else may write meanwhile."""
        self._inner.migrate_manifest_names()

    def initial_storage_options(self) -> Optional[Dict[str, str]]:
        """Options of the object store: None for a local one."""
        return None

    def latest_storage_options(self) -> Optional[Dict[str, str]]:
        """Options of the object store: None for a local one."""
        return None

    # --- reading ---

    def count_rows(self, filter: Optional[str] = None) -> int:
        """How many rows there are, or for how many the SQL predicate is true. ValueError when it does not parse."""
        return self._inner.count_rows(_handle.check_filter(filter))

    def head(self, n: int = 5) -> "pyarrow.Table":
        """The first `n` rows. OverflowError for a negative number."""
        return _handle.head(self._inner, n)

    def to_arrow(self) -> "pyarrow.Table":
        """All rows as a `pa.Table`, in insertion order."""
        return Plan(self._inner).to_table()

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        """The rows as an Arrow stream, read as they are asked for: what DuckDB, Polars and pyarrow take a table by."""
        return self._inner.scan().__arrow_c_stream__(requested_schema)

    def to_polars(self, batch_size: Optional[int] = None) -> "pl.LazyFrame":
        """The table as a Polars LazyFrame, read when collected; `batch_size` bounds the rows read at a time."""
        return _handle.lazy_frame(self._inner, batch_size)

    def to_lance(self, **kwargs) -> "LanceDataset":
        """The present version as a `glaive.lance.LanceDataset`; `kwargs` go to `glaive.lance.dataset`."""
        return _handle.dataset(self._inner, kwargs)

    def search(
        self,
        query: "Optional[Union[VEC, str, Tuple]]" = None,
        vector_column_name: Optional[str] = None,
        query_type: QueryType = "auto",
        ordering_field_name: Optional[str] = None,
        fts_columns: Optional[Union[str, List[str]]] = None,
    ) -> LanceQueryBuilder:
        """Starts a search (exact nearest neighbours) or, with `query=None`, a scan.

        Args:
            query: a vector (list, tuple, numpy or Arrow array), or a list of vectors: each is searched for and the result has the
                column `query_index`. In a multivector column a list of vectors is one query. None: all rows.
            vector_column_name: which column to search; needed only when more than one fits the query's dimension.
            query_type: "auto" or "vector". "fts" and "hybrid" raise NotImplementedError for now.

        Returns a builder: add `where`, `select`, `limit`, ..., then ask for the result with `to_arrow`, `to_list`, ...
        """
        return LanceQueryBuilder.create(self, query, query_type, vector_column_name, ordering_field_name, fts_columns)

    def take_offsets(self, offsets: List[int]) -> LanceTakeQueryBuilder:
        """The rows at these positions (0 is the first row), in the table's order; positions behind the end are left out."""
        return LanceTakeQueryBuilder(_handle.take_offsets(self._inner, offsets))

    def take_row_ids(self, row_ids: List[int]) -> LanceTakeQueryBuilder:
        """The rows with these `_rowid`s, each once, in the table's order; ids that do not exist are left out."""
        return LanceTakeQueryBuilder(_handle.take_row_ids(self._inner, row_ids))

    def __getitems__(self, offsets: List[int]) -> "pyarrow.Table":
        """The rows at these positions in the order asked for, repeats included (what data loaders call)."""
        return self._inner.take_offsets(offsets)

    # --- writing ---

    def add(
        self,
        data: "DATA",
        mode: AddMode = "append",
        on_bad_vectors: OnBadVectorsType = "error",
        fill_value: float = 0.0,
        progress: Optional[Union[bool, Callable, Any]] = None,
        write_parallelism: Optional[int] = None,
        allow_external_blob_outside_bases: bool = False,
    ) -> AddResult:
        """Adds rows and returns the new version.

        Columns are matched by name at every level; missing nullable ones become null, values are cast to the table's types.

        Args:
            data: list of dicts or LanceModels, pandas or Polars frame, Arrow table, batch, reader, dataset or scanner, or an
                iterator of these.
            mode: "append", or "overwrite" to replace rows and schema.
            on_bad_vectors: what to do with vectors that are null, of another length or contain NaN: "error", "drop" the row,
                "fill" with `fill_value`, or make them "null".
            fill_value: see `on_bad_vectors`; None means 0.0.
            progress: True for a bar, a callable that gets a dict, or an object like a tqdm bar.
            write_parallelism: accepted for compatibility; the engine uses its own thread pool.

        Raises ValueError when the data does not fit (unknown column, null in a non-nullable one, failing cast, bad vector) or the
        table is checked out at a version; the table is unchanged then.
        """
        return _handle.add(
            self._inner, data, mode, on_bad_vectors, fill_value, progress, write_parallelism, allow_external_blob_outside_bases
        )

    def delete(self, where: str) -> DeleteResult:
        """Deletes the rows for which the SQL predicate is true ("true" for all), as a new version.

        ValueError when it does not parse or the table is checked out at a version.
        """
        return _handle.delete(self._inner, where)

    def update(
        self,
        where: Optional[str] = None,
        values: Optional[Dict[str, Any]] = None,
        *,
        values_sql: Optional[Dict[str, str]] = None,
    ) -> UpdateResult:
        """Gives columns new values in the rows for which `where` is true (all rows without it), as a new version.

        Args:
            where: a SQL predicate.
            values: column -> value: text, numbers, bytes, dates, None, lists and arrays, dicts for structs.
            values_sql: column -> SQL expression over the row as it was, such as {"n": "n + 1"}.

        Exactly one of `values` and `values_sql` must be given. Columns that are not named keep their values, blobs included.
        Updated rows move behind the others. ValueError for an unknown column, text that does not parse, a value that does not fit
        its column, or a null where the column allows none; the table is unchanged then.
        """
        return _changes.update(self._inner, where, values, values_sql)

    def merge_insert(self, on: Union[str, Iterable[str]]) -> LanceMergeInsertBuilder:
        """Starts a merge of new rows by key ("upsert", "insert if not exists", "replace a part"); `execute` of the result runs it.

        `on`: the column, or the columns, whose values say which rows belong together.

            table.merge_insert("id").when_matched_update_all().when_not_matched_insert_all().execute(rows)
        """
        return LanceMergeInsertBuilder(self, _merge.check_on(on))

    def _do_merge(self, builder, new_data, on_bad_vectors, fill_value, timeout) -> MergeResult:
        return _merge.execute(self._inner, builder, new_data, on_bad_vectors, fill_value, timeout)

    # --- versions ---

    @property
    def tags(self) -> Tags:
        """Names for versions."""
        return Tags(self)

    def list_versions(self) -> List[Dict[str, Any]]:
        """Oldest first: dicts with `version` (int), `timestamp` (datetime, local time) and `metadata` (dict)."""
        return _handle.list_versions(self._inner)

    def checkout(self, version: Union[int, str]) -> None:
        """Shows a version (by number or tag) and stays there. ValueError when it does not exist."""
        _handle.checkout(self._inner, version)

    def checkout_latest(self) -> None:
        """Shows the newest version, and follows again."""
        self._inner.checkout_latest()

    def restore(self, version: Optional[Union[int, str]] = None) -> None:
        """Makes a version (by number or tag; without argument the one checked out) the newest again, as a new version.

        ValueError when it does not exist, or without argument and checkout.
        """
        _handle.restore(self._inner, version)


declare(Table, LanceTable)

for _class in (AsyncBranches, AsyncTable, AsyncTags, Branches):
    _class.__module__ = __name__  # this is where users find them
