"""Exact comparison of Arrow tables: types, nullability, metadata if asked, and every value bit for bit.

Arrow's own `equals` treats NaN as unequal and -0.0 as equal to 0.0; here NaN equals NaN and the sign of
zero counts. Chunking does not matter.
"""

import math

import pyarrow as pa


def plain(array):
    """One array without dictionary encoding, views or the like: what values it holds, not how."""
    if pa.types.is_dictionary(array.type):
        if isinstance(array, pa.ChunkedArray):
            # Chunks may have dictionaries of their own, with nulls among the items.
            array = pa.chunked_array([c.dictionary_decode() for c in array.chunks], array.type.value_type)
        else:
            array = array.dictionary_decode()
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks() if array.num_chunks != 1 else array.chunk(0)
        if isinstance(array, pa.ChunkedArray):
            array = pa.concat_arrays(array.chunks) if array.num_chunks else pa.array([], array.type)
    return array


def key(value):
    if isinstance(value, float):
        return "nan" if math.isnan(value) else (value, math.copysign(1.0, value))
    if isinstance(value, list):
        return [key(v) for v in value]
    if isinstance(value, tuple):
        return tuple(key(v) for v in value)
    if isinstance(value, dict):
        return {k: key(v) for k, v in value.items()}
    return value


def has_floats(t):
    if pa.types.is_floating(t):
        return True
    if pa.types.is_dictionary(t):
        return has_floats(t.value_type)
    return any(has_floats(t.field(i).type) for i in range(t.num_fields))


def values(array):
    """Python values of an array; instants and days as integers, so that no range limit applies."""
    t = array.type
    if pa.types.is_timestamp(t) or pa.types.is_duration(t) or pa.types.is_time(t) or pa.types.is_date(t):
        array = array.view(pa.int32() if t.bit_width == 32 else pa.int64())
    return [key(v) for v in array.to_pylist()]


def difference(left, right):
    """None if the two columns hold the same values, otherwise a sentence."""
    if len(left) != len(right):
        return f"{len(left)} rows and {len(right)} rows"
    if left.type != right.type:
        return f"type {left.type} and type {right.type}"
    left, right = plain(left), plain(right)
    if not has_floats(left.type) and left.equals(right):
        return None
    ours, other = values(left), values(right)
    for i, (a, b) in enumerate(zip(ours, other)):
        if a != b:
            return f"row {i}: {short(a)} and {short(b)}"
    return None


def short(value):
    shown = repr(value)
    return shown if len(shown) < 200 else shown[:200] + "…"


def same_field(left, right):
    return left.name == right.name and left.type.equals(right.type) and left.nullable == right.nullable


def assert_same(left, right, what="", metadata=False):
    assert left.schema.names == right.schema.names, f"{what}: columns {left.schema.names} and {right.schema.names}"
    for a, b in zip(left.schema, right.schema):
        assert same_field(a, b), f"{what}: field {a} and field {b}"
        if metadata:
            assert (a.metadata or {}) == (b.metadata or {}), f"{what}: metadata of {a.name}: {a.metadata} and {b.metadata}"
    for name in dict.fromkeys(left.schema.names):
        found = difference(left[name], right[name])
        assert found is None, f"{what}: column {name} ({left[name].type}): {found}"


def is_same(left, right):
    try:
        assert_same(left, right)
    except AssertionError:
        return False
    return True
