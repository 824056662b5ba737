"""The crash tests look at the tables with the sides of the interoperability tests."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "interop"))
import importlib.util

_spec = importlib.util.spec_from_file_location(
    "interop_conftest", pathlib.Path(__file__).resolve().parent.parent / "interop" / "conftest.py"
)
_module = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(_module)
ours, theirs, sides = _module.ours, _module.theirs, _module.sides
