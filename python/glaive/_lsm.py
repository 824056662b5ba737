"""The LSM write path of a table: rows by key that are durable and visible at once, and reach the base table later."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Callable, Dict, List, Optional

from . import _pool
from ._plan import check_count
from .exceptions import InvalidTypeError


class LsmWriteSpec:
    """How writes of a table are spread over shards, each of which has a log and a writer of its own.

    Made by `unsharded`, `bucket` or `identity`; installed by `table.set_lsm_write_spec`. Immutable.

        table.set_unenforced_primary_key("id")
        table.set_lsm_write_spec(LsmWriteSpec.bucket("id", 4))
    """

    __slots__ = ("_column", "_defaults", "_maintained", "_num_buckets", "_type")

    def __init__(self) -> None:
        raise InvalidTypeError("LsmWriteSpec is made by its methods bucket, identity and unsharded")

    @staticmethod
    def _make(type_: str, column=None, num_buckets=None, maintained=None, defaults=None) -> "LsmWriteSpec":
        spec = LsmWriteSpec.__new__(LsmWriteSpec)
        spec._type, spec._column, spec._num_buckets = type_, column, num_buckets
        spec._maintained, spec._defaults = maintained, dict(defaults or {})
        return spec

    @staticmethod
    def bucket(column: str, num_buckets: int) -> "LsmWriteSpec":
        """Shards by the hash of a column; 1 to 1024 buckets."""
        return LsmWriteSpec._make("bucket", _text("column", column), check_count("num_buckets", num_buckets))

    @staticmethod
    def identity(column: str) -> "LsmWriteSpec":
        """A shard per value of a column."""
        return LsmWriteSpec._make("identity", _text("column", column))

    @staticmethod
    def unsharded() -> "LsmWriteSpec":
        """One shard."""
        return LsmWriteSpec._make("unsharded")

    def with_maintained_indexes(self, indexes: Optional[List[str]]) -> "LsmWriteSpec":
        """Indexes that fresh rows are kept in as well: a list of names, or None (the default) for all that the table has when the
        spec is set. B-trees, vector and full-text indexes can be; setting a spec with others, by name or by None, raises."""
        if indexes is not None:
            if isinstance(indexes, (str, bytes)) or not hasattr(indexes, "__iter__"):
                raise InvalidTypeError(f"maintained indexes are a list of names, not {indexes!r}")
            indexes = [_text("the name of an index", name) for name in indexes]
        return self._make(self._type, self._column, self._num_buckets, indexes, self._defaults)

    def with_writer_config_defaults(self, defaults: Dict[str, str]) -> "LsmWriteSpec":
        """Configuration of the writers by name, as text.

        Names are those of the keywords of `LanceDataset.mem_wal_writer`, and `durability`: "fsync" (the default: rows survive a
        power cut) or "os" (they survive the death of the process).
        """
        if not hasattr(defaults, "items"):
            raise InvalidTypeError(f"the defaults are a dict of text, not {defaults!r}")
        checked = {_text("a name", key): _text(f"the value of {key}", value) for key, value in defaults.items()}
        return self._make(self._type, self._column, self._num_buckets, self._maintained, checked)

    @property
    def spec_type(self) -> str:
        """"bucket", "identity" or "unsharded"."""
        return self._type

    @property
    def column(self) -> Optional[str]:
        """The column that decides the shard."""
        return self._column

    @property
    def num_buckets(self) -> Optional[int]:
        """The number of buckets, of a spec by bucket."""
        return self._num_buckets

    @property
    def maintained_indexes(self) -> Optional[List[str]]:
        """Names of indexes; None: all that the table has."""
        return None if self._maintained is None else list(self._maintained)

    @property
    def writer_config_defaults(self) -> Dict[str, str]:
        """Configuration of the writers."""
        return dict(self._defaults)

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, LsmWriteSpec) and all(getattr(self, n) == getattr(other, n) for n in self.__slots__)

    def __hash__(self) -> int:
        return hash((self._type, self._column, self._num_buckets))

    def __repr__(self) -> str:
        shown = []
        if self._column is not None:
            shown.append(f"column={_quoted(self._column)}")
        if self._num_buckets is not None:
            shown.append(f"num_buckets={self._num_buckets}")
        indexes = None if self._maintained is None else "[" + ", ".join(map(_quoted, self._maintained)) + "]"
        defaults = "{" + ", ".join(f"{_quoted(k)}: {_quoted(v)}" for k, v in self._defaults.items()) + "}"
        shown += [f"maintained_indexes={indexes}", f"writer_config_defaults={defaults}"]
        return f"LsmWriteSpec.{self._type}({', '.join(shown)})"


@dataclass(frozen=True)
class CompactLsmResult:
    """One pass: generations merged into the base table, and those that are left."""

    generations_consumed: int
    generations_remaining: int


@dataclass(frozen=True)
class CheckpointLsmResult:
    """What a checkpoint did.

    `generations_remaining` counts those that the flush found or made; `converged` says that none of them is left. `passes` is the
    number of compactions that were run: none on a table that had converged already.
    """

    generations_consumed: int
    generations_remaining: int
    passes: int
    converged: bool


def _text(what: str, value: Any) -> str:
    if not isinstance(value, str):
        raise InvalidTypeError(f"{what} must be text, not {value!r}")
    return value


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


# --- blocking calls --------------------------------------------------------------------------------------


def set_spec(native, spec) -> None:
    if not isinstance(spec, LsmWriteSpec):
        raise InvalidTypeError(f"a write spec is an LsmWriteSpec, not {spec!r}")
    native.set_lsm_write_spec(
        spec.spec_type,
        column=spec.column,
        num_buckets=spec.num_buckets,
        maintained_indexes=spec.maintained_indexes,
        writer_config_defaults=spec.writer_config_defaults,
    )


def get_spec(native) -> Optional[LsmWriteSpec]:
    found = native.get_lsm_write_spec()
    if found is None:
        return None
    return LsmWriteSpec._make(
        found["sharding"], found["column"], found["num_buckets"], found["maintained_indexes"], found["writer_config_defaults"]
    )


def compact(native) -> CompactLsmResult:
    done = native.compact_lsm()
    return CompactLsmResult(done["generations_consumed"], done["generations_remaining"])


def checkpoint(native, timeout=None, progress=None) -> CheckpointLsmResult:
    from ._changes import seconds

    done = native.checkpoint_lsm(timeout=seconds(timeout, "timeout"), progress=progress)
    return CheckpointLsmResult(done["generations_consumed"], done["generations_remaining"], done["passes"], done["converged"])


def stats(native, include_generation_rows) -> Optional[dict]:
    buckets = native.get_lsm_stats(include_generation_rows=bool(include_generation_rows))
    if buckets is None:
        return None
    for bucket in buckets:
        if bucket["memtables"] is None:
            del bucket["memtables"]
        for generation in bucket["generations"]:
            if generation["rows"] is None:
                del generation["rows"]
    return {"buckets": buckets}


class LsmMethods:
    """The methods of `LanceTable`."""

    _inner: Any

    def set_lsm_write_spec(self, spec: LsmWriteSpec) -> None:
        """Gives the table an LSM write path; needs an unenforced primary key (see `set_unenforced_primary_key`).

        From then on `merge_insert` (as an upsert by that key), `add`, `update` and `delete` go through it: rows are acknowledged
        when they are durable in a log, every read sees them at once, rows of one key replace each other, and no version is
        committed. They reach the base table by upkeep, `compact_lsm` or `checkpoint_lsm`. ValueError when a spec is set already,
        for an unknown index or column, and for a column that cannot decide the shard.
        """
        set_spec(self._inner, spec)

    def unset_lsm_write_spec(self) -> None:
        """Takes the LSM write path away, after flushing. Rows that are not in the base table are then no longer seen:
        `checkpoint_lsm` comes first. ValueError when there is none."""
        self._inner.unset_lsm_write_spec()

    def get_lsm_write_spec(self) -> Optional[LsmWriteSpec]:
        """The spec that is set, with the list of maintained indexes; None without one."""
        return get_spec(self._inner)

    def close_lsm_writers(self) -> None:
        """Flushes and closes the writers that this process has for the table, so that another one need not replay their logs."""
        self._inner.close_lsm_writers()

    def flush_lsm(self) -> None:
        """Turns the fresh rows of every shard into generations. Claims shards, which fences their writers in other processes."""
        self._inner.flush_lsm()

    def compact_lsm(self) -> CompactLsmResult:
        """One pass that merges the generations into the base table by key, deletes included."""
        return compact(self._inner)

    def checkpoint_lsm(
        self, *, timeout: Any = None, progress: Optional[Callable[[int, int], None]] = None
    ) -> CheckpointLsmResult:
        """Flushes, then compacts until everything that was fresh at the flush is in the base table.

        Writes go on meanwhile; their rows are not waited for. May be repeated and abandoned at any point. `timeout`: a timedelta,
        after which RuntimeError is raised; `progress` is called with the generations left and those there were.
        """
        return checkpoint(self._inner, timeout, progress)

    def get_lsm_stats(self, *, include_generation_rows: bool = False) -> Optional[dict]:
        """The state of each shard: `{"buckets": [{"shard_id", "status", "writer_epoch", "generations", "memtables", ...}]}`.

        None only when the table has no LSM write path. Counting the rows of generations opens each of them.
        """
        return stats(self._inner, include_generation_rows)


class AsyncLsmMethods:
    """The methods of `AsyncTable`; see `LsmMethods`."""

    _inner: Any

    async def set_lsm_write_spec(self, spec: LsmWriteSpec) -> None:
        """See `LanceTable.set_lsm_write_spec`."""
        await _pool.run(set_spec, self._inner, spec)

    async def unset_lsm_write_spec(self) -> None:
        """See `LanceTable.unset_lsm_write_spec`."""
        await _pool.run(self._inner.unset_lsm_write_spec)

    async def get_lsm_write_spec(self) -> Optional[LsmWriteSpec]:
        """See `LanceTable.get_lsm_write_spec`."""
        return await _pool.run(get_spec, self._inner)

    async def close_lsm_writers(self) -> None:
        """See `LanceTable.close_lsm_writers`."""
        await _pool.run(self._inner.close_lsm_writers)

    async def flush_lsm(self) -> None:
        """See `LanceTable.flush_lsm`."""
        await _pool.run(self._inner.flush_lsm)

    async def compact_lsm(self) -> CompactLsmResult:
        """See `LanceTable.compact_lsm`."""
        return await _pool.run(compact, self._inner)

    async def checkpoint_lsm(
        self, *, timeout: Any = None, progress: Optional[Callable[[int, int], None]] = None
    ) -> CheckpointLsmResult:
        """See `LanceTable.checkpoint_lsm`."""
        return await _pool.run(checkpoint, self._inner, timeout, progress)

    async def get_lsm_stats(self, *, include_generation_rows: bool = False) -> Optional[dict]:
        """See `LanceTable.get_lsm_stats`."""
        return await _pool.run(stats, self._inner, include_generation_rows)
