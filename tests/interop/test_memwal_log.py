"""The log of the LSM write path: the real packages replay what we appended, and we read what they did.

Also manifests of shards, the MemWAL index, sharding and recorded progress, in both directions.
"""

import json
import pathlib
import random
import shutil
import subprocess
import sys
import zlib

import arrays
import pyarrow as pa
import pytest
from same import key as exact
from testing import SOAK
from upstream import Ours, SideError

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
GOLDEN = ROOT / "tests" / "golden" / "memwal"
TOOL = ROOT / "build" / "release" / "tools" / "glaive"
SHARD = "aa48498d-ac91-59e2-8452-69f46010ace2"
PRIMARY_KEY = "lance-schema:unenforced-primary-key"

MAKE = """
lance.write_dataset(data, uri, data_storage_version=version)
if spec is not None:
    lance.dataset(uri).initialize_mem_wal(**spec)
"""
# All rows, and the state of the memtable that the replay made.
REPLAY = """
writer = lance.dataset(uri).mem_wal_writer(shard)
rows = writer.lsm_scanner().to_table()
count = writer.memtable_stats()["row_count"]
del writer
return rows, count
"""
# Left open, so that the rows stay in the log.
WRITE = """
writer = lance.dataset(uri).mem_wal_writer(shard, max_wal_flush_interval_ms=5)
for kind, rows in calls:
    getattr(writer, kind)(rows)
del writer
"""
DETAILS = "return lance.dataset(uri).mem_wal_index_details()"


@pytest.fixture(scope="module")
def native(ours):
    if not isinstance(ours, Ours):
        pytest.skip("our own log is what is tested")
    import glaive._glaive

    return glaive._glaive


def rng_for(seed, *parts):
    return random.Random(zlib.crc32(repr((seed, parts)).encode()))


def table(rows, fields=()):
    """Rows (id, text) of the plain table."""
    return pa.table([[r[0] for r in rows], [r[1] for r in rows]], schema=PLAIN)


KEY = pa.field("id", pa.int64(), False, {PRIMARY_KEY: "true"})
PLAIN = pa.schema([KEY, pa.field("text", pa.utf8())])


def make(theirs, uri, rows=((1, "base"), (2, "base"), (3, "base")), version="2.2", spec=None):
    theirs.run(MAKE, data=table(rows), uri=str(uri), version=version, spec=spec or {"unsharded": True})
    return str(uri)


@pytest.mark.parametrize("case", ["wal_only", "flushed", "bucket_indexed"])
def test_golden_trees_read_exactly(native, case):
    expected = json.loads((GOLDEN / "expected.json").read_text())[case]
    uri = str(GOLDEN / case)
    for shard, wanted in expected["shards"].items():
        manifest = native._shard_manifest(uri, shard)
        for name, value in wanted.items():
            if name == "sstables":
                assert manifest[name] == [(s["generation"], s["path"]) for s in value]
            elif name != "wal":
                assert manifest[name] == value, name
        entries = native._read_log(uri, shard, 1)
        assert [e[0] for e in entries] == [w["position"] for w in wanted["wal"]]
        for (position, epoch, generation, sentinel, rows), w in zip(entries, wanted["wal"]):
            assert str(epoch) == w["metadata"]["writer_epoch"]
            assert w["metadata"].get("generation") == (None if generation is None else str(generation))
            assert sentinel == (w["metadata"].get("fence_sentinel") == "true")
            assert rows.num_rows == w["rows"]
            assert rows.column_names[-1] == "_tombstone"


def random_calls(rng, schema, count, spread=12):
    """Puts of random rows and deletes, and the rows that must be seen afterwards (key -> row or None)."""
    calls, seen = [], {}
    for _ in range(count):
        n = rng.randint(1, 6)
        ids = pa.array([rng.randrange(spread) for _ in range(n)], pa.int64())
        if rng.random() < 0.3:
            calls.append(("delete", pa.table([ids], schema=pa.schema([schema.field(0)]))))
            seen.update((i, None) for i in ids.to_pylist())
            continue
        columns = [ids] + [arrays.random_array(rng, f.type, n, "some") for f in schema if f.name != "id"]
        rows = pa.table(columns, schema=schema)
        calls.append(("put", rows))
        seen.update((row["id"], row) for row in rows.to_pylist())
    return calls, seen


VALUES = [
    [pa.field("text", pa.utf8()), pa.field("v", pa.list_(pa.float32(), 3))],
    [pa.field("s", pa.struct([("a", pa.int32()), ("b", pa.list_(pa.utf8()))])), pa.field("m", pa.map_(pa.utf8(), pa.int32()))],
    [pa.field("l", pa.list_(pa.struct([("x", pa.float64())]))), pa.field("d", pa.decimal128(9, 2)), pa.field("b", pa.bool_())],
    [pa.field("t", pa.timestamp("us", "UTC")), pa.field("y", pa.large_binary()), pa.field("z", pa.large_list(pa.int16()))],
]


@pytest.mark.parametrize("values", range(len(VALUES)))
@pytest.mark.parametrize("generation", [None, 1])
def test_they_replay_what_we_append(native, theirs, tmp_path, seed, values, generation):
    rng = rng_for(seed, "ours", values, generation)
    schema = pa.schema([KEY, *VALUES[values]])
    for round in range(8 if SOAK else 1):
        uri = str(tmp_path / f"t{round}.lance")
        theirs.run(MAKE, data=schema.empty_table(), uri=uri, version="2.2", spec={"unsharded": True})
        calls, seen = random_calls(rng, schema, rng.randint(1, 8))
        epoch, positions = native._write_log(uri, SHARD, calls, generation, rng.random() < 0.5)
        assert (epoch, positions) == (1, list(range(1, len(calls) + 1)))
        rows, count = theirs.run(REPLAY, uri=uri, shard=SHARD)
        assert count == sum(len(c[1]) for c in calls)
        found = {row["id"]: exact(row) for row in rows.to_pylist()}
        assert found == {k: exact(row) for k, row in seen.items() if row is not None}


@pytest.mark.parametrize("values", range(len(VALUES)))
def test_we_read_what_they_append(native, theirs, tmp_path, seed, values):
    rng = rng_for(seed, "theirs", values)
    schema = pa.schema([KEY, *VALUES[values]])
    for round in range(8 if SOAK else 1):
        uri = str(tmp_path / f"t{round}.lance")
        theirs.run(MAKE, data=schema.empty_table(), uri=uri, version="2.2", spec={"unsharded": True})
        calls, _ = random_calls(rng, schema, rng.randint(1, 6))
        theirs.run(WRITE, uri=uri, shard=SHARD, calls=calls)
        entries = native._read_log(uri, SHARD)
        assert [e[:4] for e in entries] == [(i + 1, 1, 1, False) for i in range(len(calls))]
        for entry, (kind, rows) in zip(entries, calls):
            got = entry[4]
            assert got.column("_tombstone").to_pylist() == [kind == "delete"] * len(rows)
            got = got.drop_columns(["_tombstone"])
            if kind == "delete":
                assert got.column("id").to_pylist() == rows.column("id").to_pylist()
                assert all(got.column(name).null_count == len(rows) for name in schema.names[1:])
            else:
                assert [exact(r) for r in got.to_pylist()] == [exact(r) for r in rows.to_pylist()]


def test_writers_alternate(native, theirs, tmp_path, seed):
    rng = rng_for(seed, "alternate")
    uri = make(theirs, tmp_path / "t.lance", rows=())
    seen, epoch, position = {}, 0, 1
    for turn in range(6):
        calls, changes = random_calls(rng, PLAIN, rng.randint(1, 4))
        seen.update(changes)
        epoch += 1
        position += epoch > 1  # the sentinel
        if turn % 2 == 0:
            assert native._write_log(uri, SHARD, calls, 1) == (
                epoch, list(range(position, position + len(calls))))
        else:
            theirs.run(WRITE, uri=uri, shard=SHARD, calls=calls)
        position += len(calls)
        entries = native._read_log(uri, SHARD)
        assert len(entries) == position - 1
        assert native._shard_manifest(uri, SHARD)["writer_epoch"] == epoch
        assert [e[1] for e in entries] == sorted(e[1] for e in entries)
        assert sum(e[3] for e in entries) == epoch - 1
    rows, _ = theirs.run(REPLAY, uri=uri, shard=SHARD)
    assert {r["id"]: r for r in rows.to_pylist()} == {k: r for k, r in seen.items() if r is not None}


def test_our_claim_fences_their_writer(native, theirs, tmp_path):
    uri = make(theirs, tmp_path / "t.lance")
    theirs.run(
        """
        import builtins
        builtins.kept_writer = lance.dataset(uri).mem_wal_writer(shard, max_wal_flush_interval_ms=5)
        builtins.kept_writer.put(rows)
        """, uri=uri, shard=SHARD, rows=table([(10, "theirs")]))
    native._write_log(uri, SHARD, [("put", table([(11, "ours")]))], 1)
    with pytest.raises(SideError, match="fenced"):
        theirs.run("import builtins; builtins.kept_writer.put(rows)", rows=table([(12, "late")]))
    theirs.run("import builtins; del builtins.kept_writer")
    texts = [e[4].column("text").to_pylist() for e in native._read_log(uri, SHARD)]
    assert texts == [["theirs"], [], ["ours"]]
    rows, _ = theirs.run(REPLAY, uri=uri, shard=SHARD)
    assert sorted(rows.column("id").to_pylist()) == [1, 2, 3, 10, 11]


FIGHT = """
import random, sys
import pyarrow as pa
import glaive._glaive as native
uri, shard, me, attempts = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
rng, value, fenced = random.Random(me), me * 1_000_000, 0
for _ in range(attempts):
    calls = []
    for _ in range(rng.randint(1, 6)):
        value += 1
        calls.append(("put", pa.table({"id": pa.array([value], pa.int64()), "text": [str(value)]})))
    try:
        native._write_log(uri, shard, calls, 1, rng.random() < 0.3)
    except Exception as error:
        if "fenced" not in str(error).lower():
            raise
        fenced += 1
        continue
    print(*[c[1].column("id")[0].as_py() for c in calls])
print("fenced", fenced)
"""


def test_processes_fight_for_a_shard(native, theirs, tmp_path):
    """Each of several processes claims the shard again and again: what was acknowledged is there once."""
    uri = make(theirs, tmp_path / "t.lance")
    attempts = 1000 if SOAK else 12
    processes = [
        subprocess.Popen([sys.executable, "-c", FIGHT, uri, SHARD, str(i), str(attempts)], stdout=subprocess.PIPE, text=True)
        for i in range(1, 4)
    ]
    lines = [line.split() for p in processes for line in p.communicate()[0].splitlines()]
    assert [p.returncode for p in processes] == [0, 0, 0]
    acknowledged = [int(v) for line in lines if line[0] != "fenced" for v in line]
    found = [i for e in native._read_log(uri, SHARD) for i in e[4].column("id").to_pylist()]
    assert len(set(found)) == len(found)
    assert acknowledged and set(acknowledged) <= set(found)
    rows, _ = theirs.run(REPLAY.replace("(shard)", "(shard, max_memtable_rows=10_000_000)"), uri=uri, shard=SHARD)
    assert sorted(rows.column("id").to_pylist()) == sorted([1, 2, 3, *found])


def test_lancedb_replays_entries_without_generation(native, theirs, tmp_path):
    """LanceDB 0.40 embeds Lance 13, which knows no generations in the log."""
    db = str(tmp_path / "db")
    theirs.run(
        """
        d = lancedb.connect(db)
        t = d.create_table("t", data)
        t.set_unenforced_primary_key("id")
        t.set_lsm_write_spec(lancedb.LsmWriteSpec.unsharded().with_maintained_indexes([]))
        """, db=db, data=pa.table({"id": pa.array([1, 2], pa.int64()), "text": ["a", "b"]}).cast(
            pa.schema([pa.field("id", pa.int64(), False), pa.field("text", pa.utf8())])))
    uri = f"{db}/t.lance"
    rows = pa.table({"id": pa.array([2, 7], pa.int64()), "text": ["ours", "ours"]})
    native._write_log(uri, SHARD, [("put", rows)], None)
    got = theirs.run(
        """
        t = lancedb.connect(db).open_table("t")
        t.merge_insert("id").when_matched_update_all().when_not_matched_insert_all().execute(rows)
        out = t.search().to_arrow()
        t.close_lsm_writers()
        return out
        """, db=db, rows=pa.table({"id": pa.array([8], pa.int64()), "text": ["theirs"]}))
    found = dict(zip(got.column("id").to_pylist(), got.column("text").to_pylist()))
    assert found == {1: "a", 2: "ours", 7: "ours", 8: "theirs"}


def test_columns_change_between_write_and_replay(native, theirs, tmp_path):
    uri = make(theirs, tmp_path / "t.lance")
    theirs.run(WRITE, uri=uri, shard=SHARD, calls=[("put", table([(5, "five")]))])
    theirs.run(
        """
        d = lance.dataset(uri)
        d.alter_columns({"path": "text", "name": "renamed"})
        d.add_columns(pa.schema([pa.field("text", pa.int32())]))
        """, uri=uri)
    ((_, _, _, _, rows),) = native._read_log(uri, SHARD)
    assert rows.drop_columns(["_tombstone"]).to_pylist() == [{"id": 5, "renamed": "five", "text": None}]


KINDS = {
    "manual": ({}, ("manual",)),
    "unsharded": ({"unsharded": True}, ("unsharded",)),
    "bucket": ({"bucket_column": "id", "num_buckets": 4}, ("bucket", "id", 4)),
    "identity": ({"identity_column": "text"}, ("identity", "text")),
    "nothing": ({"unsharded": True, "maintained_indexes": []}, ("unsharded", "", 0, [])),
}


@pytest.mark.parametrize("kind", KINDS)
def test_the_index_is_the_same(native, theirs, tmp_path, kind):
    spec, arguments = KINDS[kind]
    upstreams = make(theirs, tmp_path / "theirs.lance", spec=None)
    if kind != "unsharded":
        shutil.rmtree(upstreams)
        theirs.run(MAKE, data=table([(1, "a")]), uri=upstreams, version="2.2", spec=spec)
    ours = str(tmp_path / "ours.lance")
    theirs.run(MAKE, data=table([(1, "a")]), uri=ours, version="2.2", spec=None)
    details = native._mem_wal_index(ours, *arguments)
    assert details == native._mem_wal_index(upstreams, "read")
    assert theirs.run(DETAILS, uri=ours) == theirs.run(DETAILS, uri=upstreams)
    with pytest.raises(SideError, match="already initialized"):
        theirs.run("lance.dataset(uri).initialize_mem_wal()", uri=ours)
    # A writer of theirs works on it, and they drop it.
    theirs.run(WRITE, uri=ours, shard=SHARD, calls=[("put", table([(9, "x")]))])
    assert len(native._read_log(ours, SHARD)) == 1
    theirs.run("""lance.dataset(uri).drop_index("__lance_mem_wal")""", uri=ours)
    assert native._mem_wal_index(ours, "read") is None
    # And we theirs.
    assert native._mem_wal_index(upstreams, "none") is None
    assert theirs.run(DETAILS, uri=upstreams) is None


BUCKET_TYPES = [
    pa.bool_(), pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64(),
    pa.float32(), pa.float64(), pa.date32(), pa.time32("ms"), pa.time64("us"), pa.timestamp("us"), pa.utf8(),
    pa.large_utf8(),
]


@pytest.mark.parametrize("t", BUCKET_TYPES, ids=str)
def test_rows_go_to_the_same_buckets(native, theirs, tmp_path, seed, t):
    rng = rng_for(seed, "bucket", str(t))
    schema = pa.schema([KEY, pa.field("x", t)])
    rows = pa.table([list(range(400)), arrays.random_array(rng, t, 400, "some")], schema=schema)
    uri = str(tmp_path / "t.lance")
    spec = {"bucket_column": "x", "num_buckets": rng.randint(2, 1024)}
    theirs.run(MAKE, data=schema.empty_table(), uri=uri, version="2.2", spec=spec)
    wanted = theirs.run(
        """
        from lance.mem_wal import evaluate_sharding_spec
        d = lance.dataset(uri)
        return evaluate_sharding_spec(batch, d.mem_wal_index_details()["sharding_specs"][0], d.lance_schema)
        """, uri=uri, batch=rows.combine_chunks().to_batches()[0])
    values, shards = native._route_rows(uri, rows)
    assert values.equals(wanted)
    assert len(set(zip(values.column(0).to_pylist(), shards))) == len(set(shards))


def test_progress_only_goes_up(native, theirs, tmp_path):
    uri = make(theirs, tmp_path / "t.lance")
    other = "4a388480-a25b-59a8-b058-24217f980256"
    mark = """
    from lance.mem_wal import CompactedSsTable
    d = lance.dataset(uri)
    d.merge_insert("id").when_matched_update_all().when_not_matched_insert_all().mark_sstables_as_compacted(
        [CompactedSsTable(shard, generation)]).execute(rows)
    """
    before = native._mem_wal_index(uri, "read")
    native._commit_markers(uri, [(SHARD, 2), (other, 1)])
    assert native._mem_wal_index(uri, "read").startswith(before[:4])
    for stale in (1, 2):
        with pytest.raises(SideError, match="Stale SSTable compaction"):
            theirs.run(mark, uri=uri, shard=SHARD, generation=stale, rows=table([(1, "x")]))
        with pytest.raises(Exception, match="Stale SSTable compaction"):
            native._commit_markers(uri, [(SHARD, stale)])
    theirs.run(mark, uri=uri, shard=SHARD, generation=3, rows=table([(1, "x")]))
    with pytest.raises(Exception, match="Stale SSTable compaction"):
        native._commit_markers(uri, [(SHARD, 3)])
    native._commit_markers(uri, [(SHARD, 4)])
    with pytest.raises(Exception, match="Duplicate shard"):
        native._commit_markers(uri, [(SHARD, 9), (SHARD, 10)])
    theirs.run("""lance.dataset(uri).drop_index("__lance_mem_wal")""", uri=uri)
    with pytest.raises(Exception, match="does not exist"):
        native._commit_markers(uri, [(SHARD, 9)])


def test_damaged_logs_are_named(native, theirs, tmp_path):
    uri = make(theirs, tmp_path / "t.lance")
    native._write_log(uri, SHARD, [("put", table([(i, "x")])) for i in range(4)], 1)
    entry = next(pathlib.Path(uri).glob("_mem_wal/*/wal/0100*.arrow"))  # position 2
    whole = entry.read_bytes()
    for damaged in (b"", whole[: len(whole) // 2], whole[:4] + b"\xff\xff\xff\x7f" + whole[8:]):
        entry.write_bytes(damaged)
        with pytest.raises(Exception, match=entry.name):
            native._read_log(uri, SHARD)
        with pytest.raises(SideError):
            theirs.run(REPLAY, uri=uri, shard=SHARD)
    entry.write_bytes(whole)
    assert len(native._read_log(uri, SHARD)) == 4 + 3  # sentinels of their attempts


@pytest.mark.skipif(not TOOL.exists(), reason="the tool is not built")
def test_dump(native, theirs, tmp_path):
    uri = make(theirs, tmp_path / "t.lance")
    theirs.run(WRITE, uri=uri, shard=SHARD, calls=[("put", table([(5, "five")]))])

    def dump(pattern):
        path = next(pathlib.Path(uri).glob(pattern))
        return subprocess.run([TOOL, "dump", path], capture_output=True, text=True)

    entry = dump("_mem_wal/*/wal/1*.arrow")
    assert entry.returncode == 0
    for text in ("log entry, position 1", "writer epoch 1, generation 1", "batch 0: 1 rows", '"five"', "lance:field_id"):
        assert text in entry.stdout
    manifest = dump("_mem_wal/*/manifest/1*.binpb")
    assert manifest.returncode == 0
    for text in (SHARD, "version 1, writer epoch 1, current generation 1", "ACTIVE"):
        assert text in manifest.stdout
    shown = dump("_versions/*.manifest")
    assert shown.returncode == 0
    for text in ("written by lance 14.0.2", "(id 0, below -1)", "index __lance_mem_wal", "transaction "):
        assert text in shown.stdout
    broken = tmp_path / "x.manifest"
    broken.write_bytes(b"nonsense")
    refused = subprocess.run([TOOL, "dump", broken], capture_output=True, text=True)
    assert refused.returncode == 1 and "Corruption" in refused.stderr and "x.manifest" in refused.stderr
    broken = tmp_path / "x.arrow"
    broken.write_bytes(b"nonsense")
    refused = subprocess.run([TOOL, "dump", broken], capture_output=True, text=True)
    assert refused.returncode == 1 and "Corruption" in refused.stderr
