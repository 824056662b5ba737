"""What hangs on a dataset: its tags, its schema with field ids, its statistics."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Dict, List, Optional, Tuple

import pyarrow as pa

from .._plan import check_int64
from ._branches import resolve
from ._refuse import refusal

if TYPE_CHECKING:
    from ._dataset import LanceDataset


def _tag(facts: dict) -> dict:
    def when(us):
        return None if us is None else datetime(1970, 1, 1, tzinfo=timezone.utc) + timedelta(microseconds=us)

    times = {"created_at": when(facts["created_us"]), "updated_at": when(facts["updated_us"])}
    order = ("branch", "version", "created_at", "updated_at", "manifest_size", "metadata")
    return {key: times[key] if key in times else facts[key] for key in order}


class Tags:
    """Names for versions. A tagged version is not removed by clean-up."""

    def __init__(self, ds: LanceDataset):
        self._dataset = ds

    def _find(self, reference):
        """The engine's dataset of the branch that a reference is to, and the version."""
        engine = self._dataset._ds
        if isinstance(reference, int):
            return engine, reference
        found = resolve(engine, reference)
        return found, found.version

    def list(self) -> Dict[str, dict]:
        """Name -> `branch` (None: main), `version`, `created_at`, `updated_at`, `manifest_size`, `metadata`."""
        return {name: _tag(facts) for name, facts in self._dataset._ds.list_tags().items()}

    def list_ordered(self, order: Optional[str] = None) -> List[Tuple[str, dict]]:
        """By version, newest first; `order="asc"` turns it."""
        if order not in (None, "asc", "desc"):
            raise ValueError(f"order must be 'asc' or 'desc', not {order!r}")
        return sorted(self.list().items(), key=lambda item: (item[1]["version"], item[0]), reverse=order != "asc")

    def get_version(self, tag: str) -> int:
        return self._dataset._ds.tag_version(tag)

    def create(self, tag: str, reference=None) -> None:
        """Tags a version (the dataset's own by default)."""
        engine, version = self._find(reference)
        engine.create_tag(tag, check_int64("version", version))

    def update(self, tag: str, reference=None) -> None:
        engine, version = self._find(reference)
        engine.update_tag(tag, check_int64("version", version))

    def delete(self, tag: str) -> None:
        self._dataset._ds.delete_tag(tag)

    def replace_metadata(self, tag: str, metadata: Dict[str, str]) -> None:
        raise refusal("Tags.replace_metadata")


class LanceField:
    """A field of the Lance schema."""

    def __init__(self, info: dict, arrow_field: pa.Field, children: List[LanceField]):
        self._info, self._arrow, self._children = info, arrow_field, children

    def name(self) -> str:
        return self._info["name"]

    def id(self) -> int:
        return self._info["id"]

    def children(self) -> List[LanceField]:
        return list(self._children)

    @property
    def metadata(self) -> Dict[str, str]:
        return dict(self._info["metadata"])

    def to_arrow(self) -> pa.Field:
        return self._arrow

    def __repr__(self):
        return f"LanceField(name={self.name()!r}, id={self.id()}, type={self._info['logical_type']!r})"


class LanceSchema:
    """The schema with Lance's field ids."""

    def __init__(self, infos: List[dict], schema: pa.Schema):
        self._schema = schema
        by_parent: Dict[int, List[dict]] = {}
        for info in infos:
            by_parent.setdefault(info["parent_id"], []).append(info)

        def build(parent: int, arrow_fields) -> List[LanceField]:
            fields = []
            for info, arrow_field in zip(by_parent.get(parent, []), arrow_fields):
                type_ = getattr(arrow_field.type, "storage_type", arrow_field.type)
                below = [type_.field(i) for i in range(type_.num_fields)]
                fields.append(LanceField(info, arrow_field, build(info["id"], below)))
            return fields

        self._fields = build(-1, list(schema))

    def fields(self) -> List[LanceField]:
        return list(self._fields)

    def field(self, name: str) -> Optional[LanceField]:
        return next((f for f in self._fields if f.name() == name), None)

    def to_pyarrow(self) -> pa.Schema:
        return self._schema

    def __repr__(self):
        return f"LanceSchema({self._fields!r})"


class LanceStats:
    """Sizes of a dataset."""

    def __init__(self, ds: LanceDataset):
        self._dataset = ds

    def dataset_stats(self, max_rows_per_group: int = 1024) -> dict:
        """`num_small_files` counts fragments of fewer than `max_rows_per_group` physical rows."""
        fragments = [self._dataset._ds.fragment(i) for i in self._dataset._ds.fragment_ids()]
        return {
            "num_deleted_rows": sum(f["num_deletions"] for f in fragments),
            "num_fragments": len(fragments),
            "num_small_files": sum(f["physical_rows"] < max_rows_per_group for f in fragments),
        }

    def index_stats(self, index_name: str):
        raise refusal("LanceStats.index_stats")

    def data_stats(self):
        raise refusal("LanceStats.data_stats")
