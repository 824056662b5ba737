"""Vector columns of incoming data: which columns they are, what type they get, and what to do with bad vectors.

A vector is bad when it is null, has another length than its column, or contains NaN.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Optional, Sequence

from ._lazy import np, pa
from .exceptions import InvalidInputError, SchemaMismatchError

if TYPE_CHECKING:
    import pyarrow

POLICIES = ("error", "drop", "fill", "null")
# A fixed-size list of floats at least this long is taken for a vector whatever its name.
_LONG = 10


class BadVectorError(SchemaMismatchError):
    """A vector is null, too short, too long, or contains NaN."""


def check_policy(on_bad_vectors: Optional[str]) -> str:
    """`on_bad_vectors`, "error" for None; ValueError for an unknown one."""
    if on_bad_vectors is None:
        return "error"
    if on_bad_vectors not in POLICIES:
        raise InvalidInputError(f"Invalid value for on_bad_vectors: {on_bad_vectors}; one of {', '.join(POLICIES)} is expected")
    return on_bad_vectors


def is_list(data_type: "pyarrow.DataType") -> bool:
    return pa.types.is_list(data_type) or pa.types.is_large_list(data_type)


def is_list_like(data_type: "pyarrow.DataType") -> bool:
    return is_list(data_type) or pa.types.is_fixed_size_list(data_type)


def _is_number(data_type: "pyarrow.DataType") -> bool:
    return pa.types.is_floating(data_type) or pa.types.is_integer(data_type)


def is_float_vector(data_type: "pyarrow.DataType") -> bool:
    return pa.types.is_fixed_size_list(data_type) and pa.types.is_floating(data_type.value_type)


# --- what type a vector column gets -------------------------------------------------------------------------


def named_like_a_vector(name: str) -> bool:
    lowered = name.lower()
    return "vector" in lowered or "embedding" in lowered


def wants_inference(field: "pyarrow.Field") -> bool:
    """Whether the field is a list column that a new table stores as vectors, judging by its name."""
    return named_like_a_vector(field.name) and is_list(field.type) and _is_number(field.type.value_type)


def common_length(column) -> Optional[int]:
    """The most frequent length of the column's lists; None when all are null or empty, or there are none."""
    counts: dict = {}
    for chunk in _chunks(column):
        lengths, valid = _lengths(chunk)
        for length, count in zip(*np.unique(lengths[valid], return_counts=True)):
            counts[int(length)] = counts.get(int(length), 0) + int(count)
    counts.pop(0, None)
    if not counts:
        return None
    most = max(counts.values())
    return min(length for length, count in counts.items() if count == most)


def inferred_type(field: "pyarrow.Field", column, dim: int) -> "pyarrow.DataType":
    """float32 vectors; uint8 ones when the column has integers that all lie in 0..255."""
    value_type = pa.float32()
    if pa.types.is_integer(field.type.value_type):
        values = [chunk.flatten() for chunk in _chunks(column)]
        limits = [pa_min_max(v) for v in values if len(v) > v.null_count]
        if all(0 <= low and high <= 255 for low, high in limits):
            value_type = pa.uint8()
    return pa.list_(value_type, dim)


def pa_min_max(values):
    from ._lazy import pc

    both = pc.min_max(values)
    return both["min"].as_py(), both["max"].as_py()


# --- which columns are looked at ----------------------------------------------------------------------------


def checked_columns(source: "pyarrow.Schema", target: Optional["pyarrow.Schema"], embedded: Sequence[str] = ()) -> list:
    """Names of the columns of incoming data to which the policy for bad vectors applies.

    Without the schema of a table: the list column "vector" and float vectors of ten or more values. With it: float or integer
    vectors named "vector" or "embedding" there, and columns that already come as float vectors of ten or more values. In both
    cases those named in `embedded`, which embedding functions fill.
    """
    names = []
    for field in source:
        if not is_list_like(field.type) or not (_is_number(field.type.value_type) or pa.types.is_null(field.type.value_type)):
            continue
        if field.name in embedded or is_float_vector(field.type) and field.type.list_size >= _LONG:
            names.append(field.name)
            continue
        if target is None:
            if field.name == "vector":
                names.append(field.name)
            continue
        index = target.get_field_index(field.name)
        if index < 0:
            continue
        wanted = target.field(index).type
        if pa.types.is_fixed_size_list(wanted) and field.name in ("vector", "embedding"):
            names.append(field.name)
        elif field.name == "vector" and is_list(wanted) and pa.types.is_floating(wanted.value_type):
            names.append(field.name)
    return names


class Checked:
    """A column to which the policy applies, and how many values its vectors have.

    A column of lists of any length learns that from the first vectors that stay: it is their most frequent length. Until then
    each batch goes by its own.
    """

    def __init__(self, name: str, found: "pyarrow.DataType", stored: "pyarrow.DataType"):
        self.name = name
        self.stored = stored
        self._value_type = stored.value_type
        self._size = None
        for known in (stored, found):
            if pa.types.is_fixed_size_list(known) and self._size is None:
                self._size = known.list_size

    def apply(self, batch: "pyarrow.RecordBatch", policy: str, fill_value: float) -> "pyarrow.RecordBatch":
        """The batch with the policy applied to the column."""
        index = batch.schema.get_field_index(self.name)
        column = batch.column(index)
        size = self._size
        if size is None:
            size = _usual_length(column)
        if size is None:  # nothing in it but nulls and empty lists
            return batch
        batch = handle_batch(batch, self.name, policy, fill_value, size, self._value_type)
        if pa.types.is_fixed_size_list(self.stored):
            return batch
        return _with_column(batch, index, batch.column(index).cast(self.stored))

    def learn(self, batch: "pyarrow.RecordBatch") -> None:
        """Takes the length of vectors from what is left of the first batch that has good ones."""
        if self._size is None:
            self._size = _usual_length(batch.column(batch.schema.get_field_index(self.name)), good=True)


def _usual_length(column, good: bool = False) -> Optional[int]:
    """The most frequent length of lists that are neither null nor empty, preferring (with `good`: among only) those without NaN."""
    lengths, valid = _lengths(column)
    some = valid & (lengths > 0)
    nan = _rows_with_nan(column)
    choices = [some] if nan is None else [some & ~nan] if good else [some & ~nan, some]
    for mask in choices:
        if mask.any():
            found, counts = np.unique(lengths[mask], return_counts=True)
            return int(found[np.argmax(counts)])
    return None


# --- the policy ---------------------------------------------------------------------------------------------


def handle_batch(
    batch: "pyarrow.RecordBatch", name: str, policy: str, fill_value: float, dim: int, value_type
) -> "pyarrow.RecordBatch":
    """Applies the policy to one column of a batch; its good vectors come out as fixed-size lists of `dim` values.

    BadVectorError with "error". "drop" leaves rows out, "null" makes bad vectors null, "fill" keeps what is good of each bad
    vector and puts `fill_value` elsewhere.
    """
    index = batch.schema.get_field_index(name)
    column = batch.column(index)
    lengths, valid = _lengths(column)
    wrong_length = ~valid | (lengths != dim)
    has_nan = _rows_with_nan(column)
    if policy == "error":
        advice = "Set on_bad_vectors to 'drop' (leave the rows out), 'fill' (use fill_value instead) or 'null' to accept them."
        if wrong_length.any():
            raise BadVectorError(
                f"Vector column '{name}' has variable length vectors or nulls: {dim} values are expected. {advice}"
            )
        if has_nan is not None:
            raise BadVectorError(f"Vector column '{name}' has NaNs. {advice}")
    bad = wrong_length if has_nan is None else wrong_length | has_nan
    if not bad.any():
        vectors = _as_vectors(column, dim, value_type)
        return batch if vectors is column else _with_column(batch, index, vectors)
    if policy == "drop":
        kept = batch.filter(pa.array(~bad))
        return _with_column(kept, index, _as_vectors(kept.column(index), dim, value_type))
    filled = _filled(column, lengths, valid, dim, fill_value if policy == "fill" else 0, value_type)
    if policy == "null":
        filled = pa.FixedSizeListArray.from_arrays(filled.values, dim, mask=pa.array(bad))
    return _with_column(batch, index, filled)


def _with_column(batch, index, column):
    old = batch.schema.field(index)
    field = pa.field(old.name, column.type, old.nullable or column.null_count > 0, old.metadata)
    return batch.set_column(index, field, column)


def _chunks(column):
    return column.chunks if isinstance(column, pa.ChunkedArray) else [column]


def _lengths(column):
    """Length of each list (of a null: what is stored), and which are valid, as numpy arrays."""
    rows = len(column)
    valid = np.ones(rows, bool) if column.null_count == 0 else column.is_valid().to_numpy(zero_copy_only=False)
    if pa.types.is_fixed_size_list(column.type):
        return np.full(rows, column.type.list_size, np.int64), valid
    offsets = column.offsets.to_numpy()
    return np.diff(offsets).astype(np.int64), valid


def _starts(column):
    """Where each list begins in `column.values`."""
    if pa.types.is_fixed_size_list(column.type):
        return (np.arange(len(column), dtype=np.int64) + column.offset) * column.type.list_size
    return column.offsets.to_numpy()[:-1].astype(np.int64)


def _span(column):
    """The values that the column's lists lie in, as a slice (start, stop) of `column.values`."""
    if pa.types.is_fixed_size_list(column.type):
        size = column.type.list_size
        return column.offset * size, (column.offset + len(column)) * size
    offsets = column.offsets
    return (offsets[0].as_py(), offsets[-1].as_py()) if len(column) else (0, 0)


def _rows_with_nan(column):
    """Mask of the valid lists that contain NaN; None when no list does. Nearly free when there is none."""
    if not pa.types.is_floating(column.type.value_type):
        return None
    start, stop = _span(column)
    values = column.values.slice(start, stop - start)
    numbers = values.to_numpy(zero_copy_only=False)
    if values.null_count == 0 and not np.isnan(_quick_sum(numbers)):
        return None
    nan = np.isnan(numbers)
    if values.null_count:
        nan &= values.is_valid().to_numpy(zero_copy_only=False)
    if not nan.any():
        return None
    lengths, valid = _lengths(column)
    before = np.concatenate([[0], np.cumsum(nan)])
    starts = _starts(column) - start
    mask = (before[starts + lengths] > before[starts]) & valid
    return mask if mask.any() else None


def _quick_sum(numbers):
    """NaN if one of the numbers is; infinities may give NaN as well."""
    with np.errstate(all="ignore"):
        return numbers.sum(dtype=np.float32 if numbers.dtype == np.float16 else None)


def _as_vectors(column, dim, value_type):
    """A column without bad vectors as fixed-size lists."""
    wanted = pa.list_(value_type, dim)
    if column.type == wanted or pa.types.is_fixed_size_list(column.type) and column.type.value_type == value_type:
        return column
    start, stop = _span(column)
    if column.null_count == 0 and stop - start == len(column) * dim:
        return pa.FixedSizeListArray.from_arrays(column.values.slice(start, stop - start).cast(value_type), dim)
    return column.cast(wanted)


def _filled(column, lengths, valid, dim, fill_value, value_type):
    """All lists with exactly `dim` values: the leading ones of each, `fill_value` where one is missing, null or NaN."""
    rows = len(column)
    lengths = np.where(valid, lengths, 0)
    values = column.values
    if pa.types.is_null(values.type):
        values = values.cast(value_type)
    known = None
    if values.null_count:
        known = values.is_valid().to_numpy(zero_copy_only=False)
        values = values.fill_null(0)
    numbers = values.to_numpy(zero_copy_only=False)
    out = np.full((rows, dim), fill_value, np.result_type(numbers.dtype, np.min_scalar_type(fill_value)))
    position = np.arange(dim)
    there = position < lengths[:, None]
    source = (_starts(column)[:, None] + position)[there]
    taken = numbers[source]
    if known is not None:
        taken = np.where(known[source], taken, fill_value)
    out[there] = taken
    if out.dtype.kind == "f":
        out[np.isnan(out)] = fill_value
    return pa.FixedSizeListArray.from_arrays(pa.array(out.reshape(-1)).cast(value_type, safe=False), dim)
