"""Handles for work that a database does by itself; in a local one it is done when the call returns."""

from __future__ import annotations

from datetime import timedelta
from typing import Generic, Optional, TypeVar

T = TypeVar("T")


class Job(Generic[T]):
    """A finished piece of work: `id` is None, `status()` "finished"."""

    def __init__(self, result: Optional[T] = None):
        self._result = result

    def __repr__(self) -> str:
        return "Job(\n    state='finished',\n)"

    @property
    def id(self) -> Optional[str]:
        """None: local work has no number."""
        return None

    def status(self) -> str:
        """"finished"."""
        return "finished"

    def wait(self, timeout: Optional[timedelta] = None) -> Optional[T]:
        """The result."""
        return self._result

    def cancel(self) -> None:
        """Too late for finished work: does nothing."""


class AsyncJob(Generic[T]):
    """See `Job`; `status`, `wait` and `cancel` are coroutines."""

    def __init__(self, result: Optional[T] = None):
        self._job = Job(result)

    def __repr__(self) -> str:
        return "Async" + repr(self._job)

    @property
    def id(self) -> Optional[str]:
        """None: local work has no number."""
        return None

    async def status(self) -> str:
        """"finished"."""
        return self._job.status()

    async def wait(self, timeout: Optional[timedelta] = None) -> Optional[T]:
        """The result."""
        return self._job.wait(timeout)

    async def cancel(self) -> None:
        """Does nothing."""
