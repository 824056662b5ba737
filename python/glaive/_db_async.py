"""Connections for async code; see db.py."""

from __future__ import annotations

import warnings
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Dict, Iterable, List, Optional

from . import _branches, _database, _later, _pool
from ._lazy import lazy
from ._database import ListTablesResponse
from ._glaive import Connection as _NativeConnection
from ._unsupported import not_built, refuse
from .exceptions import ClosedError
from .job import AsyncJob
from .table import AsyncTable

if TYPE_CHECKING:
    import pyarrow

    from ._namespaces import CreateNamespaceResponse, DescribeNamespaceResponse, DropNamespaceResponse, ListNamespacesResponse

    from .common import DATA
    from .pydantic import LanceModel


_namespaces = lazy("_namespaces")

@not_built(*_later.DATABASE, asynchronous=True)
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
        return f"ListingDatabase(uri={self._uri}, read_consistency_interval={_database.describe_interval(self._interval)})"

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
        return await _pool.run(_database.table_names, self._open_inner(), start_after, limit, namespace_path)

    async def list_tables(
        self, namespace_path: Optional[List[str]] = None, page_token: Optional[str] = None, limit: Optional[int] = None
    ) -> ListTablesResponse:
        """See `LanceDBConnection.list_tables`."""
        return await _pool.run(_database.list_tables, self._open_inner(), page_token, limit, namespace_path)

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
        if location is not None or namespace_client is not None:
            raise refuse("create_table with a location or namespace client")
        native = await _pool.run(
            _database.create_table,
            self._open_inner(),
            name,
            data,
            schema,
            mode,
            bool(exist_ok),
            on_bad_vectors,
            fill_value,
            storage_options,
            embedding_functions,
            namespace_path,
        )
        return AsyncTable(native, namespace_path=namespace_path, _interval=self._interval)

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
        if location is not None or namespace_client is not None or managed_versioning:
            raise refuse("open_table with a location or namespace client")
        native = await _pool.run(_database.open_table, self._open_inner(), name, version, branch, namespace_path)
        return AsyncTable(native, namespace_path=namespace_path, _interval=self._interval)

    async def clone_table(
        self,
        target_table_name: str,
        source_uri: str,
        *,
        target_namespace_path: Optional[List[str]] = None,
        source_version: Optional[int] = None,
        source_tag: Optional[str] = None,
        is_shallow: bool = True,
    ) -> AsyncTable:
        """See `LanceDBConnection.clone_table`."""
        native = await _pool.run(
            _branches.clone_table,
            self._open_inner(),
            target_table_name,
            source_uri,
            target_namespace_path,
            source_version,
            source_tag,
            is_shallow,
        )
        return AsyncTable(native, _interval=self._interval)

    async def drop_table(
        self, name: str, *, namespace_path: Optional[List[str]] = None, ignore_missing: bool = False
    ) -> None:
        """See `LanceDBConnection.drop_table`."""
        await _pool.run(_database.drop_table, self._open_inner(), name, namespace_path, ignore_missing)

    async def drop_table_async(self, name: str, *, namespace_path: Optional[List[str]] = None) -> AsyncJob:
        """Like `drop_table`; local databases are done when it returns."""
        await self.drop_table(name, namespace_path=namespace_path)
        return AsyncJob()

    async def drop_all_tables(self, namespace_path: Optional[List[str]] = None) -> None:
        """See `LanceDBConnection.drop_all_tables`."""
        await _pool.run(_database.drop_all_tables, self._open_inner(), namespace_path)

    async def list_namespaces(
        self, namespace_path: Optional[List[str]] = None, page_token: Optional[str] = None, limit: Optional[int] = None
    ) -> ListNamespacesResponse:
        """See `LanceDBConnection.list_namespaces`."""
        return await _pool.run(_namespaces.list_namespaces, self._open_inner(), namespace_path, page_token, limit)

    async def create_namespace(
        self, namespace_path: List[str], mode: Optional[str] = None, properties: Optional[Dict[str, str]] = None
    ) -> CreateNamespaceResponse:
        """See `LanceDBConnection.create_namespace`."""
        return await _pool.run(_namespaces.create_namespace, self._open_inner(), namespace_path, mode, properties)

    async def drop_namespace(
        self, namespace_path: List[str], mode: Optional[str] = None, behavior: Optional[str] = None
    ) -> DropNamespaceResponse:
        """See `LanceDBConnection.drop_namespace`."""
        return await _pool.run(_namespaces.drop_namespace, self._open_inner(), namespace_path, mode, behavior)

    async def describe_namespace(self, namespace_path: List[str]) -> DescribeNamespaceResponse:
        """See `LanceDBConnection.describe_namespace`."""
        return await _pool.run(_namespaces.describe_namespace, self._open_inner(), namespace_path)

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
        raise _database.no_rename()
