"""Namespaces of a database in a directory: names above the names of tables.

They are rows of a table `__manifest` beside the others, in the layout that LanceDB's directory namespaces have: an object's id is its
path joined by "$", and the row of a table says in which directory it is. Tables outside of all namespaces are not in it.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from typing import Any, Dict, List, Optional, Tuple

from ._lazy import pa
from ._plan import check_count
from .exceptions import (
    AlreadyExistsError,
    InvalidInputError,
    InvalidTypeError,
    NamespaceExistsError,
    NamespaceNotFoundError,
    NotFoundError,
    namespace_error,
)

_MANIFEST = "__manifest"
_SEPARATOR = "$"
_CREATE_MODES = ("create", "exist_ok", "overwrite")
_DROP_MODES = ("skip", "fail")
_BEHAVIORS = ("restrict", "cascade")


@dataclass
class ListNamespacesResponse:
    """One page of namespaces; `page_token`, when not None, asks for the next one."""

    context: Optional[Dict[str, str]] = None
    namespaces: List[str] = field(default_factory=list)
    page_token: Optional[str] = None


@dataclass
class CreateNamespaceResponse:
    """The `properties` that a new namespace has."""

    context: Optional[Dict[str, str]] = None
    transaction_id: Optional[str] = None
    properties: Optional[Dict[str, str]] = None


@dataclass
class DropNamespaceResponse:
    """Nothing to tell about a namespace that is gone."""

    context: Optional[Dict[str, str]] = None
    properties: Optional[Dict[str, str]] = None
    transaction_id: Optional[List[str]] = None


@dataclass
class DescribeNamespaceResponse:
    """The `properties` of a namespace."""

    context: Optional[Dict[str, str]] = None
    properties: Optional[Dict[str, str]] = None


# --- arguments ------------------------------------------------------------------------------------------------


def check_path(path: Any) -> Tuple[str, ...]:
    """A path of namespaces, () for none; TypeError for anything but a sequence of texts."""
    if path is None:
        return ()
    if isinstance(path, str) or not hasattr(path, "__iter__"):
        raise InvalidTypeError(f"a namespace path is a list of names, not {path!r}")
    parts = tuple(path)
    for part in parts:
        if not isinstance(part, str):
            raise InvalidTypeError(f"a namespace is named by text, not {part!r}")
        if not part or _SEPARATOR in part:
            raise InvalidInputError(f"Invalid input, {part!r} cannot be the name of a namespace: it is empty or has a '{_SEPARATOR}'")
    return parts


def _one_of(what: str, value: Optional[str], allowed: Tuple[str, ...], default: str) -> str:
    if value is None:
        return default
    if not isinstance(value, str) or value.lower() not in allowed:
        raise InvalidInputError(f"Invalid {what} {value!r}: expected one of {', '.join(map(repr, allowed))}")
    return value.lower()


def object_id(path: Tuple[str, ...], name: Optional[str] = None) -> str:
    """The id of a namespace, or of a table in it."""
    return _SEPARATOR.join(path if name is None else (*path, name))


# --- the manifest ---------------------------------------------------------------------------------------------


def _schema():
    return pa.schema(
        [
            pa.field("object_id", pa.string(), False, {"lance-schema:unenforced-primary-key:position": "0"}),
            pa.field("object_type", pa.string(), False),
            pa.field("location", pa.string()),
            pa.field("metadata", pa.string()),
            pa.field("base_objects", pa.list_(pa.field("object_id", pa.string()))),
        ]
    )


def _open(native):
    """The manifest's handle; None when there is none, that is, no namespace yet."""
    try:
        return native.open_table(_MANIFEST, directory=_MANIFEST)
    except NotFoundError:
        return None


def _rows(native, condition: str) -> List[Dict[str, Any]]:
    table = _open(native)
    return [] if table is None else table.to_table(["object_id", "object_type", "location", "metadata"], condition).to_pylist()


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _find(native, identity: str, kind: str) -> Optional[Dict[str, Any]]:
    found = _rows(native, f"object_id = {_literal(identity)} AND object_type = '{kind}'")
    return found[0] if found else None


def _insert(native, identity: str, kind: str, location: Optional[str], metadata: Optional[str]) -> bool:
    """Adds a row; False when there is one of this id."""
    table = _open(native)
    if table is None:
        try:
            table = native.create_table(_MANIFEST, _schema(), mode="create", directory=_MANIFEST)
        except AlreadyExistsError:
            table = native.open_table(_MANIFEST, directory=_MANIFEST)
    row = {"object_id": identity, "object_type": kind, "location": location, "metadata": metadata, "base_objects": None}
    data = pa.Table.from_pylist([row], schema=table.schema())
    done = table.merge_insert({"on": ["object_id"], "insert": True, "in_memory": True}, data)
    return done["num_inserted_rows"] == 1


def _remove(native, identity: str, kind: str) -> bool:
    """Whether there was such a row; it is gone."""
    table = _open(native)
    if table is None:
        return False
    return table.delete(f"object_id = {_literal(identity)} AND object_type = '{kind}'")[0] > 0


def _children(native, path: Tuple[str, ...], kind: str) -> List[str]:
    """Names of the objects of a kind directly in a namespace, sorted."""
    prefix = object_id(path) + _SEPARATOR if path else ""
    found = _rows(native, f"object_type = '{kind}'")
    names = [row["object_id"][len(prefix) :] for row in found if row["object_id"].startswith(prefix)]
    return sorted(name for name in names if name and _SEPARATOR not in name)


def page(names: List[str], page_token: Optional[str], limit: Optional[int]) -> Tuple[List[str], Optional[str]]:
    """The names after `page_token`, at most `limit`, and the token for the rest."""
    if page_token is not None:
        names = [name for name in names if name > page_token]
    if limit is None:
        return names, None
    limit = check_count("limit", limit)
    shown = names[:limit]
    return shown, shown[-1] if len(names) > limit and shown else None


# --- namespaces -----------------------------------------------------------------------------------------------


def list_namespaces(native, path, page_token, limit) -> ListNamespacesResponse:
    names, token = page(_children(native, check_path(path), "namespace"), page_token, limit)
    return ListNamespacesResponse(namespaces=names, page_token=token)


def create_namespace(native, path, mode, properties) -> CreateNamespaceResponse:
    mode = _one_of("create namespace mode", mode, _CREATE_MODES, "create")
    parts = check_path(path)
    if not parts:
        raise NamespaceExistsError("Namespace already exists: root namespace")
    if properties is not None:
        for key, value in properties.items():
            if not isinstance(key, str) or not isinstance(value, str):
                raise InvalidTypeError(f"properties map text to text, not {key!r} to {value!r}")
    if len(parts) > 1 and _find(native, object_id(parts[:-1]), "namespace") is None:
        raise NamespaceNotFoundError(f"Namespace not found: parent namespace '{object_id(parts[:-1])}'")
    identity = object_id(parts)
    metadata = json.dumps(properties, separators=(",", ":")) if properties else None
    if not _insert(native, identity, "namespace", None, metadata):
        there = _find(native, identity, "namespace")
        if mode == "create" or there is None:
            raise NamespaceExistsError(f"Namespace already exists: {identity}")
        if mode == "overwrite":
            condition = f"object_id = {_literal(identity)}"
            _open(native).update(condition, [("metadata", "NULL" if metadata is None else _literal(metadata))], None)
        else:
            properties = json.loads(there["metadata"]) if there["metadata"] else None
    return CreateNamespaceResponse(properties=properties or None)


def describe_namespace(native, path) -> DescribeNamespaceResponse:
    parts = check_path(path)
    if not parts:
        return DescribeNamespaceResponse(properties={})
    found = _find(native, object_id(parts), "namespace")
    if found is None:
        raise NamespaceNotFoundError(f"Namespace not found: {object_id(parts)}")
    return DescribeNamespaceResponse(properties=json.loads(found["metadata"]) if found["metadata"] else None)


def drop_namespace(native, path, mode, behavior) -> DropNamespaceResponse:
    mode = _one_of("drop namespace mode", mode, _DROP_MODES, "fail")
    behavior = _one_of("drop namespace behavior", behavior, _BEHAVIORS, "restrict")
    parts = check_path(path)
    if not parts:
        raise InvalidInputError("Invalid input, the root namespace cannot be dropped")
    identity = object_id(parts)
    if _find(native, identity, "namespace") is None:
        if mode == "skip":
            return DropNamespaceResponse()
        raise NamespaceNotFoundError(f"Namespace not found: {identity}")
    tables, inner = _children(native, parts, "table"), _children(native, parts, "namespace")
    if behavior == "restrict" and (tables or inner):
        raise namespace_error("NamespaceNotEmptyError", f"Namespace not empty: '{identity}' (contains {len(tables) + len(inner)} child objects)")
    for name in tables:
        drop_table(native, name, parts, True)
    for name in inner:
        drop_namespace(native, (*parts, name), "skip", behavior)
    _remove(native, identity, "namespace")
    return DropNamespaceResponse()


# --- tables in namespaces -------------------------------------------------------------------------------------


def table_names(native, path: Tuple[str, ...]) -> List[str]:
    return _children(native, path, "table")


def find_table(native, name: str, path: Tuple[str, ...]) -> Optional[str]:
    """The directory of a table; None when there is no such table."""
    found = _find(native, object_id(path, name), "table")
    return None if found is None else found["location"]


def open_table(native, name: str, path: Tuple[str, ...]):
    location = find_table(native, name, path)
    if location is None:
        raise namespace_error("TableNotFoundError", f"Table not found: {object_id(path, name)}")
    return native.open_table(name, directory=location)


def create_table(native, name: str, path: Tuple[str, ...], payload, mode: str, storage_options):
    """A new table; with mode "overwrite" also a new version of one that is there, with "exist_ok" that one itself."""
    location = find_table(native, name, path)
    if location is not None:
        if mode == "create":
            raise AlreadyExistsError(f"Table '{name}' already exists")
        return native.create_table(name, payload, mode=mode, storage_options=storage_options, directory=location)
    identity = object_id(path, name)
    location = f"{os.urandom(4).hex()}_{identity}"
    try:
        table = native.create_table(name, payload, mode="create", storage_options=storage_options, directory=location)
        inserted = _insert(native, identity, "table", location, None)
    except BaseException:
        native.drop_table(name, ignore_missing=True, directory=location)
        raise
    if not inserted:  # somebody else was faster
        native.drop_table(name, ignore_missing=True, directory=location)
        if mode == "create":
            raise AlreadyExistsError(f"Table '{name}' already exists")
        return open_table(native, name, path)
    return table


def drop_table(native, name: str, path: Tuple[str, ...], ignore_missing: bool) -> None:
    location = find_table(native, name, path)
    if location is None or not _remove(native, object_id(path, name), "table"):
        if ignore_missing:
            return
        raise NotFoundError(f"Table '{name}' was not found")
    native.drop_table(name, ignore_missing=True, directory=location)


def drop_all_tables(native, path: Tuple[str, ...]) -> None:
    for name in table_names(native, path):
        drop_table(native, name, path, True)
