"""Helpers for Arrow schemas."""

import pyarrow as pa

__all__ = ["vector"]


def vector(dimension: int, value_type: pa.DataType = pa.float32()) -> pa.DataType:
    """The Arrow type of a vector column: a list of `dimension` values of `value_type` (float32 by default)."""
    return pa.list_(value_type, dimension)
