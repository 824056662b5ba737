"""Connections to databases, sync and async."""

from __future__ import annotations

import json
import warnings
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Dict, Iterable, List, Optional

from . import _ingest, _pool
from ._glaive import Connection as _NativeConnection
from ._plan import check_count
from ._unsupported import not_built, refuse
from .common import URI
from .exceptions import ClosedError, InvalidInputError, InvalidTypeError
from .job import AsyncJob, Job
from .table import AsyncTable, LanceTable
from .util import get_uri_location, get_uri_scheme

if TYPE_CHECKING:
    import pyarrow

    from .common import DATA
    from .pydantic import LanceModel
    from .session import Session
    from .table import Table

__all__ = ["AsyncConnection", "DBConnection", "LanceDBConnection", "ListTablesResponse"]

_LATER = (
    "alter_secret cancel_job clone_table create_function_async create_materialized_view create_materialized_view_async "
    "create_namespace create_secret create_view describe_namespace describe_query describe_secret describe_view drop_function "
    "drop_function_async drop_materialized_view drop_materialized_view_async drop_namespace drop_secret drop_view drop_view_async "
    "execute_query execute_query_async get_function list_functions list_jobs list_materialized_views list_namespaces list_secrets "
    "list_views namespace_client open_job open_materialized_view pause_job resume_job"
).split()


@dataclass
class ListTablesResponse:
    """One page of table names; `page_token`, when not None, asks for the next one."""

    context: Optional[Dict[str, str]] = None
    tables: List[str] = field(default_factory=list)
    page_token: Optional[str] = None


def describe_interval(interval: Optional[timedelta]) -> str:
    """"None", "5s", "250ms"."""
    if interval is None:
        return "None"
    seconds = interval.total_seconds()
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:g}{unit}"
    return "0ns"


def check_options(options: Optional[Dict[str, Any]]) -> Optional[Dict[str, str]]:
    """Storage options; TypeError unless they map text to text."""
    if options is None:
        return None
    for key, value in options.items():
        if not isinstance(key, str) or not isinstance(value, str):
            raise InvalidTypeError(f"storage_options must map text to text, not {key!r} to {value!r}")
    return dict(options)


def refuse_namespace(path: Optional[List[str]], what: str) -> None:
    if path:
        raise refuse(f"{what} inside a namespace")


def local_path(uri: URI) -> str:
    """The absolute path of a local database, its directory made; other addresses as they are."""
    if not isinstance(uri, (str, Path)):
        raise InvalidTypeError(f"a database address must be a str or a Path, not {type(uri).__name__}")
    text = str(uri)
    if get_uri_scheme(text) != "file":
        return text
    path = Path(text if isinstance(uri, Path) else get_uri_location(text)).expanduser().absolute()
    path.mkdir(parents=True, exist_ok=True)
    return str(path)


def open_native(uri: str, interval: Optional[timedelta], options: Optional[Dict[str, str]]) -> _NativeConnection:
    if interval is not None and not isinstance(interval, timedelta):
        raise InvalidTypeError("read_consistency_interval must be a datetime.timedelta")
    seconds = None if interval is None else interval.total_seconds()
    if seconds is not None and seconds < 0:
        raise InvalidInputError("read_consistency_interval must not be negative")
    return _NativeConnection(uri, read_consistency_interval=seconds, storage_options=check_options(options))


# --- blocking operations shared by the sync and the async class ---------------------------------------------


def _check_name(name) -> str:
    if not isinstance(name, str):
        raise InvalidTypeError(f"a table name must be text, not {name!r}")
    return name


def _list_tables(native, page_token, limit) -> ListTablesResponse:
    if limit is None:
        return ListTablesResponse(tables=native.table_names(page_token))
    limit = check_count("limit", limit)
    names = native.table_names(page_token, limit + 1)
    more = len(names) > limit
    names = names[:limit]
    return ListTablesResponse(tables=names, page_token=names[-1] if more and names else None)


def _open(native, name, version=None):
    version = None if version is None else check_count("version", version, 2**64 - 1)
    if version is None:
        return native.open_table(_check_name(name))
    table = native.open_table(_check_name(name))
    from . import _handle

    _handle.checkout(table, version)
    return table


def _create(native, name, data, schema, mode, exist_ok, on_bad_vectors, fill_value, options):
    """Creates or opens; the engine's table handle."""
    mode = "create" if mode is None else mode
    if mode not in ("create", "overwrite"):
        raise InvalidInputError(f"Invalid mode {mode}: 'create' or 'overwrite' is expected")
    _check_name(name)
    options = check_options(options)
    wanted = _ingest.as_schema(schema)
    if data is None:
        if wanted is None:
            raise InvalidInputError("Either data or schema must be provided")
        _ingest.validate_schema(wanted)
    incoming = None
    if not (exist_ok and mode == "create" and native.table_exists(name)):
        if data is None:
            send = lambda call: call(wanted)  # noqa: E731
        else:
            incoming = _ingest.for_new_table(data, schema, on_bad_vectors, fill_value)
            send = incoming.send
        how = "exist_ok" if exist_ok and mode == "create" else mode
        table = send(lambda payload: native.create_table(name, payload, mode=how, storage_options=options))
    else:
        table = native.open_table(name)
    if exist_ok and mode == "create" and wanted is not None:
        _ingest.check_existing_schema(table.schema(), wanted)
    return table


def _new_table_options(storage_options, data_storage_version, enable_v2_manifest_paths):
    """`storage_options` with the two deprecated arguments folded in."""
    for name, value in (
        ("data_storage_version", data_storage_version),
        ("enable_v2_manifest_paths", None if enable_v2_manifest_paths is None else str(bool(enable_v2_manifest_paths)).lower()),
    ):
        if value is None:
            continue
        warnings.warn(f"{name} is deprecated, use storage_options={{'new_table_{name}': ...}}", DeprecationWarning, stacklevel=3)
        storage_options = {f"new_table_{name}": value, **(storage_options or {})}
    return storage_options


# --- sync ---------------------------------------------------------------------------------------------------


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


@not_built(*_LATER, "create_function", "namespace_exists", "table_exists")
class LanceDBConnection(DBConnection):
    """A database in a directory or in memory.

    Tables are directories `NAME.lance` below `uri`. All methods block; they may be called from any thread, inside event loops, and in
    forked children.
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
        self._uri = local_path(uri)
        self._interval = read_consistency_interval
        self._options = check_options(storage_options)
        self._session = session
        self._inner = _inner or open_native(self._uri, read_consistency_interval, self._options)

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
    def session(self) -> "Optional[Session]":
        """The session given to `connect`."""
        return self._session

    # --- names ---

    def list_tables(
        self, namespace_path: Optional[List[str]] = None, page_token: Optional[str] = None, limit: Optional[int] = None
    ) -> ListTablesResponse:
        """Table names, sorted: `.tables`, and `.page_token` to ask for the next page (None at the end). All unless `limit` is given."""
        refuse_namespace(namespace_path, "list_tables")
        return _list_tables(self._inner, page_token, limit)

    def table_names(
        self, page_token: Optional[str] = None, limit: int = 10, *, namespace_path: Optional[List[str]] = None
    ) -> Iterable[str]:
        """At most `limit` table names, sorted, after the name `page_token`. Deprecated: see `list_tables`."""
        warnings.warn("table_names is deprecated, use list_tables", DeprecationWarning, stacklevel=2)
        refuse_namespace(namespace_path, "table_names")
        return self._inner.table_names(page_token, None if limit is None else check_count("limit", limit))

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
            storage_options: may hold `new_table_data_storage_version` ("2.0", "2.1", "2.2", "stable", ...),
                `new_table_enable_v2_manifest_paths` and `new_table_enable_stable_row_ids` ("true" or "false").
            data_storage_version, enable_v2_manifest_paths: deprecated names of the same.
        """
        if embedding_functions:
            raise refuse("create_table with embedding_functions")
        refuse_namespace(namespace_path, "create_table")
        if not isinstance(mode, str) or mode.lower() not in ("create", "overwrite"):
            raise InvalidInputError("mode must be either 'create' or 'overwrite'")
        options = _new_table_options(storage_options, data_storage_version, enable_v2_manifest_paths)
        native = _create(self._inner, name, data, schema, mode, exist_ok, on_bad_vectors, fill_value, options)
        return LanceTable._wrap(self, native)

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
        refuse_namespace(namespace_path, "open_table")
        if branch not in (None, "main"):
            raise refuse("open_table with a branch")
        if index_cache_size is not None:
            warnings.warn("index_cache_size is deprecated and has no effect", DeprecationWarning, stacklevel=2)
        return LanceTable._wrap(self, _open(self._inner, name, version))

    def drop_table(self, name: str, namespace_path: Optional[List[str]] = None, ignore_missing: bool = False) -> None:
        """Removes a table and its files. ValueError when there is none, unless `ignore_missing`."""
        refuse_namespace(namespace_path, "drop_table")
        self._inner.drop_table(_check_name(name), ignore_missing=bool(ignore_missing))

    def drop_table_async(self, name: str, namespace_path: Optional[List[str]] = None) -> Job:
        """Like `drop_table`; local databases are done when it returns."""
        self.drop_table(name, namespace_path)
        return Job()

    def drop_all_tables(self, namespace_path: Optional[List[str]] = None) -> None:
        """Removes all tables."""
        refuse_namespace(namespace_path, "drop_all_tables")
        self._inner.drop_all_tables()

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
        raise _no_rename()

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


def _no_rename():
    from .exceptions import NotSupportedError

    return NotSupportedError("LanceDBError: not supported: rename_table is not supported in LanceDB OSS")


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


# --- async --------------------------------------------------------------------------------------------------


@not_built(*_LATER, asynchronous=True)
class AsyncConnection:
    """A database for async code. Get one from `await glaive.connect_async(...)`.

    Methods are coroutines unless noted. Usable as a context manager: `with await connect_async(...) as db`.
    """

    def __init__(self, connection: _NativeConnection, *, _uri: Optional[str] = None, _interval: Optional[timedelta] = None):
        self._inner = connection
        self._uri = _uri or connection.uri
        self._interval = _interval

    def __repr__(self) -> str:
        if not self.is_open():
            return "ClosedConnection"
        return f"ListingDatabase(uri={self._uri}, read_consistency_interval={describe_interval(self._interval)})"

    def __enter__(self) -> "AsyncConnection":
        return self

    def __exit__(self, *_) -> None:
        self.close()

    # --- not coroutines ---

    @property
    def uri(self) -> str:
        """The absolute path of the directory, or "memory://"."""
        return self._uri

    def is_open(self) -> bool:
        """False after `close`."""
        return self._inner.is_open

    def close(self) -> None:
        """Later calls raise RuntimeError "Connection is closed"; tables that are open stay usable."""
        self._inner.close()

    def _open_inner(self) -> _NativeConnection:
        if not self._inner.is_open:
            raise ClosedError("Connection is closed")
        return self._inner

    # --- coroutines ---

    async def get_read_consistency_interval(self) -> Optional[timedelta]:
        """See `LanceDBConnection.read_consistency_interval`."""
        return self._interval

    async def table_names(
        self,
        *,
        namespace_path: Optional[List[str]] = None,
        start_after: Optional[str] = None,
        limit: Optional[int] = None,
    ) -> Iterable[str]:
        """Table names, sorted, after the name `start_after`; all unless `limit` is given. Deprecated: see `list_tables`."""
        warnings.warn("table_names is deprecated, use list_tables", DeprecationWarning, stacklevel=2)
        refuse_namespace(namespace_path, "table_names")
        limit = None if limit is None else check_count("limit", limit)
        return await _pool.run(self._open_inner().table_names, start_after, limit)

    async def list_tables(
        self, namespace_path: Optional[List[str]] = None, page_token: Optional[str] = None, limit: Optional[int] = None
    ) -> ListTablesResponse:
        """See `LanceDBConnection.list_tables`."""
        refuse_namespace(namespace_path, "list_tables")
        return await _pool.run(_list_tables, self._open_inner(), page_token, limit)

    async def create_table(
        self,
        name: str,
        data: "Optional[DATA]" = None,
        schema: "Optional[pyarrow.Schema | type[LanceModel]]" = None,
        mode: Optional[str] = None,
        exist_ok: Optional[bool] = None,
        on_bad_vectors: Optional[str] = None,
        fill_value: Optional[float] = None,
        storage_options: Optional[Dict[str, str]] = None,
        *,
        namespace_path: Optional[List[str]] = None,
        embedding_functions: Optional[List[Any]] = None,
        location: Optional[str] = None,
        namespace_client: Optional[Any] = None,
    ) -> AsyncTable:
        """See `LanceDBConnection.create_table`."""
        if embedding_functions:
            raise refuse("create_table with embedding_functions")
        if location is not None or namespace_client is not None:
            raise refuse("create_table with a location or namespace client")
        refuse_namespace(namespace_path, "create_table")
        native = await _pool.run(
            _create, self._open_inner(), name, data, schema, mode, bool(exist_ok), on_bad_vectors, fill_value, storage_options
        )
        return AsyncTable(native, _interval=self._interval)

    async def open_table(
        self,
        name: str,
        *,
        namespace_path: Optional[List[str]] = None,
        storage_options: Optional[Dict[str, str]] = None,
        index_cache_size: Optional[int] = None,
        location: Optional[str] = None,
        namespace_client: Optional[Any] = None,
        managed_versioning: Optional[bool] = None,
        branch: Optional[str] = None,
        version: Optional[int] = None,
    ) -> AsyncTable:
        """See `LanceDBConnection.open_table`."""
        refuse_namespace(namespace_path, "open_table")
        if location is not None or namespace_client is not None or managed_versioning:
            raise refuse("open_table with a location or namespace client")
        if branch not in (None, "main"):
            raise refuse("open_table with a branch")
        return AsyncTable(await _pool.run(_open, self._open_inner(), name, version), _interval=self._interval)

    async def drop_table(
        self, name: str, *, namespace_path: Optional[List[str]] = None, ignore_missing: bool = False
    ) -> None:
        """See `LanceDBConnection.drop_table`."""
        refuse_namespace(namespace_path, "drop_table")
        await _pool.run(self._open_inner().drop_table, _check_name(name), ignore_missing=bool(ignore_missing))

    async def drop_table_async(self, name: str, *, namespace_path: Optional[List[str]] = None) -> AsyncJob:
        """Like `drop_table`; local databases are done when it returns."""
        await self.drop_table(name, namespace_path=namespace_path)
        return AsyncJob()

    async def drop_all_tables(self, namespace_path: Optional[List[str]] = None) -> None:
        """Removes all tables."""
        refuse_namespace(namespace_path, "drop_all_tables")
        await _pool.run(self._open_inner().drop_all_tables)

    async def drop_database(self) -> None:
        """Old name of `drop_all_tables`."""
        warnings.warn("drop_database is deprecated, use drop_all_tables", DeprecationWarning, stacklevel=2)
        await self.drop_all_tables()

    async def rename_table(
        self,
        cur_name: str,
        new_name: str,
        cur_namespace_path: Optional[List[str]] = None,
        new_namespace_path: Optional[List[str]] = None,
    ) -> None:
        """NotImplementedError: tables of local databases keep their names."""
        raise _no_rename()
