"""Names that the LanceDB package has in its compiled module and that programs import from there."""

from . import _not_built
from ._glaive import validate_table_name
from ._lsm import LsmWriteSpec
from .session import Session

__all__ = ["LsmWriteSpec", "Session", "validate_table_name"]

__getattr__ = _not_built.missing_names(__name__)
