"""The methods of `LanceDataset` that change columns and metadata."""

from __future__ import annotations

import warnings
from typing import Any, Dict, List, Optional

import pyarrow as pa

from .._schema_changes import entries, native_alteration
from ..exceptions import InvalidInputError
from ._data import to_stream

_ALTERATION_KEYS = ("name", "nullable", "data_type")


def _deprecated(text: str) -> None:
    warnings.warn(text, DeprecationWarning, stacklevel=3)


class SchemaChanges:
    """Mixed into `LanceDataset`, whose handle `_ds` moves to the version that each call commits."""

    def add_columns(
        self,
        transforms,
        read_columns: Optional[List[str]] = None,
        reader_schema: Optional[pa.Schema] = None,
        batch_size: Optional[int] = None,
    ) -> None:
        """Adds columns.

        Parameters
        ----------
        transforms : dict, pa.Field, list of pa.Field, pa.Schema, BatchUDF, callable, or data
            A dict gives a SQL expression over the columns of the row for each new name. Fields and schemas are columns of
            nulls, which write no data. A function (see `glaive.lance.udf.batch_udf`) gets batches of rows and returns batches
            of new columns. Data (tables, readers, frames, iterables of batches together with `reader_schema`) hold the values
            of all rows in order.
        read_columns : list of str, optional
            What a function gets to see; may name `_rowid` and `_rowaddr`. All columns by default.
        batch_size : int, optional
            Rows that are read and computed at a time.

        A failed call leaves the dataset as it was.
        """
        if isinstance(transforms, pa.Field):
            transforms = [transforms]
        if batch_size is not None and batch_size < 1:
            raise InvalidInputError(f"batch_size must be greater than zero, not {batch_size}")
        if isinstance(transforms, list) and transforms and isinstance(transforms[0], pa.Field):
            transforms = pa.schema(transforms)
        if isinstance(transforms, pa.Schema):
            self._ds = self._ds.add_null_columns(transforms)
            return
        from .udf import BatchUDF, normalize_transform, run_udf

        transforms = normalize_transform(transforms, self, read_columns, reader_schema)
        if isinstance(transforms, dict):
            self._ds = self._ds.add_columns(list(transforms.items()), batch_size=batch_size)
        elif isinstance(transforms, BatchUDF):
            self._ds = self._ds.add_columns_from_reader(run_udf(transforms, self, read_columns, batch_size))
            if transforms.cache is not None:
                transforms.cache.cleanup()
        else:
            self._ds = self._ds.add_columns_from_reader(transforms)

    def merge(self, data_obj, left_on: str, right_on: Optional[str] = None, schema: Optional[pa.Schema] = None) -> None:
        """Adds the columns of `data_obj` to the rows whose `left_on` equals its `right_on` (by default the same name).

        A left join: other rows get nulls. `data_obj` is what `write_dataset` takes; its columns, the key excepted, must be new.
        """
        data = to_stream(data_obj, schema)
        if isinstance(data, pa.Schema):
            data = data.empty_table()
        self._ds = self._ds.merge_columns(data, left_on, left_on if right_on is None else right_on)

    def alter_columns(self, *alterations: Dict[str, Any]) -> None:
        """Renames columns, changes whether they may be null, and casts them.

        Each alteration is a dict with `path` (dotted for nested fields) and any of `name`, `nullable` and `data_type`. Only a
        cast writes data, for its column alone; indices of a column that is cast are dropped.
        """
        changes = []
        for entry in alterations:
            if not isinstance(entry, dict):
                raise TypeError(f"an alteration must be a dict, not {type(entry).__name__}")
            if "path" not in entry:
                raise ValueError("path is required")
            for key in entry:
                if key != "path" and key not in _ALTERATION_KEYS:
                    raise ValueError(f"Unknown key: {key}. Valid keys are name, nullable, and data_type.")
            if len(entry) == 1:
                raise ValueError("At least one of name, nullable, or data_type must be specified")
            changes.append(native_alteration(entry, ("name",)))
        self._ds = self._ds.alter_columns(changes)

    def drop_columns(self, columns: List[str]) -> None:
        """Drops columns, dotted paths for nested fields. Data are not rewritten."""
        if isinstance(columns, str) or not all(isinstance(c, str) for c in columns):
            raise TypeError("columns must be a list of names")
        self._ds = self._ds.drop_columns(list(columns))

    # Metadata.

    def _update_map(self, which: str, values, replace: bool) -> None:
        self._ds = self._ds.update_metadata(which, entries(values, "values"), bool(replace))

    def update_config(self, values: Dict[str, Optional[str]], *, replace: bool = False) -> Dict[str, str]:
        """Sets settings of the table (None removes one), or replaces all of them. Returns the settings."""
        self._update_map("config", values, replace)
        return self.config()

    def delete_config_keys(self, keys: List[str]) -> None:
        """Removes settings; those that do not exist are no error."""
        self._update_map("config", {key: None for key in keys}, False)

    def update_metadata(self, values: Dict[str, Optional[str]], *, replace: bool = False) -> Dict[str, str]:
        """Sets entries of the table's metadata (None removes one), or replaces all of them. Returns the metadata."""
        self._update_map("table", values, replace)
        return self.metadata

    def update_schema_metadata(self, values: Dict[str, Optional[str]], *, replace: bool = False) -> Dict[str, str]:
        """Sets entries of the schema's metadata (None removes one), or replaces all of them. Returns the metadata."""
        self._update_map("schema", values, replace)
        return self.schema_metadata

    def replace_schema_metadata(self, new_metadata: Dict[str, str]) -> None:
        """Deprecated: use `update_schema_metadata(..., replace=True)`."""
        _deprecated("replace_schema_metadata is deprecated: use update_schema_metadata(metadata, replace=True)")
        self.update_schema_metadata(new_metadata, replace=True)

    def update_field_metadata(
        self, field_updates: Dict[str, Dict[str, Optional[str]]], *, replace: bool = False
    ) -> None:
        """Sets entries of the metadata of fields (path -> values; None removes an entry), or replaces all of a field's."""
        if not isinstance(field_updates, dict) or not all(isinstance(path, str) for path in field_updates):
            raise TypeError("field_updates must be a dict of field path -> metadata")
        updates = [(path, entries(values, path), bool(replace)) for path, values in field_updates.items()]
        self._ds = self._ds.update_field_metadata(updates)

    def replace_field_metadata(self, field_name: str, new_metadata: Dict[str, str]) -> None:
        """Deprecated: use `update_field_metadata(..., replace=True)`."""
        _deprecated("replace_field_metadata is deprecated: use update_field_metadata with replace=True")
        self.update_field_metadata({field_name: new_metadata}, replace=True)


