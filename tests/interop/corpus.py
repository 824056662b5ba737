"""Columns that bring out each encoding: by the look of their values, or forced by field metadata."""

import arrays
import pyarrow as pa

PREFIX = "lance-encoding:"


class Column:
    """`make(rng, rows)` gives the array; `metadata` holds keys without their prefix."""

    def __init__(self, name, make, metadata=None, rows=5000, versions=("2.0", "2.1", "2.2")):
        self.name, self.make, self.rows, self.versions = name, make, rows, versions
        self.metadata = {PREFIX + k: v for k, v in (metadata or {}).items()}

    def table(self, rng, rows=None):
        array = self.make(rng, rows or self.rows)
        field = pa.field("c", array.type, metadata=self.metadata or None)
        return pa.table([pa.array(range(len(array)), pa.int64()), array], pa.schema([pa.field("id", pa.int64()), field]))


def of(t, each, null=0.0):
    return lambda rng, n: pa.array([None if null and rng.random() < null else each(rng) for _ in range(n)], t)


def runs(t, choices, longest):
    def make(rng, n):
        values = []
        while len(values) < n:
            values += [rng.choice(choices)] * rng.randint(1, longest)
        return pa.array(values[:n], t)

    return make


def sentence(low, high):
    return lambda rng: " ".join(rng.choice(arrays.WORDS[1:6]) + str(rng.randrange(99)) for _ in range(rng.randint(low, high)))


def vector(dim, t=pa.float32(), null=0.0, item_null=0.0):
    def one(rng):
        if pa.types.is_boolean(t):
            values = [rng.random() < 0.5 for _ in range(dim)]
        elif pa.types.is_integer(t):
            values = [rng.randrange(120) for _ in range(dim)]
        else:
            values = [arrays.half(rng.gauss(0, 1)) for _ in range(dim)]
        return [None if item_null and rng.random() < item_null else v for v in values] if item_null else values

    return of(pa.list_(t, dim), one, null)


def random_of(t, nulls="some", inner="some"):
    return lambda rng, n: arrays.random_array(rng, t, n, nulls, inner)


PAIR = pa.struct([pa.field("a", pa.int32(), False), pa.field("b", pa.float64(), False)])
PAIR_TEXT = pa.struct([pa.field("a", pa.int32(), False), pa.field("b", pa.utf8(), False)])
PAIR_VECTOR = pa.struct([pa.field("a", pa.uint8(), False), pa.field("v", pa.list_(pa.float32(), 4), False)])
LIST = pa.list_(pa.int32())
NEW = ("2.1", "2.2")

DEFAULTS = [
    # name, builder, rows
    Column("int64 sequence", lambda rng, n: pa.array(range(n), pa.int64())),
    Column("int32 wide", of(pa.int32(), lambda r: r.randrange(-(1 << 31), 1 << 31))),
    Column("int64 wide with nulls", of(pa.int64(), lambda r: r.randrange(1 << 62), 0.3)),
    Column("int8 narrow", of(pa.int8(), lambda r: r.randrange(5))),
    Column("uint16 narrow", of(pa.uint16(), lambda r: r.randrange(900))),
    Column("int32 negative", of(pa.int32(), lambda r: r.randint(-9, 9))),
    Column("int32 runs", runs(pa.int32(), [1, 70000, -3, 0], 90)),
    Column("int64 long runs", runs(pa.int64(), [1 << 40, 2, 3], 1800)),
    Column("int64 few values", of(pa.int64(), lambda r: r.choice([0, 1 << 60, 77]))),
    Column("uint64 few values with nulls", of(pa.uint64(), lambda r: r.choice([0, 1 << 63, 77]), 0.2)),
    Column("float32 uniform", of(pa.float32(), lambda r: r.random())),
    Column("float64 normal", of(pa.float64(), lambda r: r.gauss(0, 1))),
    Column("float64 mostly null", of(pa.float64(), lambda r: r.gauss(0, 1), 0.9)),
    Column("float64 few values", of(pa.float64(), lambda r: r.choice([0.5, -0.0, float("nan")]))),
    Column("float16 normal", of(pa.float16(), lambda r: arrays.half(r.gauss(0, 1)), 0.1)),
    Column("bool", of(pa.bool_(), lambda r: r.random() < 0.5, 0.2)),
    Column("bool constant", of(pa.bool_(), lambda r: True, 0.2)),
    Column("string short", of(pa.utf8(), sentence(0, 1), 0.1)),
    Column("string few values", of(pa.utf8(), lambda r: r.choice(arrays.WORDS), 0.1)),
    Column("string text", of(pa.utf8(), sentence(3, 12))),
    Column("string long", of(pa.utf8(), sentence(30, 60), 0.1), rows=2000),
    Column("string constant", of(pa.utf8(), lambda r: "always the same", 0.1)),
    Column("string constant, longer than a word", of(pa.utf8(), lambda r: "x" * 100)),
    Column("string all empty", of(pa.utf8(), lambda r: "")),
    Column("large_string text", of(pa.large_utf8(), sentence(3, 12), 0.1)),
    Column("binary noise", of(pa.binary(), lambda r: r.randbytes(r.randrange(40)), 0.1)),
    Column("binary 40 KiB", of(pa.binary(), lambda r: r.randbytes(r.randrange(80000)), 0.1), rows=60),
    Column("binary 40 KiB compressible", of(pa.binary(), lambda r: b"abc " * r.randrange(20000)), rows=60),
    Column("large_binary 1 MiB", of(pa.large_binary(), lambda r: r.randbytes(1 << 20)), rows=3),
    Column("binary(16) few values", of(pa.binary(16), lambda r: bytes([r.randrange(3)]) * 16)),
    Column("binary(300)", of(pa.binary(300), lambda r: r.randbytes(300), 0.1), rows=500),
    Column("decimal128", random_of(pa.decimal128(20, 4))),
    Column("decimal256", random_of(pa.decimal256(50, 4))),
    Column("timestamp", random_of(pa.timestamp("us", "UTC"))),
    Column("date32 runs", runs(pa.date32(), [19000, 19001, 19002], 60)),
    Column("dictionary", random_of(pa.dictionary(pa.int16(), pa.utf8()))),
    Column("vector 32", vector(32), rows=1000),
    Column("vector 384", vector(384), rows=300),
    Column("vector 384 with nulls", vector(384, null=0.2), rows=300),
    Column("vector 128 with null items", vector(128, null=0.1, item_null=0.1), rows=300),
    Column("vector 8 with null items", vector(8, null=0.1, item_null=0.1), rows=1000),
    Column("vector 256 float16", vector(256, pa.float16()), rows=300),
    Column("vector 64 uint8", vector(64, pa.uint8()), rows=500),
    Column("vector 40 bool", vector(40, pa.bool_(), null=0.1), rows=500),
    Column("list int", random_of(LIST)),
    Column("list int without nulls", random_of(LIST, "none", "none")),
    Column("list all null", random_of(LIST, "all")),
    Column("list wide rows", of(pa.list_(pa.int64()), lambda r: [r.randrange(1 << 40) for _ in range(r.randrange(3000))]), rows=100),
    Column("list string", random_of(pa.list_(pa.utf8()))),
    Column("list of list", random_of(pa.list_(pa.list_(pa.int32())))),
    Column("list of long vectors", of(pa.list_(pa.list_(pa.float32(), 128)), lambda r: [[r.random()] * 128 for _ in range(r.randrange(4))], 0.1), rows=200, versions=NEW),
    Column("list of struct", random_of(pa.list_(pa.struct([("a", pa.int32()), ("b", pa.utf8())]))), versions=NEW),
    Column("struct", random_of(pa.struct([("a", pa.int32()), ("b", pa.utf8())])), versions=NEW),
    Column("struct with list", random_of(pa.struct([("a", LIST), ("b", pa.utf8())])), versions=NEW),
    Column("map", random_of(pa.map_(pa.utf8(), pa.int32())), versions=("2.2",)),
    Column("null", lambda rng, n: pa.nulls(n)),
    Column("int32 all null", random_of(pa.int32(), "all")),
    Column("int32 constant", of(pa.int32(), lambda r: 42)),
    Column("int32 constant with nulls", of(pa.int32(), lambda r: 42, 0.3)),
]

FORCED = []
for scheme in "lz4", "zstd", "none", "fsst":
    chosen = {"compression": scheme}
    FORCED += [
        Column(f"compression={scheme} string", of(pa.utf8(), sentence(3, 12), 0.1), chosen),
        Column(f"compression={scheme} short string", of(pa.utf8(), sentence(0, 1), 0.1), chosen, rows=300),
        Column(f"compression={scheme} long string", of(pa.utf8(), sentence(30, 60), 0.1), chosen, rows=2000),
        Column(f"compression={scheme} few strings", of(pa.utf8(), lambda r: r.choice(arrays.WORDS)), chosen),
        Column(f"compression={scheme} binary", of(pa.binary(), lambda r: b"ab" * r.randrange(40)), chosen),
        Column(f"compression={scheme} float32", of(pa.float32(), lambda r: float(r.randrange(10000)), 0.1), chosen),
        Column(f"compression={scheme} int64", of(pa.int64(), lambda r: r.randrange(1 << 50) * 1024), chosen),
        Column(f"compression={scheme} int16", of(pa.int16(), lambda r: r.randrange(99), 0.1), chosen),
        Column(f"compression={scheme} bool", of(pa.bool_(), lambda r: r.random() < 0.1), chosen),
        Column(f"compression={scheme} vector", vector(64), chosen, rows=500),
        Column(f"compression={scheme} short vector", vector(8), chosen, rows=500),
        Column(f"compression={scheme} decimal", random_of(pa.decimal128(20, 4)), chosen),
    ]
FORCED += [
    Column("zstd level", of(pa.utf8(), sentence(3, 12)), {"compression": "zstd", "compression-level": "9"}),
    Column("unknown compression", of(pa.utf8(), sentence(3, 12)), {"compression": "brotli"}),
    Column("bss on", of(pa.float64(), lambda r: r.random()), {"compression": "zstd", "bss": "on"}),
    Column("bss on float32", of(pa.float32(), lambda r: r.gauss(0, 1), 0.2), {"compression": "lz4", "bss": "on"}),
    Column("bss off", of(pa.float64(), lambda r: float(r.randrange(99))), {"compression": "lz4", "bss": "off"}),
    Column("bss auto", of(pa.float64(), lambda r: float(r.randrange(99))), {"compression": "zstd", "bss": "auto"}),
    Column("rle off", runs(pa.int32(), [1, 2], 50), {"rle-threshold": "0.0"}),
    Column("rle on", runs(pa.int32(), [1, 2], 3), {"rle-threshold": "1.0"}),
    Column("rle on, 8 bits", runs(pa.uint8(), [1, 200], 9), {"rle-threshold": "0.9"}),
    Column("full-zip string", of(pa.utf8(), sentence(0, 2), 0.1), {"structural-encoding": "fullzip"}),
    Column("full-zip binary", of(pa.large_binary(), lambda r: r.randbytes(r.randrange(30)), 0.2), {"structural-encoding": "fullzip"}),
    Column("full-zip int", of(pa.int32(), lambda r: r.randrange(1000), 0.2), {"structural-encoding": "fullzip"}),
    Column("full-zip list", random_of(LIST), {"structural-encoding": "fullzip"}),
    Column("full-zip vector", vector(4, null=0.1), {"structural-encoding": "fullzip"}, rows=500),
    Column("full-zip binary(5)", of(pa.binary(5), lambda r: r.randbytes(5), 0.1), {"structural-encoding": "fullzip"}),
    Column("mini-block vector", vector(384), {"structural-encoding": "miniblock"}, rows=100),
    Column("mini-block string", of(pa.utf8(), sentence(30, 60), 0.1), {"structural-encoding": "miniblock"}, rows=1000),
    Column("small chunks", of(pa.utf8(), sentence(1, 3)), {"minichunk-size": "512"}),
    Column("dictionary refused", of(pa.utf8(), lambda r: r.choice(arrays.WORDS)), {"dict-divisor": "100000"}),
    Column("dictionary of many", of(pa.utf8(), lambda r: f"a rather long word {r.randrange(900)}"), {"dict-size-ratio": "0.99"}),
    Column("dictionary values zstd", of(pa.utf8(), lambda r: f"a rather long word {r.randrange(200)}"), {"dict-values-compression": "zstd", "dict-values-compression-level": "3"}),
    Column("dictionary values none", of(pa.int64(), lambda r: r.choice([1, 1 << 50])), {"dict-values-compression": "none"}),
    Column("packed", of(PAIR, lambda r: {"a": r.randrange(99), "b": r.random()}), {"packed": "true"}),
    Column("packed with vector", of(PAIR_VECTOR, lambda r: {"a": r.randrange(99), "v": [float(r.randrange(9))] * 4}), {"packed": "true"}, versions=("2.2",)),
    Column("packed with string", of(PAIR_TEXT, lambda r: {"a": r.randrange(99), "b": r.choice(arrays.WORDS)}), {"packed": "true"}, versions=("2.2",)),
    Column("blob", of(pa.large_binary(), lambda r: r.randbytes(r.randrange(3000)), 0.1), {"blob": "true"}, rows=100),
]
