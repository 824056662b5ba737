"""Packages that may be installed or not, imported at first use.

`pandas`, `polars`, `torch`, ... are stand-ins: an attribute imports the package, and raises ModuleNotFoundError where there is
none. `_PANDAS_AVAILABLE` and its kin tell without importing.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from typing import Any


class _Optional:
    """Stands for a package until an attribute of it is asked for."""

    def __init__(self, name: str):
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        if attribute.startswith("__") and self._name not in sys.modules:
            raise AttributeError(attribute)  # introspection must not import
        return getattr(importlib.import_module(self._name), attribute)

    def __repr__(self) -> str:
        return f"<optional module {self._name!r}>"


def _available(name: str) -> bool:
    if name in sys.modules:
        return sys.modules[name] is not None
    try:
        return importlib.util.find_spec(name) is not None
    except ValueError:
        return False


def _from_package(value: Any, name: str) -> bool:
    """Whether `value` may be of a package: told by the modules of its classes, without importing anything."""
    kinds = type(value).__mro__ if not isinstance(value, type) else value.__mro__
    return name in sys.modules and any(kind.__module__.partition(".")[0] == name for kind in kinds)


_NUMPY_AVAILABLE = _available("numpy")
_PANDAS_AVAILABLE = _available("pandas")
_POLARS_AVAILABLE = _available("polars")
_TORCH_AVAILABLE = _available("torch")
_HUGGING_FACE_AVAILABLE = _available("datasets")
_TENSORFLOW_AVAILABLE = _available("tensorflow")
_RAY_AVAILABLE = _available("ray")
_LANCE_AVAILABLE = _available("lance")

numpy = _Optional("numpy")
pandas = _Optional("pandas")
polars = _Optional("polars")
torch = _Optional("torch")
datasets = _Optional("datasets")
tensorflow = _Optional("tensorflow")
ray = _Optional("ray")
lance = _Optional("lance")


def _check_for_numpy(obj: Any, *, check_type: bool = True) -> bool:
    return _from_package(obj, "numpy")


def _check_for_pandas(obj: Any, *, check_type: bool = True) -> bool:
    return _from_package(obj, "pandas")


def _check_for_polars(obj: Any, *, check_type: bool = True) -> bool:
    return _from_package(obj, "polars")


def _check_for_torch(obj: Any, *, check_type: bool = True) -> bool:
    return _from_package(obj, "torch")


def _check_for_hugging_face(obj: Any, *, check_type: bool = True) -> bool:
    return _from_package(obj, "datasets")


def _check_for_tensorflow(obj: Any, *, check_type: bool = True) -> bool:
    return _from_package(obj, "tensorflow")


def _check_for_ray(obj: Any, *, check_type: bool = True) -> bool:
    return _from_package(obj, "ray")


def _check_for_lance(obj: Any, *, check_type: bool = True) -> bool:
    return _from_package(obj, "lance") or type(obj).__module__.startswith("glaive.lance")
