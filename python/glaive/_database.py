"""Blocking operations on one database, shared by the sync and the async class."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any, Dict, List, Optional, Tuple

from . import _handle, _ingest
from ._lazy import lazy
from ._glaive import Connection as _NativeConnection
from ._plan import check_count
from ._unsupported import refuse
from .common import URI
from .exceptions import InvalidInputError, InvalidTypeError, NotSupportedError
from .util import get_uri_location, get_uri_scheme


_namespaces = lazy("_namespaces")

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


# --- tables -------------------------------------------------------------------------------------------------


def check_name(name) -> str:
    if not isinstance(name, str):
        raise InvalidTypeError(f"a table name must be text, not {name!r}")
    return name


def _path(namespace) -> Tuple[str, ...]:
    """The path of a namespace, () for none."""
    return _namespaces.check_path(namespace) if namespace else ()


def list_tables(native, page_token, limit, namespace=None) -> ListTablesResponse:
    path = _path(namespace)
    if path:
        names, token = _namespaces.page(_namespaces.table_names(native, path), page_token, limit)
        return ListTablesResponse(tables=names, page_token=token)
    if limit is None:
        return ListTablesResponse(tables=native.table_names(page_token))
    limit = check_count("limit", limit)
    names = native.table_names(page_token, limit + 1)
    more = len(names) > limit
    names = names[:limit]
    return ListTablesResponse(tables=names, page_token=names[-1] if more and names else None)


def table_names(native, start_after, limit, namespace) -> List[str]:
    limit = None if limit is None else check_count("limit", limit)
    path = _path(namespace)
    if path:
        return _namespaces.page(_namespaces.table_names(native, path), start_after, limit)[0]
    return native.table_names(start_after, limit)


def drop_table(native, name, namespace, ignore_missing) -> None:
    path = _path(namespace)
    if path:
        _namespaces.drop_table(native, check_name(name), path, bool(ignore_missing))
    else:
        native.drop_table(check_name(name), ignore_missing=bool(ignore_missing))


def drop_all_tables(native, namespace) -> None:
    path = _path(namespace)
    if path:
        _namespaces.drop_all_tables(native, path)
    else:
        native.drop_all_tables()


def open_table(native, name, version=None, branch=None, namespace=None):
    version = None if version is None else check_count("version", version, 2**64 - 1)
    path = _path(namespace)
    table = _namespaces.open_table(native, check_name(name), path) if path else native.open_table(check_name(name))
    if version is None and branch is None:
        return table
    from ._branches import open_on

    return open_on(table, branch, version)


def create_table(
    native, name, data, schema, mode, exist_ok, on_bad_vectors, fill_value, options, embedding_functions=None, namespace=None
):
    """Creates or opens; the engine's table handle."""
    mode = "create" if mode is None else mode
    if mode not in ("create", "overwrite"):
        raise InvalidInputError(f"Invalid mode {mode}: 'create' or 'overwrite' is expected")
    check_name(name)
    options = check_options(options)
    wanted = _ingest.as_schema(schema)
    if data is None and wanted is None:
        raise InvalidInputError("Either data or schema must be provided")
    path = _path(namespace)

    def exists():
        return _namespaces.find_table(native, name, path) is not None if path else native.table_exists(name)

    def create(payload, how):
        if path:
            return _namespaces.create_table(native, name, path, payload, how, options)
        return native.create_table(name, payload, mode=how, storage_options=options)

    if not (exist_ok and mode == "create" and exists()):
        rows = [] if data is None else data
        incoming = _ingest.for_new_table(rows, wanted, on_bad_vectors, fill_value, embedding_functions)
        if incoming.total_rows != 0:
            _ingest.check_not_computed(incoming.schema, incoming.schema.names)
        how = "exist_ok" if exist_ok and mode == "create" else mode
        table = incoming.send(lambda payload: create(payload, how))
    else:
        table = open_table(native, name, namespace=path)
    if exist_ok and mode == "create" and wanted is not None:
        _ingest.check_existing_schema(table.schema(), wanted)
    return table


def new_table_options(storage_options, data_storage_version, enable_v2_manifest_paths):
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


def no_rename() -> NotSupportedError:
    """What `rename_table` of a local database raises."""
    return NotSupportedError("LanceDBError: not supported: rename_table is not supported in LanceDB OSS")
