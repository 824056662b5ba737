"""Connections through namespace clients: the built-in one of directories ("dir"), which needs no server."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Dict, Iterable, List, Optional, Union

from . import _database, _namespaces, _pool
from ._namespaces import CreateNamespaceResponse, DescribeNamespaceResponse, DropNamespaceResponse, ListNamespacesResponse
from ._unsupported import not_built, refuse
from .db import AsyncConnection, LanceDBConnection, ListTablesResponse
from .exceptions import InvalidInputError, NotFoundError, NotSupportedError, namespace_error
from .job import AsyncJob
from .table import AsyncTable, LanceTable

if TYPE_CHECKING:
    import pyarrow

    from .common import DATA
    from .pydantic import LanceModel
    from .session import Session

__all__ = ["AsyncLanceNamespaceDBConnection", "LanceNamespaceDBConnection", "connect_namespace", "connect_namespace_async"]

_PUSHDOWN = ("QueryTable", "CreateTable")


def _directory(impl: Optional[str], properties: Optional[Dict[str, str]], client: Any) -> str:
    """The database's directory. ValueError when it is not given, NotImplementedError for anything but directories."""
    if client is not None:
        raise refuse("connecting through a namespace client of one's own")
    if impl != "dir":
        raise refuse(f"connecting through the namespace client {impl!r} ('dir' is there)")
    root = (properties or {}).get("root")
    if not root:
        raise InvalidInputError("Invalid input, Failed to connect to namespace: Missing required property 'root' for directory namespace")
    return root


def _pushdown(operations: Optional[Iterable[str]]) -> set:
    for operation in operations or ():
        if operation not in _PUSHDOWN:
            raise InvalidInputError(f"Invalid pushdown operation: {operation}")
    return set(operations or ())


def _no_rename() -> NotSupportedError:
    return NotSupportedError("LanceDBError: not supported: rename_table not implemented")


def _drop_table(native, name: str, namespace_path) -> None:
    path = _namespaces.check_path(namespace_path)
    _database.drop_table(native, name, path, False)
    if not path:  # other clients keep rows for tables outside of all namespaces too
        _namespaces._remove(native, name, "table")


def _missing(name: str, namespace_path) -> Exception:
    return namespace_error("TableNotFoundError", f"Table not found: {_namespaces.object_id(_namespaces.check_path(namespace_path), name)}")


class LanceNamespaceDBConnection(LanceDBConnection):
    """A database whose tables are found through a namespace client. Get one from `connect_namespace`.

    With the built-in client of directories it has the tables and namespaces that `connect(root)` has.
    """

    def __init__(
        self,
        namespace_client: Optional[Any] = None,
        *,
        read_consistency_interval: Optional[timedelta] = None,
        storage_options: Optional[Dict[str, str]] = None,
        session: "Optional[Session]" = None,
        namespace_client_pushdown_operations: Optional[List[str]] = None,
        namespace_client_impl: Optional[str] = None,
        namespace_client_properties: Optional[Dict[str, str]] = None,
        _inner: Optional[Any] = None,
    ):
        super().__init__(
            _directory(namespace_client_impl, namespace_client_properties, namespace_client),
            read_consistency_interval=read_consistency_interval,
            storage_options=storage_options,
            session=session,
            _inner=_inner,
        )
        self._namespace_client = None
        self._namespace_client_impl = namespace_client_impl
        self._namespace_client_properties = dict(namespace_client_properties or {})
        self._namespace_client_pushdown_operations = _pushdown(namespace_client_pushdown_operations)
        self._route_pushdown_to_rust = True

    __repr__ = object.__repr__

    @property
    def uri(self) -> str:
        """ "namespace://dir"."""
        return f"namespace://{self._namespace_client_impl}"

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
        """Opens a table; TableNotFoundError when there is none."""
        if not self.table_exists([*(namespace_path or []), name]):
            raise _missing(name, namespace_path)
        return super().open_table(
            name,
            namespace_path=namespace_path,
            storage_options=storage_options,
            index_cache_size=index_cache_size,
            branch=branch,
            version=version,
        )

    def drop_table(self, name: str, namespace_path: Optional[List[str]] = None) -> None:  # type: ignore[override]
        """Removes a table and its files. ValueError when there is none."""
        _drop_table(self._inner, name, namespace_path)

    def rename_table(
        self,
        cur_name: str,
        new_name: str,
        cur_namespace_path: Optional[List[str]] = None,
        new_namespace_path: Optional[List[str]] = None,
    ) -> None:
        """NotImplementedError: directories do not rename tables."""
        raise _no_rename()

    def namespace_exists(self, namespace_id: List[str]) -> bool:
        """Whether there is a namespace of this path."""
        return _namespace_exists(self._inner, namespace_id)

    def table_exists(self, table_id: List[str]) -> bool:
        """Whether there is a table of this path: its namespaces, then its name."""
        return _table_exists(self._inner, table_id)

    def serialize(self) -> str:
        """The connection as JSON; `glaive.deserialize_conn` makes an equal one of it."""
        interval = self._interval
        return json.dumps(
            {
                "connection_type": "namespace",
                "namespace_client_impl": self._namespace_client_impl,
                "namespace_client_properties": self._namespace_client_properties,
                "namespace_client_pushdown_operations": sorted(self._namespace_client_pushdown_operations),
                "storage_options": self._options,
                "read_consistency_interval_seconds": None if interval is None else interval.total_seconds(),
            }
        )


def _namespace_exists(native, namespace_id) -> bool:
    path = _namespaces.check_path(namespace_id)
    return not path or _namespaces._find(native, _namespaces.object_id(path), "namespace") is not None


def _table_exists(native, table_id) -> bool:
    path = tuple(table_id)
    if not path:
        raise InvalidInputError("a table's id has its name at the end")
    name, around = path[-1], _namespaces.check_path(path[:-1])
    try:
        return _namespaces.find_table(native, name, around) is not None if around else native.table_exists(name)
    except NotFoundError:
        return False


@not_built(
    "create_materialized_view",
    "create_materialized_view_async",
    "describe_query",
    "drop_materialized_view",
    "drop_materialized_view_async",
    "execute_query",
    "execute_query_async",
    "list_materialized_views",
    "open_materialized_view",
    asynchronous=True,
)
class AsyncLanceNamespaceDBConnection:
    """See `LanceNamespaceDBConnection`; the methods are coroutines."""

    def __init__(
        self,
        namespace_client: Optional[Any] = None,
        *,
        read_consistency_interval: Optional[timedelta] = None,
        storage_options: Optional[Dict[str, str]] = None,
        session: "Optional[Session]" = None,
        namespace_client_pushdown_operations: Optional[List[str]] = None,
        namespace_client_impl: Optional[str] = None,
        namespace_client_properties: Optional[Dict[str, str]] = None,
        _inner: Optional[AsyncConnection] = None,
    ):
        path = _database.local_path(_directory(namespace_client_impl, namespace_client_properties, namespace_client))
        if _inner is None:
            native = _database.open_native(path, read_consistency_interval, storage_options)
            _inner = AsyncConnection(native, _uri=path, _interval=read_consistency_interval)
        self._inner = _inner
        self._namespace_client = None
        self._namespace_client_pushdown_operations = _pushdown(namespace_client_pushdown_operations)
        self._route_pushdown_to_rust = True

    async def table_names(
        self, page_token: Optional[str] = None, limit: int = 10, *, namespace_path: Optional[List[str]] = None
    ) -> Iterable[str]:
        """Table names, sorted. Deprecated: see `list_tables`."""
        return await self._inner.table_names(namespace_path=namespace_path, start_after=page_token, limit=limit)

    async def list_tables(
        self, namespace_path: Optional[List[str]] = None, page_token: Optional[str] = None, limit: Optional[int] = None
    ) -> ListTablesResponse:
        """See `LanceDBConnection.list_tables`."""
        return await self._inner.list_tables(namespace_path, page_token, limit)

    async def create_table(
        self,
        name: str,
        data: "Optional[DATA]" = None,
        schema: "Optional[Union[pyarrow.Schema, LanceModel]]" = None,
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
    ) -> AsyncTable:
        """See `LanceDBConnection.create_table`."""
        return await self._inner.create_table(
            name,
            data,
            schema,
            mode,
            exist_ok,
            on_bad_vectors,
            fill_value,
            _database.new_table_options(storage_options, data_storage_version, enable_v2_manifest_paths),
            namespace_path=namespace_path,
            embedding_functions=embedding_functions,
        )

    async def open_table(
        self,
        name: str,
        *,
        namespace_path: Optional[List[str]] = None,
        storage_options: Optional[Dict[str, str]] = None,
        index_cache_size: Optional[int] = None,
        branch: Optional[str] = None,
        version: Optional[int] = None,
    ) -> AsyncTable:
        """See `LanceNamespaceDBConnection.open_table`."""
        if not await self.table_exists([*(namespace_path or []), name]):
            raise _missing(name, namespace_path)
        return await self._inner.open_table(name, namespace_path=namespace_path, branch=branch, version=version)

    async def drop_table(self, name: str, namespace_path: Optional[List[str]] = None) -> None:
        """See `LanceNamespaceDBConnection.drop_table`."""
        await _pool.run(_drop_table, self._inner._open_inner(), name, namespace_path)

    async def drop_table_async(self, name: str, namespace_path: Optional[List[str]] = None) -> AsyncJob:
        """Like `drop_table`; the job is done when this returns."""
        await self.drop_table(name, namespace_path)
        return AsyncJob()

    async def drop_all_tables(self, namespace_path: Optional[List[str]] = None) -> None:
        """See `LanceDBConnection.drop_all_tables`."""
        await self._inner.drop_all_tables(namespace_path)

    async def drop_database(self) -> None:
        """Old name of `drop_all_tables`."""
        await self._inner.drop_all_tables()

    async def rename_table(
        self,
        cur_name: str,
        new_name: str,
        cur_namespace_path: Optional[List[str]] = None,
        new_namespace_path: Optional[List[str]] = None,
    ) -> None:
        """NotImplementedError: directories do not rename tables."""
        raise _no_rename()

    async def list_namespaces(
        self, namespace_path: Optional[List[str]] = None, page_token: Optional[str] = None, limit: Optional[int] = None
    ) -> ListNamespacesResponse:
        """See `LanceDBConnection.list_namespaces`."""
        return await self._inner.list_namespaces(namespace_path, page_token, limit)

    async def create_namespace(
        self, namespace_path: List[str], mode: Optional[str] = None, properties: Optional[Dict[str, str]] = None
    ) -> CreateNamespaceResponse:
        """See `LanceDBConnection.create_namespace`."""
        return await self._inner.create_namespace(namespace_path, mode, properties)

    async def drop_namespace(
        self, namespace_path: List[str], mode: Optional[str] = None, behavior: Optional[str] = None
    ) -> DropNamespaceResponse:
        """See `LanceDBConnection.drop_namespace`."""
        return await self._inner.drop_namespace(namespace_path, mode, behavior)

    async def describe_namespace(self, namespace_path: List[str]) -> DescribeNamespaceResponse:
        """See `LanceDBConnection.describe_namespace`."""
        return await self._inner.describe_namespace(namespace_path)

    async def namespace_exists(self, namespace_id: List[str]) -> bool:
        """Whether there is a namespace of this path."""
        return await _pool.run(_namespace_exists, self._inner._open_inner(), namespace_id)

    async def table_exists(self, table_id: List[str]) -> bool:
        """Whether there is a table of this path: its namespaces, then its name."""
        return await _pool.run(_table_exists, self._inner._open_inner(), table_id)

    async def namespace_client(self) -> Any:
        """Not supported yet: raises NotImplementedError."""
        raise refuse("AsyncLanceNamespaceDBConnection.namespace_client")


def connect_namespace(
    namespace_client_impl: str,
    namespace_client_properties: Dict[str, str],
    *,
    read_consistency_interval: Optional[timedelta] = None,
    storage_options: Optional[Dict[str, str]] = None,
    session: "Optional[Session]" = None,
    namespace_client_pushdown_operations: Optional[List[str]] = None,
) -> LanceNamespaceDBConnection:
    """Opens a database through a namespace client.

    Args:
        namespace_client_impl: "dir", the client of directories. NotImplementedError for "rest" and clients of other packages.
        namespace_client_properties: of "dir": `root`, the directory.
        namespace_client_pushdown_operations: what a client does by itself ("QueryTable", "CreateTable"); one of directories is
            this library either way.

    The other arguments are those of `connect`.
    """
    return LanceNamespaceDBConnection(
        read_consistency_interval=read_consistency_interval,
        storage_options=storage_options,
        session=session,
        namespace_client_pushdown_operations=namespace_client_pushdown_operations,
        namespace_client_impl=namespace_client_impl,
        namespace_client_properties=namespace_client_properties,
    )


def connect_namespace_async(
    namespace_client_impl: str,
    namespace_client_properties: Dict[str, str],
    *,
    read_consistency_interval: Optional[timedelta] = None,
    storage_options: Optional[Dict[str, str]] = None,
    session: "Optional[Session]" = None,
    namespace_client_pushdown_operations: Optional[List[str]] = None,
) -> AsyncLanceNamespaceDBConnection:
    """See `connect_namespace`. No coroutine: it opens nothing but a directory."""
    return AsyncLanceNamespaceDBConnection(
        read_consistency_interval=read_consistency_interval,
        storage_options=storage_options,
        session=session,
        namespace_client_pushdown_operations=namespace_client_pushdown_operations,
        namespace_client_impl=namespace_client_impl,
        namespace_client_properties=namespace_client_properties,
    )


def deserialize_namespace(config: Dict[str, Any], for_worker: bool) -> LanceNamespaceDBConnection:
    """The connection that `LanceNamespaceDBConnection.serialize` described; keys with the prefix of workers win there."""
    properties = dict(config.get("namespace_client_properties") or {})
    prefix = "_lancedb_worker_"
    if for_worker:
        properties.update({key[len(prefix) :]: properties[key] for key in list(properties) if key.startswith(prefix)})
    seconds = config.get("read_consistency_interval_seconds")
    return connect_namespace(
        config["namespace_client_impl"],
        properties,
        read_consistency_interval=None if seconds is None else timedelta(seconds=seconds),
        storage_options=config.get("storage_options"),
        namespace_client_pushdown_operations=config.get("namespace_client_pushdown_operations"),
    )
