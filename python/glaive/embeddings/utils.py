"""Helpers for embedding functions."""

from __future__ import annotations

import functools
import random
import time
import urllib.request
from typing import Any, Callable, List, Union

import numpy as np
import pyarrow as pa

from .. import _not_built
from ..util import add_note

__all__ = ["IMAGES", "TEXT", "add_note", "retry", "retry_with_exponential_backoff", "url_retrieve"]

__getattr__ = _not_built.missing_names(__name__)

TEXT = Union[str, List[str], "pa.Array", "pa.ChunkedArray", "np.ndarray"]
IMAGES = Union[str, bytes, List[str], List[bytes], "pa.Array", "pa.ChunkedArray", "np.ndarray"]


def retry(tries: int = 10, delay: float = 1, max_delay: float = 30, backoff: float = 3, jitter: float = 1):
    """Decorator: tries a failing call up to `tries` times; pauses grow from `delay` seconds to `max_delay`, plus some jitter."""

    def decorate(function: Callable) -> Callable:
        @functools.wraps(function)
        def call(*args, **kwargs):
            pause = delay
            for _ in range(tries - 1):
                try:
                    return function(*args, **kwargs)
                except Exception:
                    time.sleep(min(pause + random.uniform(0, jitter), max_delay))
                    pause = min(pause * backoff, max_delay)
            return function(*args, **kwargs)

        return call

    # functools.wraps copes with functions alone; a mock has no __name__ to copy
    return decorate


def _is_hopeless(error: Exception) -> bool:
    """Whether trying again cannot help: the server does not accept who asks."""
    if type(error).__name__ == "AuthenticationError":
        return True
    status = getattr(error, "status_code", None) or getattr(getattr(error, "response", None), "status_code", None)
    return status == 401


def retry_with_exponential_backoff(
    func: Callable,
    initial_delay: float = 1,
    exponential_base: float = 2,
    jitter: bool = True,
    max_retries: int = 7,
) -> Callable:
    """`func`, tried again up to `max_retries` times; each pause is `exponential_base` times as long as the one before.

    An error of authentication is not tried again; the last error is chained to what is raised when all attempts failed.
    """

    def call(*args, **kwargs) -> Any:
        delay = initial_delay
        for attempt in range(max_retries + 1):
            try:
                return func(*args, **kwargs)
            except Exception as error:
                if _is_hopeless(error) or max_retries == 0:
                    raise
                if attempt == max_retries:
                    raise Exception(f"Maximum number of retries ({max_retries}) exceeded.") from error
                delay *= exponential_base * (1 + random.random() if jitter else 1)
                time.sleep(delay)

    return call


def url_retrieve(url: str) -> bytes:
    """The bytes at an HTTP(S) address. ConnectionError when they cannot be had."""
    try:
        with urllib.request.urlopen(url) as answer:
            return answer.read()
    except (ValueError, OSError) as error:
        raise ConnectionError(f"could not download {url}: {error}") from error
