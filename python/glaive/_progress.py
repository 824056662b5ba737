"""Reports on a running write: to a callable, to a tqdm-like bar, or to a bar of our own."""

from __future__ import annotations

import time
from typing import Any, Callable, Optional

from .exceptions import InvalidTypeError


class _Report:
    """Adapts the engine's count of written rows to what the user asked for. An error in the user's code stops no write."""

    def __init__(self, sink: Any, total_rows: Optional[int], bytes_for: Callable[[int], int]):
        self._began = time.perf_counter()
        self._total = total_rows
        self._bytes_for = bytes_for
        self._rows = 0
        self._close = None
        if sink is True:
            from tqdm.auto import tqdm

            sink = tqdm(total=total_rows, unit=" rows")
            self._close = sink.close
        self._call: Callable = self._to_bar if hasattr(sink, "update") else self._to_callable
        self._sink = sink
        if total_rows is not None and self._call == self._to_bar and getattr(sink, "total", False) is None:
            sink.total = total_rows

    def __call__(self, rows: int) -> None:
        self._call(rows, False)

    def finish(self) -> None:
        try:
            self._call(self._rows if self._total is None else self._total, True)
        except Exception:
            pass
        if self._close is not None:
            self._close()

    def _to_bar(self, rows: int, done: bool) -> None:
        if rows > self._rows:
            self._sink.update(rows - self._rows)
            self._rows = rows
        if done and hasattr(self._sink, "refresh"):
            self._sink.refresh()

    def _to_callable(self, rows: int, done: bool) -> None:
        self._rows = max(rows, self._rows)
        self._sink(
            {
                "output_rows": self._rows,
                "output_bytes": self._bytes_for(self._rows),
                "total_rows": self._total,
                "elapsed_seconds": time.perf_counter() - self._began,
                "active_tasks": 0 if done else 1,
                "total_tasks": 1,
                "done": done,
            }
        )


def report(progress: Any, total_rows: Optional[int], bytes_for: Callable[[int], int]) -> Optional[_Report]:
    """The engine's callback for the `progress` argument of a write; None when there is nothing to report to.

    `bytes_for` tells how many bytes a number of rows takes.
    """
    if progress is None or progress is False:
        return None
    if progress is not True and not callable(progress) and not hasattr(progress, "update"):
        raise InvalidTypeError("progress must be True, a callable or a tqdm-like object")
    return _Report(progress, total_rows, bytes_for)
