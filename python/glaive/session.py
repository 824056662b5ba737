"""A session: what several connections may share."""

from __future__ import annotations

from typing import Optional

from ._plan import check_count

_INDEX_CACHE = 6 << 30
_METADATA_CACHE = 1 << 30
_U64 = 2**64 - 1


class Session:
    """Sizes for caches, given to `connect`.

    The engine keeps one cache of open tables per process; the sizes are remembered and will bound the index cache once there are
    indexes. `size_bytes` and `approx_num_items` tell what this session holds by itself: nothing yet.
    """

    def __init__(self, index_cache_size_bytes: Optional[int] = None, metadata_cache_size_bytes: Optional[int] = None):
        size = lambda name, value, default: default if value is None else check_count(name, value, _U64)  # noqa: E731
        self.index_cache_size_bytes = size("index_cache_size_bytes", index_cache_size_bytes, _INDEX_CACHE)
        self.metadata_cache_size_bytes = size("metadata_cache_size_bytes", metadata_cache_size_bytes, _METADATA_CACHE)

    @staticmethod
    def default() -> "Session":
        """A session with the default sizes: 6 GiB and 1 GiB."""
        return Session()

    @property
    def size_bytes(self) -> int:
        """Bytes held."""
        return 0

    @property
    def approx_num_items(self) -> int:
        """Entries held."""
        return 0

    def __repr__(self) -> str:
        return (
            f"Session(index_cache_size_bytes={self.index_cache_size_bytes}, "
            f"metadata_cache_size_bytes={self.metadata_cache_size_bytes})"
        )
