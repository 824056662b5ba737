"""Pydantic models as schemas; see `glaive.pydantic`."""

from ..pydantic import FixedSizeListMixin, MultiVector, Vector, get_extras, is_nullable, model_to_dict, pydantic_to_schema

__all__ = ["FixedSizeListMixin", "MultiVector", "Vector", "get_extras", "is_nullable", "model_to_dict", "pydantic_to_schema"]
