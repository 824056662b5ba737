"""Pydantic models as schemas and rows.

    class Item(LanceModel):
        id: int
        note: Optional[str] = None
        vector: Vector(3)

    table = db.create_table("items", schema=Item)
    table.add([Item(id=1, vector=[1, 2, 3])])
    table.search([1, 2, 3]).limit(1).to_pydantic(Item)

Fields are non-nullable unless they are Optional or a nullable Vector. Columns have the names of the fields, also where a field
has an alias.
"""

from __future__ import annotations

import enum
import inspect
import types
import typing
import warnings
from abc import ABC, abstractmethod
from datetime import date, datetime
from typing import Any, Dict, List, Optional, Type, Union

import pyarrow as pa
import pydantic
from pydantic.fields import FieldInfo
from pydantic_core import core_schema

from .exceptions import InvalidInputError, InvalidTypeError

__all__ = [
    "FixedSizeListMixin",
    "LanceModel",
    "MultiVector",
    "Vector",
    "get_extras",
    "is_nullable",
    "model_to_dict",
    "pydantic_to_schema",
    "vector",
]

_WANTS_DIMENSION = "Vector must be parameterized with a dimension, e.g. Vector(128)."


# --- vector types -------------------------------------------------------------------------------------------


class FixedSizeListMixin(ABC):
    """Base of the types that `Vector` makes."""

    @staticmethod
    @abstractmethod
    def dim() -> int:
        """Values per vector."""

    @staticmethod
    @abstractmethod
    def value_arrow_type() -> pa.DataType:
        """Arrow type of the values."""

    @staticmethod
    def nullable() -> bool:
        """Whether the column may hold nulls."""
        return True

    @staticmethod
    def is_multi_vector() -> bool:
        """Whether a value is a list of vectors."""
        return False


def _check_dimension(dim: Any, value_type: Any) -> None:
    if isinstance(dim, bool) or not isinstance(dim, int):
        raise InvalidTypeError(f"the dimension of a vector is an integer, not {dim!r}")
    if dim <= 0:
        raise InvalidInputError(f"the dimension of a vector must be greater than 0, not {dim}")
    if not isinstance(value_type, pa.DataType):
        raise InvalidTypeError(f"value_type must be a pyarrow.DataType, not {value_type!r}")


def _vector_rules(dim: int) -> core_schema.CoreSchema:
    return core_schema.list_schema(items_schema=core_schema.float_schema(), min_length=dim, max_length=dim)


def _as_instance_of(cls, rules: core_schema.CoreSchema) -> core_schema.CoreSchema:
    return core_schema.no_info_after_validator_function(cls, rules)


def Vector(dim: int, value_type: pa.DataType = pa.float32(), nullable: bool = True) -> Type[FixedSizeListMixin]:
    """The type of a vector field: a list of exactly `dim` numbers, stored as `value_type` (float32).

    `nullable` is about the column; a field that takes None is `Optional[Vector(dim)]`. ValueError for dim <= 0.
    """
    _check_dimension(dim, value_type)
    column_nullable = nullable

    class FixedSizeList(list, FixedSizeListMixin):
        def __repr__(self) -> str:
            return f"FixedSizeList(dim={dim})"

        @staticmethod
        def dim() -> int:
            return dim

        @staticmethod
        def value_arrow_type() -> pa.DataType:
            return value_type

        @staticmethod
        def nullable() -> bool:
            return column_nullable

        @classmethod
        def __get_pydantic_core_schema__(cls, source, handler) -> core_schema.CoreSchema:
            return _as_instance_of(cls, _vector_rules(dim))

    return FixedSizeList


def MultiVector(dim: int, value_type: pa.DataType = pa.float32(), nullable: bool = True) -> Type:
    """The type of a multivector field: a list of any number of vectors of `dim` numbers; see `Vector`."""
    _check_dimension(dim, value_type)
    column_nullable = nullable

    class MultiVectorList(list, FixedSizeListMixin):
        def __repr__(self) -> str:
            return f"MultiVector(dim={dim})"

        @staticmethod
        def dim() -> int:
            return dim

        @staticmethod
        def value_arrow_type() -> pa.DataType:
            return value_type

        @staticmethod
        def nullable() -> bool:
            return column_nullable

        @staticmethod
        def is_multi_vector() -> bool:
            return True

        @classmethod
        def __get_pydantic_core_schema__(cls, source, handler) -> core_schema.CoreSchema:
            return _as_instance_of(cls, core_schema.list_schema(items_schema=_vector_rules(dim)))

    return MultiVectorList


def _refuse_bare(*_args):
    raise TypeError(_WANTS_DIMENSION)


# A field annotated with the function itself, `v: Vector`, is told what is missing.
Vector.__get_pydantic_core_schema__ = _refuse_bare  # type: ignore[attr-defined]


def vector(dim: int, value_type: pa.DataType = pa.float32()):
    """Old name of `Vector`."""
    warnings.warn("vector is deprecated in this module, use Vector", DeprecationWarning, stacklevel=2)
    return Vector(dim, value_type)


# --- schemas ------------------------------------------------------------------------------------------------

_PLAIN = {
    int: pa.int64(),
    float: pa.float64(),
    str: pa.utf8(),
    bool: pa.bool_(),
    bytes: pa.binary(),
    date: pa.date32(),
}


def pydantic_to_schema(model: Type[pydantic.BaseModel]) -> pa.Schema:
    """The Arrow schema of a model. TypeError for a field whose type has no Arrow counterpart."""
    return pa.schema(_fields(model))


def _fields(model) -> List[pa.Field]:
    return [pa.field(name, _to_arrow(info.annotation, info), is_nullable(info)) for name, info in model.model_fields.items()]


def is_nullable(field: FieldInfo) -> bool:
    """Whether the field's column may hold nulls: Optional fields, and Vectors unless they say otherwise."""
    annotation, optional = _without_none(field.annotation)
    if optional:
        return True
    return isinstance(annotation, type) and issubclass(annotation, FixedSizeListMixin) and annotation.nullable()


def get_extras(field_info: FieldInfo, key: str) -> Any:
    """What `json_schema_extra` of a field says for `key`; None when it says nothing."""
    extra = field_info.json_schema_extra
    return extra.get(key) if isinstance(extra, dict) else None


def _without_none(annotation: Any):
    """(annotation without None, whether None was one of its alternatives)."""
    if typing.get_origin(annotation) in (Union, getattr(types, "UnionType", Union)):
        alternatives = [a for a in typing.get_args(annotation) if a is not type(None)]
        if len(alternatives) < len(typing.get_args(annotation)) and len(alternatives) == 1:
            return alternatives[0], True
    return annotation, False


def _unsupported(annotation: Any, advice: str = "") -> TypeError:
    return TypeError(f"Converting Pydantic type to Arrow Type: unsupported type {annotation}.{advice}")


def _to_arrow(annotation: Any, field: FieldInfo) -> pa.DataType:
    annotation, _ = _without_none(annotation)
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is typing.Annotated:
        return _to_arrow(arguments[0], field)
    if origin in (list, tuple) or annotation in (list, tuple, List, typing.Tuple):
        if not arguments:
            hint = f" Specify the element type, e.g. {annotation}[int].".replace("typing.", "")
            raise _unsupported(annotation, "" if isinstance(annotation, type) else hint)
        return pa.list_(_to_arrow(arguments[0], field))
    if not isinstance(annotation, type) or origin is not None:
        raise _unsupported(annotation)
    if issubclass(annotation, FixedSizeListMixin):
        one = pa.list_(annotation.value_arrow_type(), annotation.dim())
        return pa.list_(one) if annotation.is_multi_vector() else one
    if issubclass(annotation, pydantic.BaseModel):
        return pa.struct(_fields(annotation))
    if issubclass(annotation, enum.Enum):
        return _enum_to_arrow(annotation, field)
    if annotation is datetime:
        return pa.timestamp("us", tz=get_extras(field, "tz"))
    if annotation in _PLAIN:
        return _PLAIN[annotation]
    raise _unsupported(annotation)


def _enum_to_arrow(annotation: Type[enum.Enum], field: FieldInfo) -> pa.DataType:
    kinds = {type(member.value) for member in annotation}
    if len(kinds) != 1:
        return pa.utf8()
    kind = kinds.pop()
    return pa.dictionary(pa.int32(), pa.utf8()) if kind is str else _to_arrow(kind, field)


class LanceModel(pydantic.BaseModel):
    """Base of models that are rows of a table."""

    @classmethod
    def to_arrow_schema(cls) -> pa.Schema:
        """The Arrow schema of the model, with its embedding functions in the metadata."""
        from ._embed import with_functions

        return with_functions(pydantic_to_schema(cls), cls.parse_embedding_functions())

    @classmethod
    def field_names(cls) -> List[str]:
        """Names of the fields, which are the names of the columns."""
        return list(cls.model_fields)

    @classmethod
    def safe_get_fields(cls) -> Dict[str, FieldInfo]:
        """Name -> pydantic field."""
        return cls.model_fields

    @classmethod
    def parse_embedding_functions(cls) -> List[Any]:
        """One `EmbeddingFunctionConfig` for each field that is a `VectorField`, with the `SourceField` of the same function."""
        found = []
        for vector_name, vector_field in cls.model_fields.items():
            function = get_extras(vector_field, "vector_column_for")
            if function is None:
                continue
            sources = [n for n, f in cls.model_fields.items() if get_extras(f, "source_column_for") is function]
            if not sources:
                sources = [n for n, f in cls.model_fields.items() if get_extras(f, "source_column_for") == function]
            from .embeddings.base import EmbeddingFunctionConfig

            found += [EmbeddingFunctionConfig(source_column=s, vector_column=vector_name, function=function) for s in sources]
        return found


# --- rows ---------------------------------------------------------------------------------------------------


def model_to_dict(model: pydantic.BaseModel) -> Dict[str, Any]:
    """The model as a row: field name -> value, nested models as dicts, enum members as their values; no computed fields."""
    return {name: _plain(value) for name, value in _without_computed(model, model.model_dump()).items()}


def _without_computed(value: Any, dumped: Any) -> Any:
    """What `value` was dumped to, without the computed fields of models in it: they are no columns."""
    if isinstance(value, pydantic.BaseModel) and isinstance(dumped, dict):
        computed = type(value).model_computed_fields
        return {name: _without_computed(getattr(value, name, None), d) for name, d in dumped.items() if name not in computed}
    if isinstance(value, (list, tuple)) and value and isinstance(dumped, (list, tuple)) and len(dumped) == len(value):
        if isinstance(value[0], (pydantic.BaseModel, list, tuple)):
            return [_without_computed(*both) for both in zip(value, dumped)]
    return dumped


def _plain(value: Any) -> Any:
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, dict):
        return {key: _plain(member) for key, member in value.items()}
    if isinstance(value, (list, tuple)):
        if value and type(value[0]) in (float, int, str, bytes) and not isinstance(value[0], enum.Enum):
            return value
        return [_plain(member) for member in value]
    return value


def model_from_row(model: Type[Any], row: Dict[str, Any]) -> Any:
    """`model(**row)`; for a model with aliases the row's names are the names of fields."""
    try:
        return model(**row)
    except pydantic.ValidationError as first:
        if not (inspect.isclass(model) and issubclass(model, pydantic.BaseModel)):
            raise
        try:
            return model.model_validate(_by_alias(model, row))
        except pydantic.ValidationError:
            raise first from None


def _by_alias(annotation: Any, value: Any) -> Any:
    """`value` with the keys under which the models in `annotation` take their fields."""
    annotation, _ = _without_none(annotation)
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if isinstance(value, list) and origin in (list, tuple) and arguments:
        return [_by_alias(arguments[0], member) for member in value]
    if not (isinstance(value, dict) and inspect.isclass(annotation) and issubclass(annotation, pydantic.BaseModel)):
        return value
    out = dict(value)
    for name, info in annotation.model_fields.items():
        if name in value:
            member = _by_alias(info.annotation, out.pop(name))
            out[_input_name(name, info)] = member
    return out


def _input_name(name: str, info: FieldInfo) -> str:
    alias: Optional[Any] = info.validation_alias or info.alias
    if isinstance(alias, pydantic.AliasChoices):
        alias = next((choice for choice in alias.choices if isinstance(choice, str)), None)
    return alias if isinstance(alias, str) else name
