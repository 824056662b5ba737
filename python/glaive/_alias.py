"""Lets a module name stand for a package of glaive: `lancedb` for `glaive`, `lance` for `glaive.lance`.

A submodule imported under the other name is the very same module object, so classes are the same too.
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import sys
from types import ModuleType


class _AliasFinder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def __init__(self, name: str, target: str):
        self._prefix, self._target = name + ".", target + "."

    def _real_name(self, fullname: str) -> str:
        return self._target + fullname[len(self._prefix) :]

    def find_spec(self, fullname, path=None, target=None):
        if not fullname.startswith(self._prefix):
            return None
        real = self._real_name(fullname)
        try:
            found = importlib.util.find_spec(real)
        except ModuleNotFoundError:
            return None
        if found is None:
            return None
        return importlib.machinery.ModuleSpec(fullname, self, is_package=found.submodule_search_locations is not None)

    def create_module(self, spec) -> ModuleType:
        module = importlib.import_module(self._real_name(spec.name))
        spec.loader_state = module.__spec__  # the import system is about to replace it
        return module

    def exec_module(self, module: ModuleType) -> None:
        spec = module.__spec__
        if spec is not None and spec.loader is self:
            module.__spec__ = spec.loader_state


def install(namespace: dict, target: str) -> None:
    """Makes the package whose globals are `namespace` an alias of the package `target`."""
    name = namespace["__name__"]
    real = importlib.import_module(target)
    sys.meta_path.insert(0, _AliasFinder(name, target))
    for attribute in ("__all__", "__doc__", "__version__"):
        if hasattr(real, attribute):
            namespace[attribute] = getattr(real, attribute)
    namespace["__path__"] = []  # submodules come from the finder alone
    namespace["__getattr__"] = lambda attribute: getattr(real, attribute)
    namespace["__dir__"] = lambda: sorted({*namespace, *dir(real)})
