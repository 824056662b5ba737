"""Columns and metadata of a table changed: blocking functions, and the methods of the sync and async tables."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any, Awaitable, Dict, Iterable, List, Optional, Sequence, Tuple, Union

from . import _ingest, _pool
from ._lazy import lazy
from ._results import (
    AddColumnsResult,
    AlterColumnsResult,
    DropColumnsResult,
    RefreshColumnJobResult,
    RefreshColumnResult,
    UpdateFieldMetadataResult,
)
from .exceptions import InvalidInputError, InvalidTypeError
from .job import AsyncJob, Job

if TYPE_CHECKING:
    import pyarrow

    from .common import DATA

_computed = lazy("_computed")

_ALTERATION_KEYS = ("path", "rename", "name", "nullable", "data_type")
_METADATA_KEYS = ("path", "metadata", "replace")


def _expect(what: str, value, kind: type) -> Any:
    if not isinstance(value, kind):
        raise InvalidTypeError(f"{what} must be {kind.__name__}, not {type(value).__name__}")
    return value


def _check_keys(entry: Any, what: str, allowed: Sequence[str]) -> dict:
    _expect(what, entry, dict)
    for key in entry:
        if key not in allowed:
            raise InvalidInputError(f"Unknown key: {key}. Valid keys are {', '.join(allowed)}")
    if "path" not in entry:
        raise InvalidInputError("Missing path")
    _expect("path", entry["path"], str)
    return entry


def type_as_schema(data_type) -> "pyarrow.Schema":
    """A type as a schema of one field, which is how types travel into the engine."""
    import pyarrow as pa

    if not isinstance(data_type, pa.DataType):
        raise InvalidTypeError(f"data_type must be a pyarrow.DataType, not {data_type!r}")
    return pa.schema([pa.field("type", data_type)])


def native_alteration(entry: dict, name_keys: Sequence[str]) -> Tuple[str, Optional[str], Optional[bool], Any]:
    """One alteration as the engine takes it; `name_keys` are the keys that may hold the new name."""
    rename = nullable = data_type = None
    for key in name_keys:
        if key in entry:
            rename = _expect(key, entry[key], str)
    if "nullable" in entry:
        nullable = _expect("nullable", entry["nullable"], bool)
    if "data_type" in entry:
        data_type = type_as_schema(entry["data_type"])
    return entry["path"], rename, nullable, data_type


def entries(values: Any, what: str) -> List[Tuple[str, Optional[str]]]:
    """Keys and values of a metadata map; None removes a key."""
    for key, value in _expect(what, values, dict).items():
        _expect(f"a key of {what}", key, str)
        if value is not None:
            _expect(f"the value of {key!r}", value, str)
    return list(values.items())


# --- blocking -------------------------------------------------------------------------------------------------


def add_columns(native, transforms, computed) -> AddColumnsResult:
    import pyarrow as pa

    if computed:
        if transforms:
            raise InvalidInputError("add_columns cannot take both transforms and computed columns")
        return _computed.declare(native, computed)
    if transforms is None:
        raise InvalidInputError("add_columns requires transforms or computed columns")
    if isinstance(transforms, pa.Field):
        transforms = [transforms]
    if isinstance(transforms, (list, tuple)):
        for field in transforms:
            _expect("a new column", field, pa.Field)
        transforms = pa.schema(transforms)
    if isinstance(transforms, pa.Schema):
        return AddColumnsResult(native.add_null_columns(transforms))
    for name, expression in _expect("transforms", transforms, dict).items():
        _expect("the name of a column", name, str)
        _expect(f"the expression of {name!r}", expression, str)
    return AddColumnsResult(native.add_columns(list(transforms.items())))


def alter_columns(native, alterations) -> AlterColumnsResult:
    changes = []
    for entry in alterations:
        _check_keys(entry, "an alteration", _ALTERATION_KEYS)
        if "data_type" in entry or "rename" in entry or "name" in entry:
            _computed.refuse_change(native.schema(), entry["path"], new_type="data_type" in entry)
        changes.append(native_alteration(entry, ("name", "rename")))
    return AlterColumnsResult(native.alter_columns(changes))


def drop_columns(native, columns) -> DropColumnsResult:
    if isinstance(columns, str):
        raise InvalidTypeError("columns must be a list of names, not str")
    columns = [_expect("a column", column, str) for column in columns]
    for column in columns:
        _computed.refuse_change(native.schema(), column, dropped=columns)
    return DropColumnsResult(native.drop_columns(columns))


def update_field_metadata(native, updates) -> UpdateFieldMetadataResult:
    changes = []
    for entry in updates:
        _check_keys(entry, "an update", _METADATA_KEYS)
        replace = _expect("replace", entry.get("replace", False), bool)
        changes.append((entry["path"], entries(entry.get("metadata", {}), "metadata"), replace))
    return UpdateFieldMetadataResult(native.update_field_metadata(changes))


def replace_field_metadata(native, field_name, new_metadata) -> None:
    _expect("field_name", field_name, str)
    native.update_field_metadata([(field_name, entries(new_metadata, "new_metadata"), True)])


def set_unenforced_primary_key(native, columns) -> None:
    columns = [columns] if isinstance(columns, str) else list(columns)
    native.set_unenforced_primary_key([_expect("a column", column, str) for column in columns])


def merge(native, other_table, left_on, right_on, schema) -> None:
    _expect("left_on", left_on, str)
    right_on = left_on if right_on is None else _expect("right_on", right_on, str)
    inner = getattr(other_table, "_inner", None)
    if inner is not None and hasattr(inner, "scan"):
        other_table = inner.to_table()
    incoming = _ingest.for_new_table(other_table, schema, "error", 0.0)
    incoming.send(lambda payload: native.merge_columns(payload, left_on, right_on))


def _warn_replace() -> None:
    warnings.warn("replace_field_metadata is deprecated: use update_field_metadata", DeprecationWarning, stacklevel=3)


# --- methods --------------------------------------------------------------------------------------------------


class SchemaChanges:
    """The methods of `LanceTable` that change columns and metadata."""

    def add_columns(
        self,
        transforms: "Optional[Union[Dict[str, str], pyarrow.Field, List[pyarrow.Field], pyarrow.Schema]]" = None,
        *,
        computed: Optional[Dict[str, str]] = None,
    ) -> AddColumnsResult:
        """Adds columns, and returns the new version.

        Args:
            transforms: new name -> SQL expression over the columns of the row; or Arrow fields or a schema, whose values are
                null (this writes no data).
            computed: instead of `transforms`: new name -> SQL expression of a computed column, whose values are null until
                `refresh_column` fills them. It cannot be written, and what it reads cannot be renamed, cast or dropped.

        Raises ValueError when a column exists already or an expression is wrong (of computed columns RuntimeError, which is a
        ValueError too); the table is unchanged then.
        """
        return add_columns(self._inner, transforms, computed)

    def refresh_column(self, column: str) -> RefreshColumnResult:
        """Fills a computed column in rows that were added or changed since, and returns how many and the new version.

        RuntimeError when the column is not computed, or its expression fails; the table is unchanged then.
        """
        return _computed.refresh(self._inner, column)

    def refresh_column_async(self, column: str) -> "Job[RefreshColumnJobResult]":
        """Like `refresh_column`; the job is done when this returns."""
        return Job(_computed.refresh_job(self._inner, column))

    def alter_columns(self, *alterations: Dict[str, Any]) -> AlterColumnsResult:
        """Renames columns, changes whether they may be null, and casts them.

        Args:
            alterations: dicts with `path` (dotted for members of structs) and any of `rename` (text), `nullable` (bool) and
                `data_type` (a pyarrow type). Only a cast writes data, for its column alone.

        Raises ValueError for an unknown column, a name that is taken, a cast that does not exist, values that do not fit, and
        when a column with nulls should become non-nullable; the table is unchanged then.
        """
        return alter_columns(self._inner, alterations)

    def drop_columns(self, columns: Iterable[str]) -> DropColumnsResult:
        """Drops columns, dotted paths for members of structs. Data are not rewritten. ValueError for unknown columns, and
        when no column would be left."""
        return drop_columns(self._inner, columns)

    def update_field_metadata(self, *updates: Dict[str, Any]) -> UpdateFieldMetadataResult:
        """Changes the metadata of columns.

        Args:
            updates: dicts with `path`, `metadata` (text -> text, None removes the key) and, optionally, `replace=True`, which
                makes `metadata` all there is.
        """
        return update_field_metadata(self._inner, updates)

    def replace_field_metadata(self, field_name: str, new_metadata: Dict[str, str]) -> None:
        """Deprecated: use `update_field_metadata`."""
        _warn_replace()
        replace_field_metadata(self._inner, field_name, new_metadata)

    def set_unenforced_primary_key(self, columns: Union[str, Iterable[str]]) -> None:
        """Records the column that identifies a row; nothing enforces it. It must not be nullable, and cannot be changed once it
        is set."""
        set_unenforced_primary_key(self._inner, columns)

    def merge(
        self,
        other_table: "DATA",
        left_on: str,
        right_on: Optional[str] = None,
        schema: "Optional[pyarrow.Schema]" = None,
    ) -> None:
        """Adds the columns of `other_table` to the rows whose `left_on` equals its `right_on` (a left join; null elsewhere).

        Args:
            other_table: a table, or what `add` takes. Its columns, the key excepted, must be new.
            left_on: key column of this table.
            right_on: key column of the other one; the same name when not given.
            schema: of `other_table`, when it should not be inferred.
        """
        merge(self._inner, other_table, left_on, right_on, schema)


class AsyncSchemaChanges:
    """The methods of `AsyncTable` that change columns and metadata; see `LanceTable`."""

    async def add_columns(
        self,
        transforms: "Optional[Union[Dict[str, str], pyarrow.Field, List[pyarrow.Field], pyarrow.Schema]]" = None,
        *,
        computed: Optional[Dict[str, str]] = None,
    ) -> AddColumnsResult:
        """See `LanceTable.add_columns`."""
        return await _pool.run(add_columns, self._inner, transforms, computed)

    async def refresh_column(self, column: str) -> RefreshColumnResult:
        """See `LanceTable.refresh_column`."""
        return await _pool.run(_computed.refresh, self._inner, column)

    async def refresh_column_async(self, column: str) -> "AsyncJob[RefreshColumnJobResult]":
        """Like `refresh_column`; the job is done when this returns."""
        return AsyncJob(await _pool.run(_computed.refresh_job, self._inner, column))

    async def alter_columns(self, *alterations: Dict[str, Any]) -> AlterColumnsResult:
        """See `LanceTable.alter_columns`."""
        return await _pool.run(alter_columns, self._inner, alterations)

    async def drop_columns(self, columns: Iterable[str]) -> DropColumnsResult:
        """See `LanceTable.drop_columns`."""
        return await _pool.run(drop_columns, self._inner, columns)

    async def update_field_metadata(self, *updates: Dict[str, Any]) -> UpdateFieldMetadataResult:
        """See `LanceTable.update_field_metadata`."""
        return await _pool.run(update_field_metadata, self._inner, updates)

    def replace_field_metadata(self, field_name: str, new_metadata: Dict[str, str]) -> Awaitable[None]:
        """Deprecated: use `update_field_metadata`."""
        _warn_replace()
        return _pool.run(replace_field_metadata, self._inner, field_name, new_metadata)

    async def set_unenforced_primary_key(self, columns: Union[str, Iterable[str]]) -> None:
        """See `LanceTable.set_unenforced_primary_key`."""
        await _pool.run(set_unenforced_primary_key, self._inner, columns)
