"""How a client gets tokens by OAuth. Connecting to servers is not supported yet."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import List, Optional

from .._unsupported import refuse

__all__ = ["ClientAuthMethod", "OAuthConfig", "OAuthFlowType", "OAuthSession", "TokenCacheOptions"]


class OAuthFlowType(str, Enum):
    """Ways to get a token."""

    CLIENT_CREDENTIALS = "client_credentials"
    AUTHORIZATION_CODE = "authorization_code"
    DEVICE_CODE = "device_code"
    AZURE_MANAGED_IDENTITY = "azure_managed_identity"


class ClientAuthMethod(str, Enum):
    """Ways a client proves who it is."""

    NONE = "none"
    CLIENT_SECRET_BASIC = "client_secret_basic"
    CLIENT_SECRET_POST = "client_secret_post"


@dataclass
class TokenCacheOptions:
    """Where tokens are kept between runs."""

    cache_dir: Optional[str] = None
    lock_timeout_secs: Optional[int] = None


@dataclass
class OAuthConfig:
    """What a client needs to get a token. The secret is not shown by `repr`."""

    issuer_url: str
    client_id: str
    scopes: List[str]
    flow: OAuthFlowType = OAuthFlowType.CLIENT_CREDENTIALS
    client_secret: Optional[str] = None
    client_auth_method: Optional[ClientAuthMethod] = None
    redirect_uri: Optional[str] = None
    callback_port: Optional[int] = None
    use_pkce: bool = True
    managed_identity_client_id: Optional[str] = None
    refresh_buffer_secs: Optional[int] = None
    token_cache: Optional[TokenCacheOptions] = None
    resource: Optional[str] = None
    audience: Optional[str] = None

    def __repr__(self) -> str:
        shown = {name: value for name, value in vars(self).items()}
        shown["client_secret"] = None if self.client_secret is None else "***"
        return f"OAuthConfig({', '.join(f'{name}={value!r}' for name, value in shown.items())})"


class OAuthSession:
    """Not supported yet."""

    def __init__(self, config: OAuthConfig):
        raise refuse("OAuthSession")
