"""Random Arrow arrays of any type that a table may hold, and the list of types that tests walk through."""

import decimal
import struct

import pyarrow as pa

WORDS = ["", "a", "zebra", "Ünï", "two words", "a somewhat longer piece of text, as titles are", "日本", "'quoted'"]

# Name -> type. Every Arrow type that the file format stores.
TYPES = {
    str(t): t
    for t in [
        pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64(),
        pa.float16(), pa.float32(), pa.float64(), pa.bool_(),
        pa.decimal128(38, 10), pa.decimal128(9, 0), pa.decimal256(60, 4),
        pa.date32(), pa.date64(), pa.time32("s"), pa.time32("ms"), pa.time64("us"), pa.time64("ns"),
        pa.timestamp("s"), pa.timestamp("ms", "UTC"), pa.timestamp("us", "Europe/Berlin"), pa.timestamp("ns"),
        pa.duration("s"), pa.duration("ms"), pa.duration("us"), pa.duration("ns"),
        pa.utf8(), pa.large_utf8(), pa.binary(), pa.large_binary(), pa.binary(5), pa.binary(16), pa.binary(300),
        pa.string_view(), pa.binary_view(), pa.null(),
        pa.dictionary(pa.int8(), pa.utf8()), pa.dictionary(pa.int32(), pa.utf8()),
        pa.dictionary(pa.uint16(), pa.int64()),
        pa.list_(pa.int32()), pa.list_(pa.utf8()), pa.large_list(pa.float64()), pa.list_(pa.bool_()),
        pa.list_(pa.list_(pa.int16())),
        pa.list_(pa.float32(), 3), pa.list_(pa.float32(), 128), pa.list_(pa.float16(), 16), pa.list_(pa.uint8(), 8),
        pa.list_(pa.float64(), 2), pa.list_(pa.bool_(), 5), pa.list_(pa.list_(pa.int16(), 2), 2),
        pa.list_(pa.list_(pa.float32(), 4)),
        pa.struct([("a", pa.int32()), ("b", pa.utf8())]),
        pa.struct([("s", pa.struct([("x", pa.float32()), ("l", pa.list_(pa.int8()))])), ("f", pa.bool_())]),
        pa.list_(pa.struct([("a", pa.int64()), ("b", pa.utf8())])),
        pa.list_(pa.struct([("a", pa.int32()), ("b", pa.utf8())]), 2),
        pa.map_(pa.utf8(), pa.int32()), pa.map_(pa.int32(), pa.list_(pa.utf8())),
    ]
}

NULLS = {
    "none": lambda rng, i, n: False,
    "some": lambda rng, i, n: rng.random() < 0.2,
    "all": lambda rng, i, n: True,
    "first_half": lambda rng, i, n: i < n // 2,
    "alternate": lambda rng, i, n: i % 2 == 1,
    "one_valid": lambda rng, i, n: i != n // 3,
}


def integer(rng, low, high):
    """Mostly small, sometimes anything, sometimes the ends of the range."""
    kind = rng.random()
    if kind < 0.6:
        return rng.randint(max(low, -9), min(high, 100))
    if kind < 0.95:
        return rng.randint(low, high)
    return rng.choice([low, high, 0])


def number(rng):
    kind = rng.random()
    if kind < 0.7:
        return rng.gauss(0, 1)
    if kind < 0.9:
        return float(rng.randrange(8))
    return rng.choice([0.0, -0.0, float("nan"), float("inf"), -float("inf"), 65504.0])


def text(rng):
    if rng.random() < 0.7:
        return rng.choice(WORDS)
    return "".join(rng.choice("abc déf") for _ in range(rng.randrange(20)))


def bits_of(t):
    low = -(1 << (t.bit_width - 1)) if pa.types.is_signed_integer(t) else 0
    return low, low + (1 << t.bit_width) - 1


def half(value):
    """The nearest float16, as a Python float (infinite when it is out of range)."""
    try:
        return struct.unpack("<e", struct.pack("<e", value))[0]
    except OverflowError:
        return float("inf") if value > 0 else -float("inf")


def random_array(rng, t, n, nulls="some", inner="some"):
    """`n` values; `nulls` and `inner` are the null patterns of the values and of what is inside them."""
    null = NULLS[nulls]
    valid = [not null(rng, i, n) for i in range(n)]
    if pa.types.is_null(t):
        return pa.nulls(n)
    mask = pa.array([not v for v in valid], pa.bool_())
    if pa.types.is_dictionary(t):
        items = random_array(rng, t.value_type, 7, "none")
        keys = pa.array([rng.randrange(7) if v else None for v in valid], t.index_type)
        return pa.DictionaryArray.from_arrays(keys, items)
    if pa.types.is_struct(t):
        children = [random_array(rng, f.type, n, inner if f.nullable else "none", inner) for f in t]
        return pa.StructArray.from_arrays(children, fields=list(t), mask=mask if nulls != "none" else None)
    if pa.types.is_fixed_size_list(t):
        width = t.list_size
        items = random_array(rng, t.value_type, n * width, inner if t.value_field.nullable else "none", inner)
        return pa.FixedSizeListArray.from_arrays(items, type=t, mask=mask if nulls != "none" else None)
    if pa.types.is_list(t) or pa.types.is_large_list(t) or pa.types.is_map(t):
        return random_lists(rng, t, valid, inner)
    return pa.array([scalar(rng, t) if v else None for v in valid], t)


def random_lists(rng, t, valid, inner):
    sizes = [rng.choice([0, 1, 1, 2, 5]) if v else 0 for v in valid]
    offsets = [0]
    for size in sizes:
        offsets.append(offsets[-1] + size)
    total = offsets[-1]
    # A null in the offsets marks a null list.
    marked = [o if v else None for o, v in zip(offsets, valid)] + [total]
    wide = pa.large_list if pa.types.is_large_list(t) else None
    starts = pa.array(marked, pa.int64() if wide else pa.int32())
    if pa.types.is_map(t):
        keys = random_array(rng, t.key_type, total, "none")
        items = random_array(rng, t.item_type, total, inner, inner)
        return pa.MapArray.from_arrays(starts, keys, items, type=t)
    items = random_array(rng, t.value_type, total, inner if t.value_field.nullable else "none", inner)
    kind = pa.LargeListArray if wide else pa.ListArray
    return kind.from_arrays(starts, items, type=t)


def scalar(rng, t):
    if pa.types.is_integer(t):
        return integer(rng, *bits_of(t))
    if pa.types.is_float16(t):
        return half(number(rng))
    if pa.types.is_floating(t):
        return number(rng)
    if pa.types.is_boolean(t):
        return rng.random() < 0.5
    if pa.types.is_decimal(t):
        digits = t.precision if rng.random() < 0.1 else min(t.precision, 6)
        unscaled = rng.randrange(-(10**digits) + 1, 10**digits)
        return decimal.Decimal(unscaled).scaleb(-t.scale, decimal.Context(prec=80))
    if pa.types.is_string(t) or pa.types.is_large_string(t) or t == pa.string_view():
        return text(rng)
    if pa.types.is_fixed_size_binary(t):
        return rng.randbytes(t.byte_width) if rng.random() < 0.8 else bytes(t.byte_width)
    if pa.types.is_binary(t) or pa.types.is_large_binary(t) or t == pa.binary_view():
        return text(rng).encode() if rng.random() < 0.5 else rng.randbytes(rng.randrange(30))
    if pa.types.is_date32(t):
        return integer(rng, -30000, 60000)
    if pa.types.is_date64(t):
        return integer(rng, -30000, 60000) * 86_400_000
    if pa.types.is_time(t):
        per_day = {"s": 86400, "ms": 86400 * 10**3, "us": 86400 * 10**6, "ns": 86400 * 10**9}[t.unit]
        return rng.randrange(per_day)
    if pa.types.is_timestamp(t) or pa.types.is_duration(t):
        return integer(rng, -(10**9), 2 * 10**9)
    raise TypeError(f"no generator for {t}")


def with_runs(rng, array, length=40):
    """The values of `array` at random places, each repeated: data that run-length encoding likes."""
    picks = []
    while len(picks) < len(array):
        picks += [rng.randrange(len(array))] * rng.randint(1, length)
    return array.take(pa.array(picks[: len(array)], pa.int64()))
