"""`LanceDataset.merge_insert`: rows by key updated, inserted and deleted in one version."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Dict, Iterable, List, Optional, Union

import pyarrow as pa

from .._changes import check_retries, check_where, seconds
from ..merge import check_keys
from ._data import to_stream
from ._refuse import not_built, refusal


@not_built(methods=["analyze_plan_batches", "execute_batches", "execute_uncommitted_batches"])
class MergeInsertBuilder:
    """A merge being put together; `execute` runs it and moves the dataset to the version it commits."""

    def __init__(self, dataset: Any, on: Union[None, str, Iterable[str]] = None):
        self._dataset = dataset
        self._options: Dict[str, Any] = {"on": check_keys(on)}
        dataset._ds.explain_merge({**self._options, "insert": True})  # the key columns must exist

    def when_matched_update_all(self, condition: Optional[str] = None) -> MergeInsertBuilder:
        """Matched rows get the source's values, where `condition`, SQL over `target.x` and `source.x`, is true."""
        self._options["matched"] = "update"
        self._set("update_condition", check_where(condition))
        return self

    def when_matched_delete(self) -> MergeInsertBuilder:
        """Matched rows are deleted; the source needs no more than the key columns."""
        return self._matched("delete")

    def when_matched_fail(self) -> MergeInsertBuilder:
        """A matched row is an error, and nothing changes."""
        return self._matched("fail")

    def when_not_matched_insert_all(self) -> MergeInsertBuilder:
        """Source rows whose key the dataset does not have are added."""
        self._options["insert"] = True
        return self

    def when_not_matched_by_source_delete(self, expr: Optional[str] = None) -> MergeInsertBuilder:
        """Rows whose key the source does not have are deleted, where `expr`, SQL over the dataset's columns, is true."""
        self._options["delete_not_in_source"] = True
        self._set("delete_condition", check_where(expr))
        return self

    def source_dedupe_behavior(self, behavior: str) -> MergeInsertBuilder:
        """Several source rows of one key: "fail" (when they would change the same row), or keep the "first_seen"."""
        if behavior not in ("fail", "first_seen"):
            raise ValueError(f'source_dedupe_behavior must be "fail" or "first_seen", not {behavior!r}')
        self._options["first_seen"] = behavior == "first_seen"
        return self

    def conflict_retries(self, max_retries: int) -> MergeInsertBuilder:
        """How often to run again when concurrent commits touched the same rows (10)."""
        self._options["conflict_retries"] = check_retries(max_retries)
        return self

    def retry_timeout(self, timeout: timedelta) -> MergeInsertBuilder:
        """For how long to run again (30 seconds); the first attempt may take longer."""
        self._options["retry_timeout"] = seconds(timeout, "timeout")
        return self

    def data_storage_version(self, version: str) -> MergeInsertBuilder:
        """The version of the files that are written; by default the dataset's."""
        self._options["data_storage_version"] = version
        return self

    def use_index(self, use_index: bool) -> MergeInsertBuilder:
        """Whether an index on the key may be used. There is none yet: the key columns are scanned either way."""
        return self

    def write_mode(self, mode: str) -> MergeInsertBuilder:
        """"auto" and "rewrite_rows": changed rows are written anew. "rewrite_columns" raises NotImplementedError."""
        if mode == "rewrite_columns":
            raise refusal("write_mode='rewrite_columns'")
        if mode not in ("auto", "rewrite_rows"):
            raise ValueError(f"write_mode must be auto, rewrite_rows or rewrite_columns, not {mode!r}")
        return self

    def target_bases(self, bases: List[str]) -> MergeInsertBuilder:
        raise refusal("MergeInsertBuilder.target_bases")

    def target_all_bases(self, include_primary: bool = True) -> MergeInsertBuilder:
        raise refusal("MergeInsertBuilder.target_all_bases")

    def mark_sstables_as_compacted(self, sstables) -> MergeInsertBuilder:
        """Records, in the same version, that generations of shards are in the dataset: a list of `CompactedSsTable`.

        The commit fails as a whole when the dataset has recorded the same or later progress. Calls add up.
        """
        from .mem_wal import native_markers

        self._options["compacted"] = [*self._options.get("compacted", []), *native_markers(sstables)]
        return self

    mark_generations_as_merged = mark_sstables_as_compacted

    def execute(self, data_obj, *, schema: Optional[pa.Schema] = None) -> Dict[str, int]:
        """Runs the merge with whatever `write_dataset` takes; `num_inserted_rows`, `num_updated_rows`, `num_deleted_rows`."""
        data = self._needed(to_stream(data_obj, schema))
        options = {**self._options, "in_memory": isinstance(data, pa.Table)}
        self._dataset._ds, done = self._dataset._ds.merge_insert(options, data)
        return {name: done[name] for name in ("num_inserted_rows", "num_updated_rows", "num_deleted_rows")}

    def execute_uncommitted(self, data_obj, *, schema: Optional[pa.Schema] = None):
        raise refusal("MergeInsertBuilder.execute_uncommitted")

    def explain_plan(self, schema: Optional[pa.Schema] = None, verbose: bool = False) -> str:
        """What `execute` would do with a source of this schema (the dataset's, by default)."""
        return self._dataset._ds.explain_merge(self._options, schema)

    def analyze_plan(self, data_obj, *, schema: Optional[pa.Schema] = None) -> str:
        """Runs the merge without committing it, and tells how it went."""
        return self._dataset._ds.analyze_merge(self._options, to_stream(data_obj, schema))

    def _needed(self, data):
        """Without updates and inserts only the columns of the key matter, so the source may have others that the dataset lacks."""
        if self._options.get("insert") or self._options.get("matched") in ("update", "fail"):
            return data
        known = set(self._dataset.schema.names)
        if not hasattr(data, "schema") or all(name in known for name in data.schema.names):
            return data
        names = [name for name in data.schema.names if name in known]
        if isinstance(data, pa.Table):
            return data.select(names)
        reader = pa.RecordBatchReader.from_stream(data)
        return pa.RecordBatchReader.from_batches(
            pa.schema([reader.schema.field(name) for name in names]), (batch.select(names) for batch in reader)
        )

    def _matched(self, action: str) -> MergeInsertBuilder:
        self._options["matched"] = action
        self._options.pop("update_condition", None)
        return self

    def _set(self, name: str, value: Any) -> None:
        if value is None:
            self._options.pop(name, None)
        else:
            self._options[name] = value
