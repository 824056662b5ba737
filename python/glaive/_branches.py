"""Branches of a table and clones: `Table.branches`, `AsyncTable.branches`, and what `clone_table` shares."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Dict, Optional

from . import _database, _handle, _pool
from ._unsupported import refuse
from .exceptions import InvalidInputError, InvalidTypeError, NotSupportedError

if TYPE_CHECKING:
    from .table import LanceTable
    from ._table_async import AsyncTable

_U63 = 2**63 - 1


def _check_name(name: str) -> str:
    if not isinstance(name, str):
        raise InvalidTypeError(f"a branch is named by text, not {name!r}")
    if not name:
        raise InvalidInputError("branch name must be a non-empty string")
    return name


def _check_version(version: Optional[int]) -> Optional[int]:
    return None if version is None else _handle.check_count("version", version, _U63)


def list_branches(native) -> Dict[str, Any]:
    keys = ("parent_branch", "parent_version", "manifest_size")
    return {name: {key: info[key] for key in keys} for name, info in native.list_branches().items()}


def create(native, name, from_ref, from_version):
    from_ref = None if from_ref is None else _check_name(from_ref)
    return _handle.ref_call(native.create_branch, _check_name(name), from_ref, _check_version(from_version))


def checkout(native, name, version=None):
    return _handle.ref_call(native.checkout_branch, _check_name(name), _check_version(version))


def delete(native, name) -> None:
    _handle.ref_call(native.delete_branch, _check_name(name))


def open_on(native, branch, version):
    """The handle of an opened table, on another branch if one is named; pinned when there is a version."""
    if branch in (None, "main"):
        if version is not None:
            _handle.checkout(native, version)
        return native
    return checkout(native, branch, version)


def clone_table(native, target, source_uri, namespace, source_version, source_tag, is_shallow):
    _database.refuse_namespace(namespace, "clone_table")
    if not is_shallow:
        raise NotSupportedError("Deep clone is not yet implemented: clone_table makes shallow clones")
    if source_version is not None and source_tag is not None:
        raise InvalidInputError("give source_version or source_tag, not both")
    version = _check_version(source_version) if source_tag is None else source_tag
    return _handle.ref_call(native.clone_table, _database.check_name(target), str(source_uri), version=version)


class Branches:
    """Lines of versions of their own, which begin at a version of the table. Writes to one do not touch the others."""

    def __init__(self, table: "LanceTable"):
        self._table = table

    def list(self) -> Dict[str, Any]:
        """Name -> `{"parent_branch": str or None, "parent_version": int, "manifest_size": int}`."""
        return list_branches(self._table._inner)

    def create(self, name: str, from_ref: Optional[str] = None, from_version: Optional[int] = None) -> "LanceTable":
        """Begins a branch at a version (the newest one if not given) of branch `from_ref` (if not given: main), and opens it.
        RuntimeError when there is one of that name, or the name cannot be one."""
        return self._wrap(create(self._table._inner, name, from_ref, from_version))

    def checkout(self, name: str, version: Optional[int] = None) -> "LanceTable":
        """Opens a branch ("main" too); at `version`, and staying there, if given. RuntimeError when there is none."""
        return self._wrap(checkout(self._table._inner, name, version))

    def delete(self, name: str) -> None:
        """Removes a branch and its files. RuntimeError when there is none, or another branch or a tag needs it."""
        delete(self._table._inner, name)

    def diff(self, from_branch: str) -> Dict[str, Any]:
        """NotImplementedError: not for local databases."""
        raise refuse("Branches.diff")

    def cherry_pick(self, from_branch: str, dry_run: bool = False) -> Dict[str, Any]:
        """NotImplementedError: not for local databases."""
        raise refuse("Branches.cherry_pick")

    def _wrap(self, native) -> "LanceTable":
        return type(self._table)._wrap(self._table._conn, native, self._table._namespace)


class AsyncBranches:
    """See `Branches`."""

    def __init__(self, table: "AsyncTable"):
        self._table = table

    async def list(self) -> Dict[str, Any]:
        """See `Branches.list`."""
        return await _pool.run(list_branches, self._table._inner)

    async def create(
        self, name: str, from_ref: Optional[str] = None, from_version: Optional[int] = None
    ) -> "AsyncTable":
        """See `Branches.create`."""
        return self._wrap(await _pool.run(create, self._table._inner, name, from_ref, from_version))

    async def checkout(self, name: str, version: Optional[int] = None) -> "AsyncTable":
        """See `Branches.checkout`."""
        return self._wrap(await _pool.run(checkout, self._table._inner, name, version))

    async def delete(self, name: str) -> None:
        """See `Branches.delete`."""
        await _pool.run(delete, self._table._inner, name)

    async def diff(self, from_branch: str) -> Dict[str, Any]:
        """NotImplementedError: not for local databases."""
        raise refuse("AsyncBranches.diff")

    async def cherry_pick(self, from_branch: str, dry_run: bool = False) -> Dict[str, Any]:
        """NotImplementedError: not for local databases."""
        raise refuse("AsyncBranches.cherry_pick")

    def _wrap(self, native) -> "AsyncTable":
        return type(self._table)(native, namespace_path=self._table._namespace_path, _interval=self._table._interval)
