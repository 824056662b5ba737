"""Handles for work that a database does by itself; in a local one it is done when the call returns."""

from __future__ import annotations

from datetime import timedelta
from typing import Generic, Optional, TypeVar

from .exceptions import NotSupportedError

T = TypeVar("T")


def _no_history() -> NotSupportedError:
    return NotSupportedError("LanceDBError: not supported: job event history is only available for server-side jobs")


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

    def refresh(self) -> None:
        """Nothing changes any more: does nothing."""

    def events(self, *, limit: Optional[int] = None, filter: Optional[str] = None) -> list:
        """NotImplementedError: only servers keep a history of their jobs."""
        raise _no_history()

    @property
    def state(self) -> str:
        """"finished"."""
        return "finished"

    @property
    def result(self) -> None:
        """None: `wait` returns the result of local work."""

    @property
    def failure(self) -> None:
        """None: local work that fails raises when it is called."""

    @property
    def job_type(self) -> None:
        """None: told by servers only."""

    @property
    def spec(self) -> None:
        """None: told by servers only."""

    @property
    def creation_ms(self) -> None:
        """None: told by servers only."""


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

    async def refresh(self) -> None:
        """Does nothing."""

    async def events(self, *, limit: Optional[int] = None, filter: Optional[str] = None) -> list:
        """NotImplementedError: only servers keep a history of their jobs."""
        raise _no_history()

    state, result, failure = Job.state, Job.result, Job.failure
    job_type, spec, creation_ms = Job.job_type, Job.spec, Job.creation_ms
