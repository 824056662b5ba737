"""Small helpers of the LanceDB API: addresses, SQL literals, flattening, vector columns."""

from __future__ import annotations

import functools
import math
import pathlib
import warnings
from datetime import date, datetime
from typing import TYPE_CHECKING, Any, List, Optional, Union
from urllib.parse import urlparse

from . import _not_built
from ._glaive import format_field_path
from ._glaive import validate_table_name as _validate_table_name
from ._lazy import np, pa
from .exceptions import InvalidInputError

if TYPE_CHECKING:
    import pyarrow

__getattr__ = _not_built.missing_names(__name__)

NO_VECTOR_COLUMN = "There is no vector column in the data. Please specify the vector column name for vector search"
MANY_VECTOR_COLUMNS = "Schema has more than one vector column. Please specify the vector column name for vector search."


# --- addresses ----------------------------------------------------------------------------------------------


def get_uri_scheme(uri: str) -> str:
    """"s3" for "s3://bucket/x", "file" for a path (also for "C:\\\\x")."""
    scheme = urlparse(str(uri)).scheme
    return scheme if len(scheme) > 1 else "file"


def get_uri_location(uri: str) -> str:
    """What follows the scheme: "/a" for "file:///a", "bucket/x" for "s3://bucket/x", a plain path as it is."""
    text = str(uri)
    parsed = urlparse(text)
    if len(parsed.scheme) <= 1:
        return text
    return parsed.netloc + parsed.path


def join_uri(base: Union[str, pathlib.Path], *parts: str) -> Union[str, pathlib.Path]:
    """`base` and `parts` with one slash between each: for a URI always "/", for a path the system's separator; a Path stays one."""
    if isinstance(base, pathlib.Path):
        return base.joinpath(*parts)
    if get_uri_scheme(base) == "file":
        return str(pathlib.Path(base, *parts))
    return "/".join([str(base).rstrip("/"), *(part.strip("/") for part in parts)])


def validate_table_name(name: str) -> None:
    """ValueError unless `name` may name a table: letters, digits, "_", "-" and "." only, not empty, not "." or ".."."""
    _validate_table_name(name)


# --- SQL literals -------------------------------------------------------------------------------------------


@functools.singledispatch
def value_to_sql(value: Any) -> str:
    """`value` as a literal of the filter language.

    Text is quoted, bytes become X'hex', None NULL, lists [a, b], dicts named_struct('k', v); numpy and pyarrow scalars go by
    their Python value. NotImplementedError for any other type.
    """
    kind = type(value).__module__.partition(".")[0]
    if kind == "numpy":
        if isinstance(value, np.ndarray):
            return value_to_sql(value.tolist())
        return value_to_sql(value.item())
    if kind == "pyarrow" and hasattr(value, "as_py"):
        return value_to_sql(value.as_py())
    raise NotImplementedError(f"SQL conversion is not implemented for this type: {type(value).__name__}")


@value_to_sql.register(str)
def _(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


@value_to_sql.register(bytes)
def _(value: bytes) -> str:
    return f"X'{value.hex()}'"


@value_to_sql.register(bool)
def _(value: bool) -> str:
    return "TRUE" if value else "FALSE"


@value_to_sql.register(int)
def _(value: int) -> str:
    return str(value)


@value_to_sql.register(float)
def _(value: float) -> str:
    if math.isnan(value):
        return "CAST('NaN' AS DOUBLE)"
    if math.isinf(value):
        return f"CAST('{'-' if value < 0 else ''}Infinity' AS DOUBLE)"
    return repr(float(value))  # numpy's float64 is a float, with a repr of its own


@value_to_sql.register(type(None))
def _(value: None) -> str:
    return "NULL"


@value_to_sql.register(datetime)
@value_to_sql.register(date)
def _(value: date) -> str:
    return f"'{value.isoformat()}'"


@value_to_sql.register(list)
def _(value: list) -> str:
    return "[" + ", ".join(map(value_to_sql, value)) + "]"


@value_to_sql.register(dict)
def _(value: dict) -> str:
    return "named_struct(" + ", ".join(f"{value_to_sql(str(k))}, {value_to_sql(v)}" for k, v in value.items()) + ")"


# --- errors -------------------------------------------------------------------------------------------------


def add_note(base_exception: BaseException, note: str) -> None:
    """Adds a note, shown below the message; into the message itself before Python 3.11."""
    if hasattr(base_exception, "add_note"):
        base_exception.add_note(note)
    elif base_exception.args and isinstance(base_exception.args[0], str):
        base_exception.args = (f"{base_exception.args[0]}\n{note}", *base_exception.args[1:])


def deprecated(func):
    """Decorator: a call warns that the function is deprecated."""

    @functools.wraps(func)
    def call(*args, **kwargs):
        warnings.warn(f"Function {func.__name__} is deprecated and will be removed in a future version", DeprecationWarning, stacklevel=2)
        return func(*args, **kwargs)

    return call


# --- tables -------------------------------------------------------------------------------------------------


def flatten_columns(tbl: "pyarrow.Table", flatten: Optional[Union[int, bool]] = None) -> "pyarrow.Table":
    """The table with struct columns spread into one column per member, named "struct.member".

    True: all levels; a positive number: that many levels; None or False: none. ValueError for other numbers.
    """
    if flatten is None or flatten is False:
        return tbl
    if flatten is True:
        while any(pa.types.is_struct(field.type) for field in tbl.schema):
            tbl = tbl.flatten()
        return tbl
    if isinstance(flatten, int):
        if flatten <= 0:
            raise InvalidInputError("Please specify a positive integer for flatten or the boolean value `True`")
        for _ in range(flatten):
            tbl = tbl.flatten()
    return tbl


# --- vector columns -----------------------------------------------------------------------------------------


def infer_vector_column_dim(data_type: "pyarrow.DataType") -> Optional[int]:
    """Values per vector of a vector column's type (multivectors too), None for any other type."""
    if not is_vector_column(data_type):
        return None
    return data_type.list_size if pa.types.is_fixed_size_list(data_type) else data_type.value_type.list_size


def is_vector_column(data_type: "pyarrow.DataType") -> bool:
    """Whether values of this type can be searched: fixed-size lists of floats or uint8, or lists of such lists."""
    if pa.types.is_fixed_size_list(data_type):
        return pa.types.is_floating(data_type.value_type) or pa.types.is_uint8(data_type.value_type)
    if pa.types.is_list(data_type) or pa.types.is_large_list(data_type):
        return pa.types.is_fixed_size_list(data_type.value_type) and is_vector_column(data_type.value_type)
    return False


def vector_column_paths(schema: "pyarrow.Schema", dim: Optional[int] = None) -> List[str]:
    """Paths of the vector columns (of dimension `dim` if given), members of structs included, in schema order."""
    found: List[str] = []

    def visit(field, parents):
        path = [*parents, field.name]
        size = infer_vector_column_dim(field.type)
        if size is not None and (dim is None or size == dim):
            found.append(format_field_path(path))
        elif pa.types.is_struct(field.type):
            for child in field.type:
                visit(child, path)

    for field in schema:
        visit(field, [])
    return found


def inf_vector_column_query(schema: "pyarrow.Schema", dim: Optional[int] = None) -> str:
    """The only vector column of the schema (of dimension `dim` if given); ValueError when there is none or more than one."""
    candidates = vector_column_paths(schema, dim)
    if not candidates:
        raise InvalidInputError(NO_VECTOR_COLUMN)
    if len(candidates) > 1:
        raise InvalidInputError(f"{MANY_VECTOR_COLUMNS} Candidates: {candidates}")
    return candidates[0]


def query_dim(query: Any) -> Optional[int]:
    """Values per vector of a query (a vector or a list of vectors); None when that cannot be told."""
    while True:
        if isinstance(query, np.ndarray):
            return query.shape[-1] if query.ndim else None
        if isinstance(query, (list, tuple)) or hasattr(query, "__len__") and not isinstance(query, (str, bytes, dict)):
            if len(query) and (isinstance(query[0], (list, tuple, np.ndarray)) or type(query[0]).__name__ == "ListScalar"):
                query = query[0]
                continue
            return len(query)
        return None


def infer_vector_column_name(
    schema: "pyarrow.Schema", query_type: str, query: Optional[Any], vector_column_name: Optional[str]
) -> Optional[str]:
    """The vector column that a search means: the one given, else the only one that fits the query; None for text searches."""
    if vector_column_name is not None or query_type == "fts" or query is None and query_type != "hybrid":
        return vector_column_name
    return inf_vector_column_query(schema, None if isinstance(query, str) else query_dim(query))
