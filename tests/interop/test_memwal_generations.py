"""Generations of the LSM write path: the real packages scan and look up what we wrote, and we read theirs.

Rows, duplicates and tombstones are random; a dictionary of keys says what must be seen.
"""

import json
import pathlib
import random
import shutil
import struct
import uuid
import zlib

import arrays
import pyarrow as pa
import pytest
from same import key as exact
from testing import SOAK
from upstream import Ours, SideError

GOLDEN = pathlib.Path(__file__).resolve().parent.parent / "golden" / "memwal"
SHARD = "aa48498d-ac91-59e2-8452-69f46010ace2"
PRIMARY_KEY = "lance-schema:unenforced-primary-key"
VERSIONS = ["2.0", "2.1", "2.2"]

MAKE = """
d = lance.write_dataset(data, uri, data_storage_version=version)
if indexed:
    d.create_scalar_index(indexed, "BTREE", name="by_" + indexed)
d.initialize_mem_wal(unsharded=True, maintained_indexes=["by_" + indexed] if indexed else [])
"""
TRY = "lance.write_dataset(data, uri, data_storage_version=version)"
SCAN = """
from lance.mem_wal import LsmScanner, ShardSnapshot
snapshot = ShardSnapshot(shard).with_current_generation(len(generations) + 1)
for number, path in generations:
    snapshot = snapshot.with_sstable(number, path)
scanner = LsmScanner.from_snapshots(lance.dataset(uri), [snapshot]).with_memtable_gen()
if filter:
    scanner = scanner.filter(filter)
return scanner.to_table()
"""
LOOKUP = """
from lance.mem_wal import LsmPointLookupPlanner, ShardSnapshot
snapshot = ShardSnapshot(shard).with_current_generation(len(generations) + 1)
for number, path in generations:
    snapshot = snapshot.with_sstable(number, path)
planner = LsmPointLookupPlanner(lance.dataset(uri), [snapshot])
return [planner.plan_lookup(keys.slice(i, 1)).to_table() for i in range(len(keys))]
"""
WRITE = """
d = lance.dataset(uri)
with d.mem_wal_writer(shard) as writer:
    for kind, rows in calls:
        getattr(writer, kind)(rows)
"""
SIDECAR = """
from lance.file import LanceFileReader
out = []
for name in ("page_data", "page_lookup"):
    reader = LanceFileReader(f"{path}/{name}.lance")
    metadata = reader.metadata()
    out.append((reader.read_all().to_table(), metadata.schema.metadata, metadata.major_version, metadata.minor_version))
return out
"""


@pytest.fixture(scope="module")
def native(ours):
    if not isinstance(ours, Ours):
        pytest.skip("our own files are what is tested")
    import glaive._glaive

    return glaive._glaive


def key_field(name, t, position):
    return pa.field(name, t, False, {PRIMARY_KEY: "true", PRIMARY_KEY + ":position": str(position)})


def random_keys(rng, t, rows, spread):
    if pa.types.is_boolean(t):
        return pa.array([rng.random() < 0.5 for _ in range(rows)])
    if pa.types.is_integer(t):
        low, high = arrays.bits_of(t)
        ends = [low, high, high // 2 + 1]
        return pa.array(
            [rng.choice(ends) if rng.random() < 0.1 else rng.randint(0, min(spread, high)) for _ in range(rows)], t
        )
    words = ["", "\0", "a", "a\0", "a\0b", "b", "\x01", "ß"]
    texts = [rng.choice(words) + (str(rng.randrange(spread)) if rng.random() < 0.7 else "") for _ in range(rows)]
    binary = pa.types.is_binary(t) or pa.types.is_large_binary(t)
    return pa.array([text.encode() if binary else text for text in texts], t)


def encode(t, value):
    """A key column's value as bytes, as the specification puts it."""
    if pa.types.is_boolean(t):
        return b"\1" + bytes([value])
    if pa.types.is_unsigned_integer(t):
        return b"\1" + struct.pack(">Q", value)
    if pa.types.is_integer(t):
        return b"\1" + struct.pack(">Q", (value + (1 << 63)) & ((1 << 64) - 1))
    raw = value.encode() if isinstance(value, str) else value
    return b"\1" + raw.replace(b"\0", b"\0\xff") + b"\0\0"


class Shard:
    """A base table of the real packages, and the generations that were made of it."""

    def __init__(self, native, theirs, uri, key_types, value_fields, version, rng, indexed=None, spread=30):
        self.native, self.theirs, self.uri, self.rng, self.spread = native, theirs, str(uri), rng, spread
        self.keys = [key_field(f"k{i}", t, i + 1) for i, t in enumerate(key_types)]
        self.values = value_fields
        self.indexed = indexed
        self.schema = pa.schema(self.keys + self.values)
        self.generations = []
        self.seen = {}  # key -> (generation, row or None)
        base = self.rows(40, nulls="some")
        distinct = {self.key_of(row): i for i, row in enumerate(base.to_pylist())}
        base = base.take(sorted(distinct.values()))
        self.theirs.run(MAKE, data=base, uri=self.uri, version=version, indexed=indexed)
        for row in base.to_pylist():
            self.seen[self.key_of(row)] = (0, row)

    def key_of(self, row):
        return tuple(row[f.name] for f in self.keys)

    def rows(self, count, nulls=None):
        columns = [random_keys(self.rng, f.type, count, self.spread) for f in self.keys]
        for f in self.values:
            pattern = nulls or (f.metadata or {}).get(b"nulls", b"some").decode()
            columns.append(arrays.random_array(self.rng, f.type, count, pattern))
        return pa.table(columns, schema=self.schema)

    def fresh(self, count, tombstones=0.25):
        """Rows as a memtable holds them: those of deleted keys are null but for the key."""
        dead = [self.rng.random() < tombstones for _ in range(count)]
        rows = self.rows(count)
        columns, fields = [], []
        for f, column in zip(self.schema, rows.columns):
            nullable = f.name not in {k.name for k in self.keys}
            if nullable:
                parts = [column.slice(i, 1) if not d else pa.chunked_array([pa.nulls(1, f.type)]) for i, d in enumerate(dead)]
                column = pa.chunked_array([c for part in parts for c in part.chunks], f.type).combine_chunks()
            columns.append(column)
            fields.append(pa.field(f.name, f.type, nullable, f.metadata))
        return pa.table([*columns, pa.array(dead, pa.bool_())], pa.schema([*fields, pa.field("_tombstone", pa.bool_(), False)]))

    def add_generation(self, rows, chunk=17):
        number = len(self.generations) + 1
        stream = pa.RecordBatchReader.from_batches(rows.schema, rows.to_batches(max_chunksize=chunk))
        btrees = [("by_" + self.indexed, self.indexed)] if self.indexed else []
        written = self.native._write_generation(self.uri, SHARD, number, stream, btrees)
        self.generations.append((number, written[0]))
        self.note(number, rows)
        return written

    def note(self, number, rows):
        for row in rows.to_pylist():
            dead = row.pop("_tombstone")
            self.seen[self.key_of(row)] = (number, None if dead else row)

    def directory(self, path):
        return f"{self.uri}/_mem_wal/{SHARD}/{path}"

    def check_scan(self, filter=None, keep=lambda row: True):
        got = self.theirs.run(SCAN, uri=self.uri, shard=SHARD, generations=self.generations, filter=filter)
        found = {}
        for row in got.to_pylist():
            generation = row.pop("_memtable_gen")
            assert self.key_of(row) not in found
            found[self.key_of(row)] = (generation, exact(row))
        assert found == {k: (g, exact(r)) for k, (g, r) in self.seen.items() if r is not None and keep(r)}

    def check_lookup(self, absent=3):
        keys = list(self.seen)
        if absent:
            for values in zip(*(random_keys(self.rng, f.type, absent, 10**6).to_pylist() for f in self.keys)):
                keys.append(values)
        columns = [pa.array([k[i] for k in keys], f.type) for i, f in enumerate(self.keys)]
        names = [f.name for f in self.keys]
        wanted = columns[0] if len(columns) == 1 else pa.StructArray.from_arrays(columns, names)
        got = self.theirs.run(LOOKUP, uri=self.uri, shard=SHARD, generations=self.generations, keys=wanted)
        for k, table in zip(keys, got):
            row = self.seen.get(k, (0, None))[1]
            assert [exact(r) for r in table.select(self.schema.names).to_pylist()] == ([] if row is None else [exact(row)]), k


def rng_for(seed, *parts):
    return random.Random(zlib.crc32(repr((seed, parts)).encode()))


PLAIN = [pa.field("n", pa.int64()), pa.field("text", pa.utf8()), pa.field("v", pa.list_(pa.float32(), 4))]
KEY_TYPES = [
    pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64(),
    pa.bool_(), pa.utf8(), pa.large_utf8(), pa.binary(), pa.large_binary(),
]


@pytest.mark.parametrize("t", KEY_TYPES, ids=str)
def test_key_types(t, native, theirs, tmp_path, seed):
    rng = rng_for(seed, "keys", str(t))
    shard = Shard(native, theirs, tmp_path / "t", [t], PLAIN, rng.choice(VERSIONS), rng)
    for _ in range(3):
        shard.add_generation(shard.fresh(rng.randint(1, 60)))
    shard.check_scan()
    shard.check_lookup()


@pytest.mark.parametrize("number", range(20 if SOAK else 4))
def test_composite_keys(number, native, theirs, tmp_path, seed):
    rng = rng_for(seed, "composite", number)
    types = [rng.choice(KEY_TYPES) for _ in range(2 + number % 2)]
    shard = Shard(native, theirs, tmp_path / "t", types, PLAIN, rng.choice(VERSIONS), rng, spread=4)
    for _ in range(2):
        shard.add_generation(shard.fresh(rng.randint(1, 60)))
    shard.check_scan()
    shard.check_lookup()


def unread(t):
    """Fixed-size lists of structs, which the real reader refuses beside other columns."""
    return pa.types.is_fixed_size_list(t) and pa.types.is_struct(t.value_type)


VALUES = {
    name: t
    for name, t in arrays.TYPES.items()
    if not unread(t) and not pa.types.is_null(t) and t not in (pa.string_view(), pa.binary_view())
}

# Rows of deleted keys are null here although members and items may not be.
VALUES |= {
    "members_not_null": pa.struct([pa.field("a", pa.int32(), False), pa.field("b", pa.utf8(), False)]),
    "items_not_null": pa.list_(pa.field("item", pa.int32(), False)),
}


@pytest.mark.parametrize("version", VERSIONS if SOAK else ["any"])
@pytest.mark.parametrize("part", range(4))
def test_value_types(part, version, native, theirs, tmp_path, seed):
    rng = rng_for(seed, "values", part, version)
    version = rng.choice(VERSIONS) if version == "any" else version
    names = sorted(VALUES)[part::4]
    fields = []
    for name in names:
        t = VALUES[name]
        try:
            column = arrays.random_array(rng, t, 40)
            theirs.run(TRY, data=pa.table({"c": column}), uri=str(tmp_path / name), version=version)
        except SideError:  # a type that the real packages do not store in this version
            continue
        for pattern in rng.sample(sorted(arrays.NULLS), 2):
            fields.append(pa.field(f"{name}_{pattern}".replace(".", "_"), t, metadata={"nulls": pattern}))
    assert len(fields) > 5
    shard = Shard(native, theirs, tmp_path / "t", [pa.int64()], fields, version, rng)
    for _ in range(2):
        shard.add_generation(shard.fresh(rng.randint(10, 60)))
    shard.check_scan()


@pytest.mark.parametrize("version", VERSIONS if SOAK else ["any"])
@pytest.mark.parametrize("t", [pa.int64(), pa.utf8(), pa.float64(), pa.date32(), pa.bool_()], ids=str)
def test_maintained_btree(t, version, native, theirs, tmp_path, seed):
    rng = rng_for(seed, "btree", str(t), version)
    version = rng.choice(VERSIONS) if version == "any" else version
    shard = Shard(native, theirs, tmp_path / "t", [pa.int64()], [pa.field("n", t), pa.field("text", pa.utf8())], version, rng, indexed="n")
    shard.add_generation(shard.fresh(60))
    shard.add_generation(shard.fresh(40))
    shard.check_scan()
    values = [row["n"] for _, row in shard.seen.values() if row is not None and row["n"] is not None]
    values = [v for v in values if v == v]
    for value in rng.sample(values, min(3, len(values))):
        literal = f"'{value}'" if isinstance(value, str) else f"date '{value}'" if pa.types.is_date(t) else str(value)
        if isinstance(value, str):
            literal = "'" + value.replace("'", "''") + "'"
        elif value in (float("inf"), -float("inf")):
            continue
        shard.check_scan(f"n = {literal}", lambda row: row["n"] == value)
    shard.check_scan("n is null", lambda row: row["n"] is None)
    details = theirs.run(
        "return [(i['name'], i['type'], i['fields']) for i in lance.dataset(path).list_indices()]",
        path=shard.directory(shard.generations[0][1]),
    )
    assert details == [("by_n", "BTree", ["n"])]


def test_many_rows(native, theirs, tmp_path, seed):
    """Several pages of the key index and of a BTree."""
    rng = rng_for(seed, "many")
    shard = Shard(native, theirs, tmp_path / "t", [pa.int64()], [pa.field("n", pa.int64())], "2.2", rng, indexed="n", spread=60_000)
    rows = 30_000
    fresh = pa.table(
        [
            pa.array([rng.randrange(25_000) for _ in range(rows)], pa.int64()),
            pa.array([rng.randrange(1 << 40) for _ in range(rows)], pa.int64()),
            pa.array([False] * rows),
        ],
        names=["k0", "n", "_tombstone"],
    )
    written = shard.add_generation(fresh, chunk=1000)
    assert written[2:] == (rows, 8 * rows)
    shard.check_scan()
    some = rng.sample(sorted(shard.seen), 20)
    shard.seen = {k: shard.seen[k] for k in some}
    shard.check_lookup(absent=0)
    data, lookup = theirs.run(SIDECAR, path=shard.directory(written[0]) + "/_pk_index")
    assert data[1:] == (None, 0, 3) and lookup[1:] == ({b"range_partitioned": b"false", b"batch_size": b"8192"}, 0, 3)
    assert data[0].schema == pa.schema([pa.field("values", pa.int64()), pa.field("ids", pa.uint64(), False)])
    assert data[0]["values"].to_pylist() == sorted(fresh["k0"].to_pylist())
    assert sorted(data[0]["ids"].to_pylist()) == list(range(rows))
    assert lookup[0]["page_idx"].to_pylist() == [0, 1, 2, 3]
    assert lookup[0]["min"].to_pylist() == [data[0]["values"][i].as_py() for i in range(0, rows, 8192)]
    assert lookup[0]["max"].to_pylist()[-1] == data[0]["values"][-1].as_py()


def test_generations_of_the_real_writer(native, theirs, tmp_path, seed):
    """Our keys of what it flushed; and the parts that both write are the same."""
    rng = rng_for(seed, "theirs")
    for number, types in enumerate([[pa.int64()], [pa.utf8()], [pa.int32(), pa.binary()], [pa.uint16(), pa.large_utf8()]]):
        shard = Shard(native, theirs, tmp_path / str(number), types, PLAIN, rng.choice(VERSIONS), rng)
        calls, rows = [], []
        for _ in range(3):
            fresh = shard.fresh(rng.randint(1, 40), tombstones=0)
            calls.append(("put", pa.table(fresh.columns[:-1], schema=shard.schema)))
            rows.append(fresh)
            dead = shard.fresh(rng.randint(1, 5), tombstones=1)
            calls.append(("delete", dead.select([f.name for f in shard.keys])))
            rows.append(dead)
        theirs.run(WRITE, uri=shard.uri, shard=SHARD, calls=calls)
        rows = pa.concat_tables(rows)
        (directory,) = pathlib.Path(shard.directory("")).glob("*_gen_1")
        newest = {}
        for i, row in enumerate(rows.to_pylist()):
            newest[b"".join(encode(f.type, row[f.name]) for f in shard.keys)] = i
        names = [f.name for f in shard.keys]
        assert native._generation_keys(str(directory), names) == newest
        before = theirs.run(SIDECAR, path=str(directory / "_pk_index"))
        shutil.move(directory / "_pk_index", tmp_path / f"moved{number}")
        assert native._generation_keys(str(directory), names) == newest
        shutil.move(tmp_path / f"moved{number}", directory / "_pk_index")

        written = shard.add_generation(rows)
        mine = pathlib.Path(shard.directory(written[0]))
        assert native._generation_keys(str(mine), names) == newest
        assert (mine / "bloom_filter.bin").read_bytes() == (directory / "bloom_filter.bin").read_bytes()
        after = theirs.run(SIDECAR, path=str(mine / "_pk_index"))
        assert after[1] == before[1]
        assert after[0][1:] == before[0][1:]
        assert after[0][0]["values"] == before[0][0]["values"]
        pairs = [list(zip(t["values"].to_pylist(), t["ids"].to_pylist())) for t in (after[0][0], before[0][0])]
        assert sorted(pairs[0]) == sorted(pairs[1])
        schemas = [theirs.run("return lance.dataset(path).schema", path=str(p)) for p in (mine, directory)]
        assert schemas[0].equals(schemas[1], check_metadata=True)


EXPECTED = json.loads((GOLDEN / "expected.json").read_text())


@pytest.mark.parametrize("case", ["flushed", "bucket_indexed"])
def test_golden_generations(case, native, tmp_path):
    tree = tmp_path / case
    shutil.copytree(GOLDEN / case, tree)
    seen = 0
    for shard, state in EXPECTED[case]["shards"].items():
        for sstable in state["sstables"]:
            directory = tree / "_mem_wal" / shard / sstable["path"]
            keys = native._generation_keys(str(directory), ["id"])
            with_index = dict(keys)
            shutil.rmtree(directory / "_pk_index")
            assert native._generation_keys(str(directory), ["id"]) == with_index
            for row in EXPECTED[case]["snapshot_scan"]:
                if row["_memtable_gen"] == sstable["generation"] and case == "flushed":
                    assert encode(pa.int64(), row["id"]) in keys
                    seen += 1
            assert len(set(keys.values())) == len(keys) > 0
    if case == "flushed":
        first, second = sorted((tree / "_mem_wal").glob("*/*_gen_*"), key=lambda p: p.name[-1])
        # Key 3 came again as row 2; the second generation deletes key 1.
        assert native._generation_keys(str(first), ["id"]) == {encode(pa.int64(), 3): 2, encode(pa.int64(), 4): 1}
        assert encode(pa.int64(), 1) in native._generation_keys(str(second), ["id"])
        assert seen == 4


def test_new_directory_each_time(native, theirs, tmp_path, seed):
    shard = Shard(native, theirs, tmp_path / "t", [pa.int64()], PLAIN, "2.2", rng_for(seed, "names"))
    rows = shard.fresh(5)
    names = {native._write_generation(shard.uri, str(uuid.UUID(SHARD)), 1, rows, [])[0] for _ in range(5)}
    assert len(names) == 5
