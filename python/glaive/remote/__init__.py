"""Settings of a client of a server. The settings can be made; connecting to servers is not supported yet."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, List, Optional

from .._glaive import __version__
from .header import HeaderProvider
from .oauth import ClientAuthMethod, OAuthConfig, OAuthFlowType, OAuthSession, TokenCacheOptions

__all__ = [
    "ClientAuthMethod",
    "ClientConfig",
    "HeaderProvider",
    "OAuthConfig",
    "OAuthFlowType",
    "OAuthSession",
    "RetryConfig",
    "TimeoutConfig",
    "TlsConfig",
    "TokenCacheOptions",
]


@dataclass
class TimeoutConfig:
    """How long a client waits; numbers are seconds. ValueError for other types."""

    timeout: Optional[timedelta] = None
    connect_timeout: Optional[timedelta] = None
    read_timeout: Optional[timedelta] = None
    pool_idle_timeout: Optional[timedelta] = None

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            setattr(self, name, _duration(name, value))


def _duration(name: str, value: Any) -> Optional[timedelta]:
    if value is None or isinstance(value, timedelta):
        return value
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return timedelta(seconds=value)
    raise ValueError(f"{name} must be a timedelta or a number of seconds, not {value!r}")


@dataclass
class RetryConfig:
    """How often a client tries again, and how long it waits between attempts."""

    retries: Optional[int] = None
    connect_retries: Optional[int] = None
    read_retries: Optional[int] = None
    backoff_factor: Optional[float] = None
    backoff_jitter: Optional[float] = None
    statuses: Optional[List[int]] = None


@dataclass
class TlsConfig:
    """Certificates of a client."""

    cert_file: Optional[str] = None
    key_file: Optional[str] = None
    ssl_ca_cert: Optional[str] = None
    assert_hostname: bool = True


@dataclass
class ClientConfig:
    """All settings of a client; the nested ones may be given as dicts."""

    user_agent: str = f"Glaive-Python-Client/{__version__}"
    retry_config: RetryConfig = field(default_factory=RetryConfig)
    timeout_config: Optional[TimeoutConfig] = field(default_factory=TimeoutConfig)
    extra_headers: Optional[dict] = None
    id_delimiter: Optional[str] = None
    tls_config: Optional[TlsConfig] = None
    header_provider: Optional[HeaderProvider] = None
    user_id: Optional[str] = None

    def __post_init__(self) -> None:
        if isinstance(self.retry_config, dict):
            self.retry_config = RetryConfig(**self.retry_config)
        if isinstance(self.timeout_config, dict):
            self.timeout_config = TimeoutConfig(**self.timeout_config)
        if isinstance(self.tls_config, dict):
            self.tls_config = TlsConfig(**self.tls_config)
