"""Changes of a dataset as values, committed in a step of their own: `LanceOperation`, `Transaction`."""

from __future__ import annotations

import base64
import dataclasses
import json
import uuid
from dataclasses import dataclass
from typing import Any, Dict, Iterable, List, Optional

import pyarrow as pa

from .._glaive import Dataset as _Engine
from ._refuse import refusal
from .fragment import DataFile, FragmentMetadata

__all__ = ["LanceOperation", "Transaction", "commit_operation"]


def _check_fragments(fragments) -> None:
    if not isinstance(fragments, list):
        raise TypeError(f"fragments must be list[FragmentMetadata], got {type(fragments)}")
    for fragment in fragments:
        if not isinstance(fragment, FragmentMetadata):
            raise TypeError(f"fragments must be list[FragmentMetadata], got {type(fragment)}")


def _file(file: DataFile) -> dict:
    out = {
        "path": file.path,
        "fields": list(file.fields),
        "column_indices": list(file.column_indices),
        "file_major_version": file.file_major_version,
        "file_minor_version": file.file_minor_version,
        "file_size_bytes": file.file_size_bytes or 0,
    }
    if file.base_id is not None:
        out["base_id"] = file.base_id
    return out


def _fragment(fragment: FragmentMetadata) -> dict:
    out: Dict[str, Any] = {
        "id": fragment.id,
        "files": [_file(f) for f in fragment.files],
        "physical_rows": fragment.physical_rows,
    }
    deletions = fragment.deletion_file
    if deletions is not None:
        out["deletion_file"] = {
            "file_type": "BITMAP" if deletions.file_type == "bitmap" else "ARROW_ARRAY",
            "read_version": deletions.read_version,
            "id": deletions.id,
            "num_deleted_rows": deletions.num_deleted_rows,
        }
        if deletions.base_id is not None:
            out["deletion_file"]["base_id"] = deletions.base_id
    if fragment.row_id_meta is not None:
        out["inline_row_ids"] = base64.b64encode(fragment.row_id_meta.inline).decode()
    for name, meta in (
        ("inline_created_at_versions", fragment.created_at_version_meta),
        ("inline_last_updated_at_versions", fragment.last_updated_at_version_meta),
    ):
        if meta is not None:
            out[name] = base64.b64encode(meta.inline).decode()
    return out


def _fragments(fragments: Iterable[FragmentMetadata]) -> List[dict]:
    return [_fragment(f) for f in fragments]


class LanceOperation:
    """The kinds of changes that `LanceDataset.commit` takes."""

    class BaseOperation:
        """Root of all operations."""

        def _to_json(self) -> dict:
            raise refusal(f"committing LanceOperation.{type(self).__name__}")

    @dataclass
    class Overwrite(BaseOperation):
        """The fragments, of a schema of their own, replace everything; or make a new dataset."""

        new_schema: Any
        fragments: Iterable[FragmentMetadata]
        initial_bases: Optional[List[Any]] = None

        def __post_init__(self):
            _check_fragments(self.fragments)

        def _to_json(self) -> dict:
            if self.initial_bases:
                raise refusal("the argument initial_bases of LanceOperation.Overwrite")
            return {"overwrite": {"fragments": _fragments(self.fragments)}}

    @dataclass
    class Append(BaseOperation):
        """Fragments that are added."""

        fragments: Iterable[FragmentMetadata]

        def __post_init__(self):
            _check_fragments(self.fragments)

        def _to_json(self) -> dict:
            return {"append": {"fragments": _fragments(self.fragments)}}

    @dataclass
    class Delete(BaseOperation):
        """Fragments whose deletion files changed, and ids of those that go as a whole."""

        updated_fragments: Iterable[FragmentMetadata]
        deleted_fragment_ids: Iterable[int]
        predicate: str

        def __post_init__(self):
            _check_fragments(self.updated_fragments)

        def _to_json(self) -> dict:
            return {
                "delete": {
                    "updated_fragments": _fragments(self.updated_fragments),
                    "deleted_fragment_ids": list(self.deleted_fragment_ids),
                    "predicate": self.predicate,
                }
            }

    @dataclass
    class Update(BaseOperation):
        """Fragments that go, those that changed, and new ones.

        `updated_fragment_offsets`, for `update_mode="rewrite_columns"`: by fragment, which rows got new values, as
        `LanceFragment.update_columns(with_offsets=True)` says. Without it all rows of the fragments count as changed.
        """

        removed_fragment_ids: List[int] = dataclasses.field(default_factory=list)
        updated_fragments: List[FragmentMetadata] = dataclasses.field(default_factory=list)
        new_fragments: List[FragmentMetadata] = dataclasses.field(default_factory=list)
        fields_modified: List[int] = dataclasses.field(default_factory=list)
        fields_for_preserving_frag_bitmap: List[int] = dataclasses.field(default_factory=list)
        update_mode: str = ""
        updated_fragment_offsets: Optional[Dict[int, bytes]] = None

        def __post_init__(self):
            _check_fragments(self.updated_fragments)
            _check_fragments(self.new_fragments)

        def _to_json(self) -> dict:
            modes = {"": "REWRITE_ROWS", "rewrite_rows": "REWRITE_ROWS", "rewrite_columns": "REWRITE_COLUMNS"}
            mode = modes.get(self.update_mode.lower())
            if mode is None:
                raise ValueError(f"Invalid update_mode: {self.update_mode}. Expected 'rewrite_rows' or 'rewrite_columns'.")
            return {
                "update": {
                    "removed_fragment_ids": list(self.removed_fragment_ids),
                    "updated_fragments": _fragments(self.updated_fragments),
                    "new_fragments": _fragments(self.new_fragments),
                    "fields_modified": list(self.fields_modified),
                    "fields_for_preserving_frag_bitmap": list(self.fields_for_preserving_frag_bitmap),
                    "update_mode": mode,
                    "updated_fragment_offset_bitmaps": {
                        str(fragment): base64.b64encode(_bitmap(bitmap)).decode()
                        for fragment, bitmap in (self.updated_fragment_offsets or {}).items()
                    },
                }
            }

    @dataclass
    class Merge(BaseOperation):
        """All fragments, with data files of new columns added, and the schema that is then."""

        fragments: Iterable[FragmentMetadata]
        schema: Any
        preserves_nullability: bool = False

        def __post_init__(self):
            _check_fragments(self.fragments)

        def _to_json(self) -> dict:
            return {
                "merge": {
                    "fragments": _fragments(self.fragments),
                    "preserves_nullability": self.preserves_nullability,
                }
            }

    @dataclass
    class Restore(BaseOperation):
        """The content of another version."""

        version: int

        def _to_json(self) -> dict:
            return {"restore": {"version": self.version}}

    @dataclass
    class RewriteGroup:
        """Fragments, and those that hold their rows now."""

        old_fragments: Iterable[FragmentMetadata]
        new_fragments: Iterable[FragmentMetadata]

    @dataclass
    class RewrittenIndex:
        """An index whose files were made anew."""

        old_id: str
        new_id: str
        new_details_type_url: str
        new_details_value: bytes
        new_index_version: int

    @dataclass
    class Rewrite(BaseOperation):
        """Rows moved to other fragments, as a compaction does."""

        groups: Iterable[LanceOperation.RewriteGroup]
        rewritten_indices: Iterable[LanceOperation.RewrittenIndex]

        def __post_init__(self):
            for group in self.groups:
                _check_fragments(group.old_fragments)
                _check_fragments(group.new_fragments)

        def _to_json(self) -> dict:
            if list(self.rewritten_indices):
                raise refusal("rewritten_indices of LanceOperation.Rewrite")
            return {
                "rewrite": {
                    "groups": [
                        {"old_fragments": _fragments(g.old_fragments), "new_fragments": _fragments(g.new_fragments)}
                        for g in self.groups
                    ]
                }
            }

    @dataclass
    class DataReplacementGroup:
        """A fragment, and the data file that takes the place of the one with the same fields."""

        fragment_id: int
        new_file: DataFile

    @dataclass
    class DataReplacement(BaseOperation):
        """Data files replaced by others of the same columns and rows."""

        replacements: List[LanceOperation.DataReplacementGroup]

        def _to_json(self) -> dict:
            groups = [{"fragment_id": g.fragment_id, "new_file": _file(g.new_file)} for g in self.replacements]
            return {"data_replacement": {"replacements": groups}}

    @dataclass
    class Project(BaseOperation):
        """The columns of the schema stay, in its order."""

        schema: Any

        def _to_json(self) -> dict:
            return {"project": {}}

    @dataclass
    class CreateIndex(BaseOperation):
        """Indices that come and go. Not supported yet."""

        new_indices: List[Any]
        removed_indices: List[Any]

    @dataclass
    class Clone(BaseOperation):
        """Not supported yet: see `LanceDataset.shallow_clone`."""

        is_shallow: bool
        ref_name: Optional[str]
        ref_version: int
        ref_path: str
        branch_name: Optional[str]


@dataclass
class Transaction:
    """An operation, and the version that it was made on."""

    read_version: int
    operation: LanceOperation.BaseOperation
    uuid: str = dataclasses.field(default_factory=lambda: str(uuid.uuid4()))
    transaction_properties: Optional[Dict[str, str]] = dataclasses.field(default_factory=dict)


def _schema_of(operation):
    """The schema that the operation brings, and its field ids where they are known."""
    schema = getattr(operation, "new_schema", None)
    schema = getattr(operation, "schema", None) if schema is None else schema
    if schema is None or isinstance(schema, pa.Schema):
        return schema, None
    if not hasattr(schema, "to_pyarrow"):
        raise TypeError(f"schema must be pyarrow.Schema or LanceSchema, got {type(schema)}")
    ids: List[int] = []

    def walk(fields):
        for field in fields:
            ids.append(field.id())
            walk(field.children())

    walk(schema.fields())
    return schema.to_pyarrow(), ids


def _bitmap(value) -> bytes:
    if not isinstance(value, (bytes, bytearray, memoryview)):
        raise TypeError(f"updated_fragment_offsets must be bytes by fragment id, got {type(value)}")
    return bytes(value)


def commit_operation(dest, transaction: Transaction, *, max_retries, stable_row_ids, v2_manifest_paths, timeout=None) -> _Engine:
    """Commits on top of what came since `read_version`, if that does not conflict."""
    operation = transaction.operation
    if not isinstance(operation, LanceOperation.BaseOperation):
        raise TypeError(f"operation must be a LanceOperation.BaseOperation or Transaction, got {type(operation)}")
    described = operation._to_json()
    described["uuid"] = transaction.uuid
    described["transaction_properties"] = dict(transaction.transaction_properties or {})
    schema, field_ids = _schema_of(operation)
    return _Engine.commit(
        dest,
        json.dumps(described),
        schema=schema,
        field_ids=field_ids,
        read_version=transaction.read_version,
        max_retries=max_retries,
        stable_row_ids=stable_row_ids,
        v2_manifest_paths=v2_manifest_paths,
        timeout=timeout,
    )
