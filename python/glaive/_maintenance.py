"""Upkeep of tables: blocking operations, shared by the sync and the async class, and what they return."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from datetime import timedelta
from typing import Optional

from . import _glaive
from .exceptions import InvalidTypeError


@dataclass(frozen=True)
class CompactionStats:
    """What a compaction replaced by what. Files are data and deletion files."""

    fragments_removed: int
    fragments_added: int
    files_removed: int
    files_added: int

    def __repr__(self):
        return f"CompactionStats {{ {', '.join(f'{name}: {value}' for name, value in self.__dict__.items())} }}"


@dataclass(frozen=True)
class RemovalStats:
    """What a clean-up of old versions removed."""

    bytes_removed: int
    old_versions_removed: int

    def __repr__(self):
        return f"RemovalStats {{ {', '.join(f'{name}: {value}' for name, value in self.__dict__.items())} }}"


@dataclass(frozen=True)
class OptimizeStats:
    """What `optimize` did."""

    compaction: CompactionStats
    prune: RemovalStats


def optimize(native, cleanup_older_than: Optional[timedelta], delete_unverified: bool, retrain: bool) -> OptimizeStats:
    if retrain:
        warnings.warn("the argument retrain of optimize is deprecated and has no effect", DeprecationWarning, stacklevel=3)
    micros = None
    if cleanup_older_than is not None:
        if not isinstance(cleanup_older_than, timedelta):
            raise InvalidTypeError(f"cleanup_older_than must be a timedelta, not {cleanup_older_than!r}")
        micros = max(0, cleanup_older_than // timedelta(microseconds=1))
    compaction, prune = _glaive.optimize(native, older_than_us=micros, delete_unverified=bool(delete_unverified))
    return OptimizeStats(CompactionStats(*compaction), RemovalStats(prune["bytes_removed"], prune["old_versions"]))


class SyncMaintenance:
    """Methods of `LanceTable`."""

    def optimize(
        self,
        *,
        cleanup_older_than: Optional[timedelta] = None,
        delete_unverified: bool = False,
        retrain: bool = False,
    ) -> None:
        """Folds small fragments into larger ones and removes old versions.

        Tagged versions stay. Fragments that other writers keep changing meanwhile are left to a later call. Programs that only append and change rows need not call this: see `glaive.maintenance`.

        Args:
            cleanup_older_than: versions older than this are removed, 7 days by default. With 0 only the newest stays; other
                processes that still read an older one then fail.
            delete_unverified: remove files of unfinished writes even if they are younger than 7 days. Only safe when no other
                process writes.
            retrain: deprecated, without effect.
        """
        optimize(self._inner, cleanup_older_than, delete_unverified, retrain)

    def compact_files(self, *args, **kwargs):
        """Deprecated, use `optimize`. The arguments are those of `glaive.lance.optimize.DatasetOptimizer.compact_files`."""
        warnings.warn("compact_files is deprecated, use optimize", DeprecationWarning, stacklevel=2)
        stats = self.to_lance().optimize.compact_files(*args, **kwargs)
        self.checkout_latest()
        return stats

    def cleanup_old_versions(self, older_than: Optional[timedelta] = None, *, delete_unverified: bool = False):
        """Deprecated, use `optimize`. Removes versions older than `older_than` (two weeks by default)."""
        warnings.warn("cleanup_old_versions is deprecated, use optimize", DeprecationWarning, stacklevel=2)
        return self.to_lance().cleanup_old_versions(older_than, delete_unverified=delete_unverified)


class AsyncMaintenance:
    """Methods of `AsyncTable`."""

    async def optimize(
        self,
        *,
        cleanup_older_than: Optional[timedelta] = None,
        delete_unverified: bool = False,
        retrain: bool = False,
    ) -> OptimizeStats:
        """See `LanceTable.optimize`."""
        from . import _pool

        return await _pool.run(optimize, self._inner, cleanup_older_than, delete_unverified, retrain)
