"""`merge_insert`: rows by key updated, inserted and deleted in one version."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any, Dict, Iterable, List, Optional, Union

from . import _ingest
from ._changes import check_where, seconds
from ._results import MergeResult
from .exceptions import InvalidInputError, InvalidTypeError

if TYPE_CHECKING:
    from .common import DATA
    from .types import OnBadVectorsType

__all__ = ["LanceMergeInsertBuilder"]


def check_keys(on: Any) -> List[str]:
    """Names of key columns out of a name or several; none for None."""
    if on is None:
        return []
    if isinstance(on, str):
        return [_unquoted(on)]
    if isinstance(on, (bytes, dict)) or not hasattr(on, "__iter__"):
        raise InvalidTypeError(f"the key of a merge is the name of a column or a list of names, not {on!r}")
    names = list(on)
    for name in names:
        if not isinstance(name, str):
            raise InvalidTypeError(f"the key of a merge is made of names of columns, not {name!r}")
    return [_unquoted(name) for name in names]


def _unquoted(name: str) -> str:
    """`a b` in back-quotes is the column a b."""
    inner = name[1:-1]
    if len(name) < 3 or name[0] != "`" or name[-1] != "`" or "`" in inner.replace("``", ""):
        return name
    return inner.replace("``", "`")


def check_on(on: Any) -> List[str]:
    """As `check_keys`, but something must be given."""
    if on is None:
        raise InvalidTypeError("the key of a merge must be given: the name of a column, or several")
    return check_keys(on)


class LanceMergeInsertBuilder:
    """A merge being put together; `execute` runs it. Get one from `table.merge_insert`."""

    def __init__(self, table: Any, on: Union[None, str, Iterable[str]]):
        self._table = table
        self._options: Dict[str, Any] = {"on": check_keys(on)}

    def when_matched_update_all(self, *, where: Optional[str] = None) -> "LanceMergeInsertBuilder":
        """Rows whose key is in the new data get its values, where `where` is true.

        `where` is SQL over the old and the new row: "target.n < source.n".
        """
        self._options["matched"] = "update"
        self._set("update_condition", check_where(where))
        return self

    def when_not_matched_insert_all(self) -> "LanceMergeInsertBuilder":
        """Rows of the new data whose key the table does not have are added."""
        self._options["insert"] = True
        return self

    def when_not_matched_by_source_delete(self, condition: Any = None) -> "LanceMergeInsertBuilder":
        """Rows of the table whose key the new data does not have are deleted, where `condition` is true.

        `condition` is SQL over the table's columns. A second call replaces the first one's condition.
        """
        self._options["delete_not_in_source"] = True
        self._set("delete_condition", check_where(condition))
        return self

    def source_dedupe_behavior(self, behavior: str) -> "LanceMergeInsertBuilder":
        """What to do with several new rows of one key: "fail" (when they would change the same row), or keep the "first_seen"."""
        if behavior not in ("fail", "first_seen"):
            raise InvalidInputError(f'source_dedupe_behavior must be "fail" or "first_seen", not {behavior!r}')
        self._options["first_seen"] = behavior == "first_seen"
        return self

    def use_index(self, use_index: bool) -> "LanceMergeInsertBuilder":
        """Whether an index on the key may be used. There is none yet: the key columns are scanned either way."""
        if not isinstance(use_index, bool):
            raise InvalidTypeError(f"use_index must be True or False, not {use_index!r}")
        return self

    def use_lsm(self, enable: bool) -> "LanceMergeInsertBuilder":
        """Which way the merge goes on a table with an LSM write path.

        By default through that path, as an upsert by the primary key. False merges into the base table. True: ValueError when the
        table has no such path.
        """
        if not isinstance(enable, bool):
            raise InvalidTypeError(f"use_lsm must be True or False, not {enable!r}")
        self._options["use_lsm"] = enable
        return self

    def validate_single_shard(self, validate_single_shard: bool) -> "LanceMergeInsertBuilder":
        """True: rows of more than one shard in one call are a ValueError. By default they are spread over their shards.

        Concerns the LSM path only; no effect on other tables.
        """
        if not isinstance(validate_single_shard, bool):
            raise InvalidTypeError(f"validate_single_shard must be True or False, not {validate_single_shard!r}")
        self._options["single_shard"] = validate_single_shard
        return self

    def execute(
        self,
        new_data: "DATA",
        on_bad_vectors: "OnBadVectorsType" = "error",
        fill_value: float = 0.0,
        timeout: Optional[timedelta] = None,
    ) -> MergeResult:
        """Runs the merge with `new_data` (whatever `add` takes) as one new version; a coroutine on async tables.

        The new data may lack columns: those keep their values in updated rows and are null in added ones. A null key matches
        nothing. With `timeout`, RuntimeError "merge insert timed out" when it takes longer. ValueError, with the table unchanged,
        when several new rows would change one row, for an unknown column, for values that do not fit, and without any clause.
        """
        return self._table._do_merge(self, new_data, on_bad_vectors, fill_value, timeout)

    def _set(self, name: str, value: Any) -> None:
        if value is None:
            self._options.pop(name, None)
        else:
            self._options[name] = value


def execute(native, builder: LanceMergeInsertBuilder, new_data, on_bad_vectors, fill_value, timeout) -> MergeResult:
    limit = seconds(timeout, "timeout")
    schema = native.schema()
    incoming = _ingest.for_append(new_data, schema, on_bad_vectors, fill_value)
    if incoming.schema is not schema:
        _ingest.check_not_computed(schema, incoming.schema.names)
    options = {**builder._options, "in_memory": incoming.table is not None}
    done = incoming.send(lambda payload: native.merge_insert(options, payload, timeout=limit))
    return MergeResult(
        version=done["version"],
        num_updated_rows=done["num_updated_rows"],
        num_inserted_rows=done["num_inserted_rows"],
        num_deleted_rows=done["num_deleted_rows"],
        num_attempts=done["num_attempts"],
        num_rows=done["num_rows"],
    )
