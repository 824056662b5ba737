"""The methods of tables that give the contents of blob columns; _blob.py carries them out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, List, Optional, Sequence, Tuple, Union

from . import _pool
from ._lazy import lazy

if TYPE_CHECKING:
    import pyarrow

    from ._blob import BlobFile

_blob = lazy("_blob")


class BlobMethods:
    """The methods of `LanceTable` that give the contents of blob columns."""

    def blob_columns(self) -> List[str]:
        """Dotted paths of the columns that `glaive.blob` made."""
        return _blob.blob_columns(self._inner)

    def fetch_blobs(self, column: str, row_ids: "Union[Sequence[int], pyarrow.Table]") -> "pyarrow.LargeBinaryArray":
        """The contents of a blob column by row, null for none.

        Args:
            column: name or dotted path.
            row_ids: a sequence of row ids, or the result of a query, sorted or filtered as one likes.

        ValueError when there is no such blob column or row.
        """
        return _blob.fetch_blobs(self._inner, column, row_ids)

    def fetch_blob_files(
        self, column: str, row_ids: "Union[Sequence[int], pyarrow.Table]"
    ) -> List[Optional[BlobFile]]:
        """Like `fetch_blobs`, but files, whose bytes are fetched when they are read; None for none."""
        return _blob.fetch_blob_files(self._inner, column, row_ids)

    def fetch_blob_ranges(
        self, column: str, requests: Sequence[Tuple[int, int, int]]
    ) -> "pyarrow.LargeBinaryArray":
        """Parts of blobs: for each (row id, offset, length) these bytes, null for no blob. ValueError behind a blob's end."""
        return _blob.fetch_blob_ranges(self._inner, column, requests)


class AsyncBlobMethods:
    """See `BlobMethods`."""

    async def blob_columns(self) -> List[str]:
        """See `LanceTable.blob_columns`."""
        return await _pool.run(_blob.blob_columns, self._inner)

    async def fetch_blobs(self, column: str, row_ids: Any) -> "pyarrow.LargeBinaryArray":
        """See `LanceTable.fetch_blobs`."""
        return await _pool.run(_blob.fetch_blobs, self._inner, column, row_ids)

    async def fetch_blob_files(self, column: str, row_ids: Any) -> List[Optional[BlobFile]]:
        """See `LanceTable.fetch_blob_files`."""
        return await _pool.run(_blob.fetch_blob_files, self._inner, column, row_ids)

    async def fetch_blob_ranges(self, column: str, requests: Sequence[Tuple[int, int, int]]) -> "pyarrow.LargeBinaryArray":
        """See `LanceTable.fetch_blob_ranges`."""
        return await _pool.run(_blob.fetch_blob_ranges, self._inner, column, requests)
