"""Connections to databases, sync and async."""

from __future__ import annotations

import json
import warnings
from abc import ABC, abstractmethod
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Dict, Iterable, List, Optional

from . import _branches, _database, _later
from ._lazy import lazy
from ._database import ListTablesResponse
from ._db_async import AsyncConnection
from ._glaive import Connection as _NativeConnection
from ._unsupported import declare, not_built, refuse
from .common import URI
from .exceptions import InvalidInputError
from .job import Job
from .table import LanceTable

if TYPE_CHECKING:
    import pyarrow

    from ._namespaces import CreateNamespaceResponse, DescribeNamespaceResponse, DropNamespaceResponse, ListNamespacesResponse

    from .common import DATA
    from .pydantic import LanceModel
    from .session import Session
    from .table import Table

_namespaces = lazy("_namespaces")

__all__ = ["AsyncConnection", "DBConnection", "LanceDBConnection", "ListTablesResponse"]


class DBConnection(ABC):
    """A database: named tables in one place. Get one from `glaive.connect`."""

    @property
    @abstractmethod
    def uri(self) -> str:
        """Where the database is."""

    @abstractmethod
    def list_tables(
        self, namespace_path: Optional[List[str]] = None, page_token: Optional[str] = None, limit: Optional[int] = None
    ) -> ListTablesResponse:
        """One page of the table names, sorted."""

    @abstractmethod
    def table_names(
        self, page_token: Optional[str] = None, limit: int = 10, *, namespace_path: Optional[List[str]] = None
    ) -> Iterable[str]:
        """Table names, sorted. Deprecated: see `list_tables`."""

    @abstractmethod
    def create_table(
        self,
        name: str,
        data: "Optional[DATA]" = None,
        schema: "Optional[pyarrow.Schema | type[LanceModel]]" = None,
        mode: str = "create",
        exist_ok: bool = False,
        on_bad_vectors: str = "error",
        fill_value: float = 0.0,
        embedding_functions: Optional[List[Any]] = None,
        *,
        namespace_path: Optional[List[str]] = None,
        storage_options: Optional[Dict[str, str]] = None,
        data_storage_version: Optional[str] = None,
        enable_v2_manifest_paths: Optional[bool] = None,
    ) -> "Table":
        """Creates a table."""

    @abstractmethod
    def open_table(
        self,
        name: str,
        *,
        namespace_path: Optional[List[str]] = None,
        storage_options: Optional[Dict[str, str]] = None,
        index_cache_size: Optional[int] = None,
        branch: Optional[str] = None,
        version: Optional[int] = None,
    ) -> "Table":
        """Opens a table."""

    @abstractmethod
    def drop_table(self, name: str, namespace_path: Optional[List[str]] = None) -> None:
        """Removes a table."""

    def __getitem__(self, name: str) -> "Table":
        """Same as `open_table(name)`."""
        return self.open_table(name)


@not_built(*_later.DATABASE, "create_function", "namespace_exists", "table_exists")
class LanceDBConnection(DBConnection):
    """A database in a directory or in memory.

    Tables are directories `NAME.lance` below `uri`. All methods block; they may be called from any thread, inside event loops,
    and in forked children.
    """

    def __init__(
        self,
        uri: URI,
        *,
        read_consistency_interval: Optional[timedelta] = None,
        storage_options: Optional[Dict[str, str]] = None,
        session: "Optional[Session]" = None,
        manifest_enabled: bool = False,
        namespace_client_properties: Optional[Dict[str, str]] = None,
        _inner: Optional[_NativeConnection] = None,
    ):
        if manifest_enabled or namespace_client_properties:
            raise refuse("a local database with namespaces (manifest_enabled)")
        self._uri = _database.local_path(uri)
        self._interval = read_consistency_interval
        self._options = _database.check_options(storage_options)
        self._session = session
        self._inner = _inner or _database.open_native(self._uri, read_consistency_interval, self._options)

    @classmethod
    def from_inner(cls, inner: _NativeConnection, read_consistency_interval: Optional[timedelta]) -> "LanceDBConnection":
        """The connection around one of the engine."""
        made = cls.__new__(cls)
        made._uri, made._interval, made._options, made._session, made._inner = inner.uri, read_consistency_interval, None, None, inner
        return made

    def __repr__(self) -> str:
        return f"LanceDBConnection(uri={self._uri!r})"

    @property
    def uri(self) -> str:
        """The absolute path of the directory, or "memory://"."""
        return self._uri

    @property
    def read_consistency_interval(self) -> Optional[timedelta]:
        """When table handles look for versions of other writers: None, only at `checkout_latest`; 0, at each read; else when the
        last look is older."""
        return self._interval

    @property
    def storage_options(self) -> Optional[Dict[str, str]]:
        """The options given to `connect`."""
        return self._options

    @property
    def session(self) -> "Optional[Session]":
        """The session given to `connect`."""
        return self._session

    # --- names ---

    def list_tables(
        self, namespace_path: Optional[List[str]] = None, page_token: Optional[str] = None, limit: Optional[int] = None
    ) -> ListTablesResponse:
        """Table names, sorted: `.tables`, and `.page_token` for the next page (None at the end). All unless `limit` is given."""
        return _database.list_tables(self._inner, page_token, limit, namespace_path)

    def table_names(
        self, page_token: Optional[str] = None, limit: int = 10, *, namespace_path: Optional[List[str]] = None
    ) -> Iterable[str]:
        """At most `limit` table names, sorted, after the name `page_token`. Deprecated: see `list_tables`."""
        warnings.warn("table_names is deprecated, use list_tables", DeprecationWarning, stacklevel=2)
        return _database.table_names(self._inner, page_token, limit, namespace_path)

    def __len__(self) -> int:
        """How many tables there are."""
        return len(self._inner.table_names())

    def __contains__(self, name: str) -> bool:
        """Whether there is a table of this name."""
        try:
            return self._inner.table_exists(name)
        except (InvalidInputError, TypeError):
            return False

    # --- tables ---

    def create_table(
        self,
        name: str,
        data: "Optional[DATA]" = None,
        schema: "Optional[pyarrow.Schema | type[LanceModel]]" = None,
        mode: str = "create",
        exist_ok: bool = False,
        on_bad_vectors: str = "error",
        fill_value: float = 0.0,
        embedding_functions: Optional[List[Any]] = None,
        *,
        namespace_path: Optional[List[str]] = None,
        storage_options: Optional[Dict[str, str]] = None,
        data_storage_version: Optional[str] = None,
        enable_v2_manifest_paths: Optional[bool] = None,
    ) -> LanceTable:
        """Creates a table (its version 1) and opens it.

        Args:
            name: letters, digits, "_", "-", "." (ValueError otherwise).
            data: rows; see `LanceTable.add` for what may be given. None: an empty table with `schema`.
            schema: a `pa.Schema` or a LanceModel class; the data is cast to it. Without it, lists in columns whose name contains
                "vector" or "embedding" become vectors: float32, or uint8 when all values are integers in 0..255.
            mode: "create" (ValueError when the table exists) or "overwrite" (replaces rows and schema, as a new version).
            exist_ok: with "create", opens a table that exists and leaves the data alone; ValueError when `schema` differs.
            on_bad_vectors, fill_value: see `LanceTable.add`; null vectors count as bad here.
            embedding_functions: `EmbeddingFunctionConfig`s, stored with the table: they fill vector columns that rows lack.
            storage_options: may hold `new_table_data_storage_version` ("2.0", "2.1", "2.2", "stable", ...),
                `new_table_enable_v2_manifest_paths` and `new_table_enable_stable_row_ids` ("true" or "false").
            data_storage_version, enable_v2_manifest_paths: deprecated names of the same.
        """
        if not isinstance(mode, str) or mode.lower() not in ("create", "overwrite"):
            raise InvalidInputError("mode must be either 'create' or 'overwrite'")
        options = _database.new_table_options(storage_options, data_storage_version, enable_v2_manifest_paths)
        native = _database.create_table(
            self._inner,
            name,
            data,
            schema,
            mode,
            exist_ok,
            on_bad_vectors,
            fill_value,
            options,
            embedding_functions,
            namespace_path,
        )
        return LanceTable._wrap(self, native, namespace_path)

    def open_table(
        self,
        name: str,
        *,
        namespace_path: Optional[List[str]] = None,
        storage_options: Optional[Dict[str, str]] = None,
        index_cache_size: Optional[int] = None,
        branch: Optional[str] = None,
        version: Optional[int] = None,
    ) -> LanceTable:
        """Opens a table, at `version` (and staying there) if given. ValueError "Table 'x' was not found" when there is none."""
        if index_cache_size is not None:
            warnings.warn("index_cache_size is deprecated and has no effect", DeprecationWarning, stacklevel=2)
        native = _database.open_table(self._inner, name, version, branch, namespace_path)
        return LanceTable._wrap(self, native, namespace_path)

    def clone_table(
        self,
        target_table_name: str,
        source_uri: str,
        *,
        target_namespace_path: Optional[List[str]] = None,
        source_version: Optional[int] = None,
        source_tag: Optional[str] = None,
        is_shallow: bool = True,
    ) -> LanceTable:
        """A new table that begins with the files of the table at `source_uri`, where they are. RuntimeError when either does not fit."""
        native = _branches.clone_table(
            self._inner, target_table_name, source_uri, target_namespace_path, source_version, source_tag, is_shallow
        )
        return LanceTable._wrap(self, native)

    def drop_table(self, name: str, namespace_path: Optional[List[str]] = None, ignore_missing: bool = False) -> None:
        """Removes a table and its files. ValueError when there is none, unless `ignore_missing`."""
        _database.drop_table(self._inner, name, namespace_path, ignore_missing)

    def drop_table_async(self, name: str, namespace_path: Optional[List[str]] = None) -> Job:
        """Like `drop_table`; local databases are done when it returns."""
        self.drop_table(name, namespace_path)
        return Job()

    def drop_all_tables(self, namespace_path: Optional[List[str]] = None) -> None:
        """Removes all tables of a namespace, or those outside of all namespaces."""
        _database.drop_all_tables(self._inner, namespace_path)

    # --- namespaces ---

    def list_namespaces(
        self, namespace_path: Optional[List[str]] = None, page_token: Optional[str] = None, limit: Optional[int] = None
    ) -> ListNamespacesResponse:
        """Names of the namespaces directly in one (by default those at the top), sorted: `.namespaces`, and `.page_token` for the
        next page."""
        return _namespaces.list_namespaces(self._inner, namespace_path, page_token, limit)

    def create_namespace(
        self, namespace_path: List[str], mode: Optional[str] = None, properties: Optional[Dict[str, str]] = None
    ) -> CreateNamespaceResponse:
        """Makes a namespace, in which tables may have names that others have elsewhere.

        Args:
            namespace_path: the namespaces around it, which must exist, and its name.
            mode: "create" (RuntimeError when it exists), "exist_ok" (it stays as it is) or "overwrite" (it gets the properties).
            properties: text to text, kept with it.
        """
        return _namespaces.create_namespace(self._inner, namespace_path, mode, properties)

    def drop_namespace(
        self, namespace_path: List[str], mode: Optional[str] = None, behavior: Optional[str] = None
    ) -> DropNamespaceResponse:
        """Removes a namespace.

        Args:
            mode: "fail" (RuntimeError when there is none) or "skip".
            behavior: "restrict" (NamespaceNotEmptyError when it holds something) or "cascade" (with all that it holds).
        """
        return _namespaces.drop_namespace(self._inner, namespace_path, mode, behavior)

    def describe_namespace(self, namespace_path: List[str]) -> DescribeNamespaceResponse:
        """The properties of a namespace. RuntimeError when there is none."""
        return _namespaces.describe_namespace(self._inner, namespace_path)

    def drop_database(self) -> None:
        """Old name of `drop_all_tables`."""
        warnings.warn("drop_database is deprecated, use drop_all_tables", DeprecationWarning, stacklevel=2)
        self.drop_all_tables()

    def rename_table(
        self,
        cur_name: str,
        new_name: str,
        cur_namespace_path: Optional[List[str]] = None,
        new_namespace_path: Optional[List[str]] = None,
    ) -> None:
        """NotImplementedError: tables of local databases keep their names."""
        raise _database.no_rename()

    def serialize(self) -> str:
        """The connection as JSON; `glaive.deserialize_conn` makes an equal one of it."""
        return json.dumps(
            {
                "connection_type": "local",
                "uri": self._uri,
                "storage_options": self._options,
                "manifest_enabled": False,
                "namespace_client_properties": None,
                "read_consistency_interval_seconds": None if self._interval is None else self._interval.total_seconds(),
            }
        )


declare(DBConnection, LanceDBConnection)


def deserialize_local(config: Dict[str, Any]) -> LanceDBConnection:
    """The connection that `LanceDBConnection.serialize` described."""
    seconds = config.get("read_consistency_interval_seconds")
    return LanceDBConnection(
        config["uri"],
        read_consistency_interval=None if seconds is None else timedelta(seconds=seconds),
        storage_options=config.get("storage_options"),
        manifest_enabled=config.get("manifest_enabled") or False,
        namespace_client_properties=config.get("namespace_client_properties"),
    )


for _class in (AsyncConnection, ListTablesResponse):
    _class.__module__ = __name__  # this is where users find them
