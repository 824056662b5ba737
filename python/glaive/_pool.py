"""Runs blocking engine calls for the async classes.

The engine has no event loop. A coroutine hands its call to a thread of a pool of our own (the program's default executor
stays free) and may be awaited in any loop. The pool is made at first use and again in a forked child.
"""

from __future__ import annotations

import functools
import os

_MAX_THREADS = 32
_pool = None


def _forget_pool() -> None:
    """In a forked child the threads are gone; the next call makes new ones."""
    global _pool
    _pool = None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_pool)


def _get_pool():
    global _pool
    if _pool is None:
        from concurrent.futures import ThreadPoolExecutor

        _pool = ThreadPoolExecutor(_MAX_THREADS, thread_name_prefix="glaive-async")
    return _pool


async def run(function, *args, **kwargs):
    """The result of `function(*args, **kwargs)`, called on a thread of the pool."""
    import asyncio

    call = functools.partial(function, *args, **kwargs)
    return await asyncio.get_running_loop().run_in_executor(_get_pool(), call)


async def run_cancellable(function, *args, **kwargs):
    """Like `run`, for engine calls that take `cancel`: cancelling the task also stops the call."""
    import asyncio

    from ._glaive import CancelToken

    token = CancelToken()
    try:
        return await run(function, *args, cancel=token, **kwargs)
    except asyncio.CancelledError:
        token.cancel()
        raise
