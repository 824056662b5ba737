"""Glaive: tables of vectors, text and structured data, in the Lance format, with the LanceDB API.

    import glaive

    db = glaive.connect("./data")
    table = db.create_table("items", [{"id": 1, "vector": [0.1, 1.0]}, {"id": 2, "vector": [3.9, 0.5]}])
    table.search([0.0, 1.0]).limit(1).to_list()

`connect` opens a database for blocking calls, `connect_async` one for coroutines. `glaive.lance` has the dataset-level API.
Importing the package imports neither pandas nor polars nor pydantic, and pyarrow only once it is needed.
"""

from __future__ import annotations

import importlib
import json
import os
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Dict, List, Optional, Union

from . import _not_built
from ._database import local_path, open_native
from ._glaive import __version__
from ._unsupported import not_built_function, refuse
from .common import URI, sanitize_uri
from .db import AsyncConnection, DBConnection, LanceDBConnection, deserialize_local
from .exceptions import InvalidInputError
from .job import AsyncJob, Job
from .session import Session
from .table import AsyncTable, Table

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

    from .expr import col, func, lit
    from .namespace import connect_namespace, connect_namespace_async
    from .schema import blob, vector

__all__ = [
    "URI",
    "AsyncConnection",
    "AsyncJob",
    "AsyncTable",
    "DBConnection",
    "Job",
    "LanceDBConnection",
    "Session",
    "Table",
    "__version__",
    "blob",
    "col",
    "connect",
    "connect_async",
    "connect_catalog",
    "connect_catalog_async",
    "connect_namespace",
    "connect_namespace_async",
    "deserialize_conn",
    "func",
    "lit",
    "sanitize_uri",
    "tokenize",
    "udf",
    "vector",
]

_not_built.install()
_missing = _not_built.missing_names(__name__)

# Parts of the LanceDB API that later releases bring. They raise NotImplementedError.
connect_catalog = not_built_function("connect_catalog")
connect_catalog_async = not_built_function("connect_catalog_async")
tokenize = not_built_function("tokenize")
udf = not_built_function("udf")

# Names that are found in another module when they are first asked for.
_HOMES = {
    "BlobType": "schema",
    "AsyncLanceNamespaceDBConnection": "namespace",
    "AsyncMaterializedView": "materialized_view",
    "Expr": "expr",
    "FtsToken": "_lancedb",
    "FunctionApplication": "functions",
    "FunctionVersion": "functions",
    "LanceNamespaceDBConnection": "namespace",
    "LsmWriteSpec": "_lsm",
    "MaterializedView": "materialized_view",
    "MaterializedViewDefinition": "materialized_view",
    "RemoteDBConnection": "remote.db",
    "UdfDefinition": "functions",
    "connect_namespace": "namespace",
    "connect_namespace_async": "namespace",
    "blob": "schema",  # whose module imports pyarrow
    "col": "expr",
    "func": "expr",
    "lit": "expr",
    "vector": "schema",
}
_LAZY_MODULES = frozenset(
    "arrow background_loop common db dependencies embeddings exceptions expr index integrations lance maintenance merge pydantic query remote "
    "rerankers schema table types util".split()
)


def __getattr__(name: str):
    if name in _HOMES:
        value = getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
        globals()[name] = value
        return value
    if name in _LAZY_MODULES:
        return importlib.import_module(f"{__name__}.{name}")
    return _missing(name)


def _check_address(uri: str, region_given: bool, api_key: Optional[str]) -> None:
    """Refuses addresses that cannot work, or not yet."""
    if uri.startswith("db://"):
        if not (api_key or os.environ.get("LANCEDB_API_KEY")):
            raise InvalidInputError(f"api_key is required to connect to LanceDB cloud: {uri}")
        raise refuse("connecting to a server (db://)")
    if uri.startswith("s3://"):
        bucket = uri[len("s3://") :].partition("/")[0]
        if "." in bucket and not region_given:
            raise InvalidInputError(
                f"S3 bucket name '{bucket}' contains dots, which prevents automatic region detection. Give the region: "
                "storage_options={'region': '...'} or {'aws_region': '...'}"
            )


def _has_region(options: Optional[Dict[str, str]]) -> bool:
    return any(key.lower() in ("region", "aws_region") for key in options or {})


def connect(
    uri: Optional[URI] = None,
    *,
    api_key: Optional[str] = None,
    region: str = "us-east-1",
    host_override: Optional[str] = None,
    sql_host_override: Optional[str] = None,
    read_consistency_interval: Optional[timedelta] = None,
    request_thread_pool: "Optional[Union[int, ThreadPoolExecutor]]" = None,
    client_config: Optional[Union[Any, Dict[str, Any]]] = None,
    storage_options: Optional[Dict[str, str]] = None,
    session: Optional[Session] = None,
    manifest_enabled: bool = False,
    namespace_client_impl: Optional[str] = None,
    namespace_client_properties: Optional[Dict[str, str]] = None,
    namespace_client_pushdown_operations: Optional[List[str]] = None,
    **kwargs: Any,
) -> DBConnection:
    """Opens a database; its directory is made when it is missing.

    Args:
        uri: a path ("~" is expanded), a `file://` address, or "memory://" for a database that lives as long as the connection.
        read_consistency_interval: when table handles look for versions of other writers. None: only at `checkout_latest`; 0: at
            each read; otherwise when the last look is older than this.
        storage_options: text to text; see `LanceDBConnection.create_table` for those that shape new tables.
        session: see `Session`.

        namespace_client_impl, namespace_client_properties, namespace_client_pushdown_operations: see `connect_namespace`.

    The other arguments belong to servers, which raise NotImplementedError for now. ValueError for no `uri` and for unknown
    arguments.
    """
    if namespace_client_impl is not None:
        if namespace_client_properties is None:
            raise InvalidInputError("namespace_client_properties must be provided when namespace_client_impl is set")
        if kwargs:
            raise InvalidInputError(f"Unknown keyword arguments: {kwargs}")
        from .namespace import connect_namespace

        return connect_namespace(
            namespace_client_impl,
            namespace_client_properties,
            read_consistency_interval=read_consistency_interval,
            storage_options=storage_options,
            session=session,
            namespace_client_pushdown_operations=namespace_client_pushdown_operations,
        )
    if namespace_client_properties is not None and not manifest_enabled:
        raise InvalidInputError(
            "namespace_client_impl must be provided when using namespace_client_properties unless manifest_enabled=True"
        )
    if namespace_client_pushdown_operations is not None:
        raise InvalidInputError("namespace_client_pushdown_operations is only valid when connecting through a namespace")
    if uri is None:
        raise InvalidInputError("uri is required when not connecting through a namespace client")
    _check_address(str(uri), _has_region(storage_options), api_key)
    if kwargs:
        raise InvalidInputError(f"Unknown keyword arguments: {kwargs}")
    return LanceDBConnection(
        uri,
        read_consistency_interval=read_consistency_interval,
        storage_options=storage_options,
        session=session,
        manifest_enabled=manifest_enabled,
        namespace_client_properties=namespace_client_properties,
    )


async def connect_async(
    uri: URI,
    *,
    api_key: Optional[str] = None,
    region: str = "us-east-1",
    host_override: Optional[str] = None,
    sql_host_override: Optional[str] = None,
    read_consistency_interval: Optional[timedelta] = None,
    client_config: Optional[Union[Any, Dict[str, Any]]] = None,
    storage_options: Optional[Dict[str, str]] = None,
    session: Optional[Session] = None,
    manifest_enabled: bool = False,
    namespace_client_properties: Optional[Dict[str, str]] = None,
    oauth_config: Optional[Any] = None,
) -> AsyncConnection:
    """Opens a database for async code; see `connect`."""
    from . import _pool

    _check_address(str(uri), _has_region(storage_options), api_key)
    if manifest_enabled or namespace_client_properties:
        raise refuse("a local database with namespaces (manifest_enabled)")
    if oauth_config is not None:
        raise refuse("connecting with oauth_config")
    path = await _pool.run(local_path, uri)
    native = await _pool.run(open_native, path, read_consistency_interval, storage_options)
    return AsyncConnection(native, _uri=path, _interval=read_consistency_interval)


def deserialize_conn(data: str, *, for_worker: bool = False) -> DBConnection:
    """The connection that `DBConnection.serialize` described. ValueError for an unknown kind.

    `for_worker` concerns connections through namespaces and changes nothing for local ones.
    """
    config = json.loads(data)
    kind = config.get("connection_type") if isinstance(config, dict) else None
    if kind == "local":
        return deserialize_local(config)
    if kind == "namespace":
        from .namespace import deserialize_namespace

        return deserialize_namespace(config, for_worker)
    if kind == "remote":
        raise refuse(f"deserialize_conn of a {kind} connection")
    raise InvalidInputError(f"Unknown connection_type: {kind}")
