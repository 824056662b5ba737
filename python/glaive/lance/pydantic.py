"""Pydantic models as schemas; see `glaive.pydantic`."""

from typing import Any

from .. import pydantic as _pydantic
from ..pydantic import FixedSizeListMixin, MultiVector, Vector, is_nullable, model_to_dict, pydantic_to_schema

__all__ = ["FixedSizeListMixin", "MultiVector", "Vector", "get_extras", "is_nullable", "model_to_dict", "pydantic_to_schema"]


def get_extras(field: _pydantic.FieldInfo, key: str) -> Any:
    """What `json_schema_extra` of a field says for `key`; None when it says nothing."""
    return _pydantic.get_extras(field, key)
