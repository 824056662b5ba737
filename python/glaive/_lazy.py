"""pyarrow and numpy, imported at first use: importing glaive alone stays quick."""

import importlib


class _LazyModule:
    """Stands for a module; each attribute is looked up once and then kept."""

    def __init__(self, name: str):
        self._name = name

    def __getattr__(self, attribute: str):
        value = getattr(importlib.import_module(self._name), attribute)
        setattr(self, attribute, value)
        return value

    def __repr__(self) -> str:
        return f"<lazy module {self._name!r}>"


def lazy(name: str) -> _LazyModule:
    """A module of this package, imported at first use."""
    return _LazyModule(f"{__package__}.{name}")


pa = _LazyModule("pyarrow")
pc = _LazyModule("pyarrow.compute")
np = _LazyModule("numpy")
