"""One event loop on a thread of its own, for sync code that has to wait for coroutines.

The sync classes of this package call the engine directly and need no loop; programs written for the LanceDB API use `LOOP.run`
to call async classes. The thread starts with the first call, and anew in a forked child.
"""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING, Any, Coroutine, Optional, TypeVar

if TYPE_CHECKING:
    import asyncio
    from concurrent.futures import ThreadPoolExecutor

__all__ = ["LOOP", "BackgroundEventLoop", "embedding_executor"]

T = TypeVar("T")


class BackgroundEventLoop:
    """An event loop that runs on its own thread. May be used from any thread, also inside another running loop."""

    def __init__(self) -> None:
        self._start()

    def _start(self) -> None:
        """Forgets the present loop, if any; the next call makes a new one."""
        self._loop: "Optional[asyncio.AbstractEventLoop]" = None
        self._lock = threading.Lock()

    @property
    def loop(self) -> "asyncio.AbstractEventLoop":
        """The loop, running."""
        with self._lock:
            if self._loop is None:
                import asyncio

                self._loop = asyncio.new_event_loop()
                self.thread = threading.Thread(target=self._loop.run_forever, name="glaive-background-loop", daemon=True)
                self.thread.start()
            return self._loop

    def run(self, future: "Coroutine[Any, Any, T]") -> T:
        """The result of a coroutine, which is cancelled when the wait ends by an exception (Ctrl-C, say)."""
        import asyncio

        waiting = asyncio.run_coroutine_threadsafe(future, self.loop)
        try:
            return waiting.result()
        except BaseException:
            waiting.cancel()
            raise


LOOP = BackgroundEventLoop()

_executor: "Optional[ThreadPoolExecutor]" = None


def embedding_executor() -> "ThreadPoolExecutor":
    """Threads for calls of embedding functions alone: these may be slow, and other work must not wait behind them."""
    global _executor
    if _executor is None:
        from concurrent.futures import ThreadPoolExecutor

        _executor = ThreadPoolExecutor(thread_name_prefix="lancedb-embedding")
    return _executor


def _reset_after_fork() -> None:
    """Threads do not live on in a forked child: start over there."""
    global _executor
    LOOP._start()
    _executor = None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_reset_after_fork)
