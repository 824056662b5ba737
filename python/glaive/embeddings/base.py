"""Base classes of embedding functions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Dict, List, Optional, Union

import numpy as np
import pyarrow as pa
from pydantic import BaseModel, Field, PrivateAttr

from .utils import TEXT, add_note, retry_with_exponential_backoff

__all__ = ["EmbeddingFunction", "EmbeddingFunctionConfig", "TextEmbeddingFunction"]


class EmbeddingFunction(BaseModel, ABC):
    """Makes vectors of values. Derive a class, register it, and make instances with `create`.

    An instance is stored with the table by the name of its class in the registry and by the arguments of `create`, so these must
    be values of JSON. Secrets are given as "$var:NAME" (see `EmbeddingFunctionRegistry.set_var`) and stored as that.
    """

    # How often a call that fails is tried again, with growing pauses.
    max_retries: int = 7

    _original_args: Dict[str, Any] = PrivateAttr(default_factory=dict)

    @classmethod
    def create(cls, **kwargs) -> "EmbeddingFunction":
        """An instance. "$var:NAME" and "$var:NAME:default" in the arguments stand for variables of the registry.

        ValueError for a variable that is not set and has no default, and for a secret that is not given as a variable.
        """
        for key in cls.sensitive_keys():
            value = kwargs.get(key)
            if value is not None and not (isinstance(value, str) and value.startswith("$var:")):
                error = ValueError(f"Sensitive key '{key}' cannot be set to a hardcoded value")
                add_note(error, "Help: Use $var: to set sensitive keys to variables")
                raise error
        made = cls(**{name: _resolve(value) for name, value in kwargs.items()})
        made._original_args = dict(kwargs)
        return made

    @staticmethod
    def sensitive_keys() -> List[str]:
        """Arguments that are secrets and have to be variables."""
        return []

    @abstractmethod
    def compute_query_embeddings(self, *args, **kwargs) -> List[Optional[np.ndarray]]:
        """The vectors of a query; the first one is searched for."""

    @abstractmethod
    def compute_source_embeddings(self, *args, **kwargs) -> List[Optional[np.ndarray]]:
        """One vector, or None, for each value of the source column."""

    @abstractmethod
    def ndims(self) -> int:
        """Values per vector."""

    def compute_query_embeddings_with_retry(self, *args, **kwargs) -> List[Optional[np.ndarray]]:
        """`compute_query_embeddings`, tried again up to `max_retries` times."""
        return retry_with_exponential_backoff(self.compute_query_embeddings, max_retries=self.max_retries)(*args, **kwargs)

    def compute_source_embeddings_with_retry(self, *args, **kwargs) -> List[Optional[np.ndarray]]:
        """`compute_source_embeddings`, tried again up to `max_retries` times."""
        return retry_with_exponential_backoff(self.compute_source_embeddings, max_retries=self.max_retries)(*args, **kwargs)

    def sanitize_input(self, texts: TEXT) -> Union[List[str], np.ndarray]:
        """One text, or texts in a list, an Arrow or a numpy array, as a list or a numpy array."""
        if isinstance(texts, str):
            return [texts]
        if isinstance(texts, (pa.Array, pa.ChunkedArray)):
            return texts.to_pylist()
        return texts

    def safe_model_dump(self) -> Dict[str, Any]:
        """The arguments of `create`, secrets as the names of their variables; all public fields when made directly."""
        if self._original_args:
            return {name: value for name, value in self._original_args.items() if not name.startswith("_")}
        return self.model_dump(exclude={name for name in type(self).model_fields if name.startswith("_")})

    def SourceField(self, **kwargs) -> Any:
        """A pydantic field whose values this function makes vectors of."""
        return _field({"source_column_for": self}, kwargs)

    def VectorField(self, **kwargs) -> Any:
        """A pydantic field that takes this function's vectors."""
        return _field({"vector_column_for": self}, kwargs)

    def __eq__(self, other: Any) -> bool:
        if not isinstance(other, EmbeddingFunction):
            return NotImplemented
        return type(self) is type(other) and self.__dict__ == other.__dict__

    def __hash__(self) -> int:
        return hash((type(self).__qualname__, repr(sorted(self.__dict__.items(), key=lambda item: item[0]))))


def _field(extra: Dict[str, Any], kwargs: Dict[str, Any]) -> Any:
    given = kwargs.pop("json_schema_extra", None) or {}
    return Field(json_schema_extra={**given, **extra}, **kwargs)


def _resolve(value: Any) -> Any:
    """`value` with variables of the registry put in."""
    if isinstance(value, dict):
        return {key: _resolve(member) for key, member in value.items()}
    if isinstance(value, list):
        return [_resolve(member) for member in value]
    if not (isinstance(value, str) and value.startswith("$var:")):
        return value
    from .registry import get_registry

    name, separator, default = value[len("$var:") :].partition(":")
    try:
        return get_registry().get_var(name)
    except KeyError:
        if separator:
            return default
        error = ValueError(f"Variable '{name}' not found in registry")
        add_note(error, "Help: Variables are reset in new Python sessions. Use `registry.set_var` to set variables.")
        raise error from None


class EmbeddingFunctionConfig(BaseModel):
    """Which function fills which column from which other one."""

    vector_column: str
    source_column: str
    function: EmbeddingFunction


class TextEmbeddingFunction(EmbeddingFunction):
    """Base of functions over texts: queries and rows go through `generate_embeddings`."""

    def compute_query_embeddings(self, query: str, *args, **kwargs) -> List[Optional[np.ndarray]]:
        """The vector of a text, in a list."""
        return self.compute_source_embeddings(query, *args, **kwargs)

    def compute_source_embeddings(self, texts: TEXT, *args, **kwargs) -> List[Optional[np.ndarray]]:
        """One vector, or None, for each text."""
        return self.generate_embeddings(self.sanitize_input(texts))

    @abstractmethod
    def generate_embeddings(self, texts: Union[List[str], np.ndarray], *args, **kwargs) -> List[Optional[np.ndarray]]:
        """One vector, or None, for each text."""
