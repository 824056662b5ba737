"""Packages that may be installed or not; see `glaive.dependencies`."""

from ..dependencies import (
    _HUGGING_FACE_AVAILABLE,
    _NUMPY_AVAILABLE,
    _PANDAS_AVAILABLE,
    _POLARS_AVAILABLE,
    _TORCH_AVAILABLE,
    _check_for_hugging_face,
    _check_for_numpy,
    _check_for_pandas,
    _check_for_polars,
    _check_for_torch,
    datasets,
    numpy,
    pandas,
    polars,
    torch,
)

__all__ = [
    "_HUGGING_FACE_AVAILABLE",
    "_NUMPY_AVAILABLE",
    "_PANDAS_AVAILABLE",
    "_POLARS_AVAILABLE",
    "_TORCH_AVAILABLE",
    "_check_for_hugging_face",
    "_check_for_numpy",
    "_check_for_pandas",
    "_check_for_polars",
    "_check_for_torch",
    "datasets",
    "numpy",
    "pandas",
    "polars",
    "torch",
]
