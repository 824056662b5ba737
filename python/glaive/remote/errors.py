"""What a client of a server raises. Pickling keeps all attributes."""

from __future__ import annotations

from typing import Optional

__all__ = ["HttpError", "LanceDBClientError", "RetryError"]


def _rebuild(cls, message, state):
    error = cls.__new__(cls, message)
    error.args = (message,)
    error.__dict__.update(state)
    return error


class LanceDBClientError(RuntimeError):
    """A request failed. `request_id` names it in the server's log, `status_code` is the HTTP status, if there was one."""

    def __init__(self, message: str, request_id: str, status_code: Optional[int] = None):
        super().__init__(message)
        self.request_id = request_id
        self.status_code = status_code

    def __reduce__(self):
        return _rebuild, (type(self), self.args[0], dict(self.__dict__))


class HttpError(LanceDBClientError):
    """The server answered with an error, or not at all."""


class RetryError(LanceDBClientError):
    """All attempts failed: how many and of which kind, and how many were allowed."""

    def __init__(
        self,
        message: str,
        request_id: str,
        request_failures: int,
        connect_failures: int,
        read_failures: int,
        max_request_failures: int,
        max_connect_failures: int,
        max_read_failures: int,
        status_code: Optional[int],
    ):
        super().__init__(message, request_id, status_code)
        self.request_failures = request_failures
        self.connect_failures = connect_failures
        self.read_failures = read_failures
        self.max_request_failures = max_request_failures
        self.max_connect_failures = max_connect_failures
        self.max_read_failures = max_read_failures
