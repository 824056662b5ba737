"""`LanceDataset` and its parts, under the module name that programs import them from.

`glaive.lance.dataset` is a function as well: importing this module must not take it away, so the module can be
called too.
"""

import sys
import types

from .. import _not_built
from . import dataset as _open
from ._dataset import LanceDataset, write_dataset
from ._dataset_parts import LanceSchema, LanceStats, Tags
from ._scanner import LanceScanner, ScannerBuilder
from ._branches import Branches
from ._merge import MergeInsertBuilder
from ._operations import LanceOperation, Transaction
from .optimize import DatasetOptimizer

__all__ = [
    "Branches",
    "DatasetOptimizer",
    "LanceDataset",
    "LanceOperation",
    "LanceScanner",
    "LanceSchema",
    "LanceStats",
    "MergeInsertBuilder",
    "ScannerBuilder",
    "Tags",
    "Transaction",
    "write_dataset",
]

__getattr__ = _not_built.missing_names(__name__)


class _CallableModule(types.ModuleType):
    def __call__(self, *args, **kwargs):
        return _open(*args, **kwargs)


sys.modules[__name__].__class__ = _CallableModule
