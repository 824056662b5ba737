"""Shared names: what may be given as data, as a vector, as an address."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Dict, Iterable, List, Union

from . import _not_built

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    import polars as pl
    import pyarrow as pa

VECTOR_COLUMN_NAME = "vector"
__getattr__ = _not_built.missing_names(__name__)

URI = Union[str, Path]
VEC = Union[List[float], "np.ndarray", "pa.Array", "pa.ChunkedArray"]
DATA = Union[
    List[Dict[str, Any]],
    "pd.DataFrame",
    "pl.DataFrame",
    "pl.LazyFrame",
    "pa.Table",
    "pa.RecordBatch",
    "pa.RecordBatchReader",
    Iterable[Any],
]


def sanitize_uri(uri: URI) -> str:
    """`uri` as text; a `Path` may be given as well."""
    return str(uri)


def validate_schema(schema: "pa.Schema") -> None:
    """ValueError when a metadata key or value of the schema or of a field is no UTF-8: tables keep text only."""
    _validate_metadata(schema.metadata, "the schema")
    for field in schema:
        _validate_metadata(field.metadata, f"field {field.name!r}")


def _validate_metadata(metadata, where: str) -> None:
    from .exceptions import InvalidInputError

    for pair in (metadata or {}).items():
        for part in pair:
            try:
                part.decode("utf-8")
            except UnicodeDecodeError:
                raise InvalidInputError(
                    f"Metadata key {pair[0]!r} of {where} is not valid utf8; encode binary values as text, with base64 say"
                ) from None
