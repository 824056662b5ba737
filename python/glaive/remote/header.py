"""Headers that a client adds to each request."""

from __future__ import annotations

import threading
import time
from abc import ABC, abstractmethod
from typing import Any, Callable, Dict, Optional

__all__ = ["HeaderProvider", "OAuthProvider", "StaticHeaderProvider"]


class HeaderProvider(ABC):
    """Base of objects that are asked for headers before each request."""

    @abstractmethod
    def get_headers(self) -> Dict[str, str]:
        """Name -> value."""


class StaticHeaderProvider(HeaderProvider):
    """The same headers for each request."""

    def __init__(self, headers: Dict[str, str]):
        self._headers = dict(headers)

    def get_headers(self) -> Dict[str, str]:
        """A copy of the headers given."""
        return dict(self._headers)


class OAuthProvider(HeaderProvider):
    """A bearer token, fetched at first use and again shortly before it ends.

    `token_fetcher` returns a dict with `access_token` and maybe `expires_in` (seconds; without it the token lasts).
    """

    def __init__(self, token_fetcher: Callable[[], Any], refresh_buffer_seconds: int = 300):
        self._token_fetcher = token_fetcher
        self._refresh_buffer = refresh_buffer_seconds
        self._current_token: Optional[str] = None
        self._token_expires_at: Optional[float] = None
        self._refresh_lock = threading.Lock()

    def _needs_refresh(self) -> bool:
        if self._current_token is None:
            return True
        return self._token_expires_at is not None and time.time() + self._refresh_buffer >= self._token_expires_at

    def _refresh_token_if_needed(self) -> None:
        with self._refresh_lock:
            if not self._needs_refresh():
                return
            answer = self._token_fetcher()
            token = answer.get("access_token")
            if not token:
                raise ValueError("Token fetcher did not return 'access_token'")
            self._current_token = token
            lasts = answer.get("expires_in")
            self._token_expires_at = None if lasts is None else time.time() + float(lasts)

    def get_headers(self) -> Dict[str, str]:
        """`{"Authorization": "Bearer ..."}`; ValueError when the fetcher returns no token."""
        self._refresh_token_if_needed()
        return {"Authorization": f"Bearer {self._current_token}"}
