"""Arrow readers for async code."""

from __future__ import annotations

from typing import TYPE_CHECKING, AsyncIterator, List

from . import _pool

if TYPE_CHECKING:
    import pyarrow as pa

_END = object()


class AsyncRecordBatchReader:
    """Record batches as an async iterator.

    `schema` is known at once; `async for batch in reader` gives `pa.RecordBatch`es; `await reader.read_all()` the rest as a list.
    """

    def __init__(self, reader: "pa.RecordBatchReader"):
        self._reader = iter(reader)
        self.schema: "pa.Schema" = reader.schema

    def __aiter__(self) -> AsyncIterator["pa.RecordBatch"]:
        return self

    async def __anext__(self) -> "pa.RecordBatch":
        batch = await _pool.run(next, self._reader, _END)
        if batch is _END:
            raise StopAsyncIteration
        return batch

    async def read_all(self) -> List["pa.RecordBatch"]:
        """The batches that are left, as a list."""
        return await _pool.run(list, self._reader)
