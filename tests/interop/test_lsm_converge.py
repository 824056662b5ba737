"""Generations that the real pylance wrote, merged into the base and collected by us; markers in both directions."""

import os
import pathlib
import random
import subprocess

import pyarrow as pa
import pytest
from testing import SEED, SOAK
from upstream import SideError

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
CLI = os.environ.get("GLAIVE_CLI", str(ROOT / "build" / "release" / "tools" / "glaive"))
SHARD = "aa48498d-ac91-59e2-8452-69f46010ace2"
OTHER = "4a388480-a25b-59a8-b058-24217f980256"

CREATE = """
lance.write_dataset(data, uri, **options)
lance.dataset(uri).initialize_mem_wal(unsharded=True)
"""
# Each inner list is one writer: its rows and deletions become one generation.
WRITE = """
writer = lance.dataset(uri).mem_wal_writer(shard)
for kind, data in steps:
    (writer.put if kind == "put" else writer.delete)(data)
if close:
    writer.close()
"""
BASE = "return lance.dataset(uri).to_table().to_pylist()"
SCAN = """
from lance.mem_wal import LsmScanner, ShardSnapshot
snapshots = []
for shard, generations in shards:
    snapshot = ShardSnapshot(shard)
    for number, path in generations:
        snapshot = snapshot.with_sstable(number, path)
    snapshots.append(snapshot)
return LsmScanner.from_snapshots(lance.dataset(uri), snapshots).to_table().to_pylist()
"""
WRITER_SCAN = """
writer = lance.dataset(uri).mem_wal_writer(shard)
writer.put(data)
rows = writer.lsm_scanner().to_table().to_pylist()
writer.close()
return rows
"""
MARK = """
from lance.mem_wal import CompactedSsTable
lance.dataset(uri).merge_insert("id").when_matched_update_all().when_not_matched_insert_all() \\
    .mark_sstables_as_compacted([CompactedSsTable(shard, generation)]).execute(data)
"""


def lsm(action, uri, *arguments):
    done = subprocess.run([CLI, "lsm", action, str(uri), *arguments], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


def schema():
    key = pa.field("id", pa.int64(), nullable=False, metadata={"lance-schema:unenforced-primary-key": "true"})
    return pa.schema([key, pa.field("text", pa.utf8()), pa.field("vec", pa.list_(pa.float32(), 3)), pa.field("s", pa.struct([pa.field("x", pa.int32())]))])


def row(key, text):
    return {"id": key, "text": text, "vec": [float(key), 0.5, float(len(text))], "s": {"x": key * 2}}


def table(rows):
    return pa.Table.from_pylist(rows, schema=schema())


def unreverse(name):
    return int(name.split(".")[0][::-1], 2)


def varint(data, at):
    value = shift = 0
    while True:
        value |= (data[at] & 127) << shift
        at, shift = at + 1, shift + 7
        if data[at - 1] < 128:
            return value, at


def fields(data):
    at, found = 0, []
    while at < len(data):
        tag, at = varint(data, at)
        if tag & 7 == 0:
            value, at = varint(data, at)
        else:
            assert tag & 7 == 2
            size, at = varint(data, at)
            value, at = data[at : at + size], at + size
        found.append((tag >> 3, value))
    return found


def generations(uri, shard=SHARD):
    """Number and directory of those that the newest shard manifest names."""
    directory = pathlib.Path(uri) / "_mem_wal" / shard / "manifest"
    newest = max((p for p in directory.iterdir() if p.suffix == ".binpb"), key=lambda p: unreverse(p.name))
    entries = [dict(fields(value)) for number, value in fields(newest.read_bytes()) if number == 8]
    return sorted((entry[1], entry[2].decode()) for entry in entries)


def log(uri, shard=SHARD):
    return sorted(unreverse(p.name) for p in (pathlib.Path(uri) / "_mem_wal" / shard / "wal").iterdir() if p.suffix == ".arrow")


def by_key(rows):
    found = {r["id"]: r for r in rows}
    assert len(found) == len(rows), "a key is there twice"
    return found


def write(side, uri, model, rng, round, close=True):
    steps = []
    for _ in range(rng.randrange(1, 4)):
        if rng.random() < 0.3:
            keys = sorted({rng.randrange(30) for _ in range(rng.randrange(1, 6))})
            steps.append(("delete", pa.table({"id": pa.array(keys, pa.int64())}, schema=pa.schema([schema().field(0)]))))
            for key in keys:
                model.pop(key, None)
        else:
            rows = [row(rng.randrange(30), f"r{round}.{rng.randrange(1000)}") for _ in range(rng.randrange(1, 8))]
            steps.append(("put", table(rows)))
            model.update((r["id"], r) for r in rows)
    side.run(WRITE, uri=str(uri), shard=SHARD, steps=steps, close=close)


@pytest.mark.parametrize("seed", range(8 if SOAK else 2))
def test_their_generations(theirs, tmp_path, seed):
    rng = random.Random(SEED + seed)
    uri = tmp_path / "t.lance"
    model = {k: row(k, "base") for k in range(0, 20, 2)}
    options = {"enable_stable_row_ids": rng.random() < 0.5, "data_storage_version": rng.choice(["2.1", "2.2"])}
    theirs.run(CREATE, uri=str(uri), data=table(list(model.values())), options=options)
    for round in range(4):
        write(theirs, uri, model, rng, round)
    known = generations(uri)
    assert [number for number, _ in known] == [1, 2, 3, 4]

    # Half-way: two are in the base.
    assert "2 generations merged, 2 left" in lsm("compact", uri, "--max-generations", "2")
    newer = [g for g in known if g[0] > 2]
    assert by_key(theirs.run(SCAN, uri=str(uri), shards=[(SHARD, newer)])) == model
    assert "generation 3" in lsm("stats", uri) and "generation 2" not in lsm("stats", uri)
    assert "removed 2 generations" in lsm("collect", uri, "--grace", "0s")
    assert generations(uri) == newer
    assert by_key(theirs.run(SCAN, uri=str(uri), shards=[(SHARD, newer)])) == model

    # All of it.
    assert "2 generations merged, 0 left" in lsm("compact", uri)
    assert by_key(theirs.run(BASE, uri=str(uri))) == model
    lsm("collect", uri, "--grace", "0s")
    assert generations(uri) == []
    assert [p.name for p in (uri / "_mem_wal" / SHARD).iterdir() if "_gen_" in p.name] == []

    # Their writer goes on where it was, with what is left of log and manifests.
    positions = log(uri)
    model[5] = row(5, "again")
    assert by_key(theirs.run(WRITER_SCAN, uri=str(uri), shard=SHARD, data=table([model[5]]))) == model
    assert log(uri)[: len(positions)] == positions and log(uri)[len(positions)] == positions[-1] + 1
    assert [number for number, _ in generations(uri)] == [5]
    assert "1 generations merged, 0 left" in lsm("compact", uri)
    assert by_key(theirs.run(BASE, uri=str(uri))) == model
    before = theirs.run("return lance.dataset(uri).version", uri=str(uri))
    assert "converged in 0 passes" in lsm("checkpoint", uri)
    assert theirs.run("return lance.dataset(uri).version", uri=str(uri)) == before


def test_many_manifests_are_pruned(theirs, tmp_path):
    uri = tmp_path / "t.lance"
    model = {1: row(1, "base")}
    theirs.run(CREATE, uri=str(uri), data=table(list(model.values())), options={})
    rng = random.Random(SEED)
    for round in range(14):
        write(theirs, uri, model, rng, round)
    lsm("compact", uri)
    assert " 0 manifests" not in lsm("collect", uri, "--grace", "0s")
    manifests = sorted(unreverse(p.name) for p in (uri / "_mem_wal" / SHARD / "manifest").glob("*.binpb"))
    assert manifests[0] > 1 and manifests == list(range(manifests[0], manifests[-1] + 1))
    assert len(log(uri)) < log(uri)[-1]
    (uri / "_mem_wal" / SHARD / "compaction.lease").write_text('{"holder":"x","expires_ms":1}')
    model[77] = row(77, "later")
    assert by_key(theirs.run(WRITER_SCAN, uri=str(uri), shard=SHARD, data=table([model[77]]))) == model
    lsm("checkpoint", uri)
    assert by_key(theirs.run(BASE, uri=str(uri))) == model


def test_markers_in_both_directions(theirs, tmp_path):
    uri = tmp_path / "t.lance"
    model = {k: row(k, "base") for k in range(3)}
    theirs.run(CREATE, uri=str(uri), data=table(list(model.values())), options={})
    for round in range(3):
        theirs.run(WRITE, uri=str(uri), shard=SHARD, steps=[("put", table([row(round, f"new{round}")]))], close=True)
    # They merge the first, we the second, they see ours.
    theirs.run(MARK, uri=str(uri), shard=SHARD, generation=1, data=table([row(0, "new0")]))
    assert "1 generations merged, 1 left" in lsm("compact", uri, "--max-generations", "1")
    with pytest.raises(SideError, match="proposed generation 2 is not greater than the recorded generation 2"):
        theirs.run(MARK, uri=str(uri), shard=SHARD, generation=2, data=table([row(9, "never")]))
    theirs.run(MARK, uri=str(uri), shard=OTHER, generation=1, data=table([]))
    theirs.run(MARK, uri=str(uri), shard=SHARD, generation=3, data=table([row(2, "new2")]))
    assert "0 generations merged, 0 left" in lsm("compact", uri)
    assert by_key(theirs.run(BASE, uri=str(uri))) == {k: row(k, f"new{k}") for k in range(3)}
    indices = theirs.run("return [(i['name'], i['type']) for i in lance.dataset(uri).list_indices()]", uri=str(uri))
    assert indices == [("__lance_mem_wal", "MemWal")]
    details = theirs.run("return lance.dataset(uri).mem_wal_index_details()", uri=str(uri))
    assert details["maintain_all_indexes"] and details["num_shards"] == 1


def test_compactors_that_race_and_die(theirs, tmp_path):
    """Several processes merge and collect the same shard and are killed at random points; a base writer appends."""
    rng = random.Random(SEED)
    uri = tmp_path / "t.lance"
    model = {k: row(k, "base") for k in range(0, 30, 3)}
    theirs.run(CREATE, uri=str(uri), data=table(list(model.values())), options={})
    for round in range(12 if SOAK else 4):
        write(theirs, uri, model, rng, round)
        running = []
        for _ in range(3):
            action = rng.choice(["compact", "compact", "collect"])
            arguments = ["--max-generations", str(rng.randrange(1, 3))] if action == "compact" else ["--grace", "0s"]
            running.append(subprocess.Popen([CLI, "lsm", action, str(uri), *arguments], stderr=subprocess.PIPE, text=True))
        key = 1000 + round
        theirs.run("lance.write_dataset(data, uri, mode='append')", uri=str(uri), data=table([row(key, "appended")]))
        model[key] = row(key, "appended")
        for process in running:
            if rng.random() < 0.5:
                try:
                    process.wait(timeout=rng.random() * 0.2)
                except subprocess.TimeoutExpired:
                    process.kill()
            errors = process.communicate(timeout=120)[1]
            assert process.returncode in (0, -9), errors
    lsm("compact", uri)
    assert by_key(theirs.run(BASE, uri=str(uri))) == model
    lsm("collect", uri, "--grace", "0s")
    assert generations(uri) == []


INDEXED = """
import numpy as np
data = pa.table({"id": pa.array(range(300), pa.int64()), "vec": pa.FixedSizeListArray.from_arrays(pa.array(np.arange(900, dtype="f4")), 3)}, schema=schema)
lance.write_dataset(data, uri)
lance.dataset(uri).create_index("vec", "IVF_FLAT", num_partitions=1, name="vec_idx")
lance.dataset(uri).initialize_mem_wal(unsharded=True)
writer = lance.dataset(uri).mem_wal_writer(shard)
writer.put(data.slice(0, 10))
writer.close()
"""


def test_generations_stay_until_indices_cover_them(theirs, tmp_path):
    """Upstream's vector search over base and generations sees base rows through the index only."""
    uri = tmp_path / "t.lance"
    key = pa.field("id", pa.int64(), nullable=False, metadata={"lance-schema:unenforced-primary-key": "true"})
    theirs.run(INDEXED, uri=str(uri), shard=SHARD, schema=pa.schema([key, pa.field("vec", pa.list_(pa.float32(), 3))]))
    assert "1 generations merged, 0 left" in lsm("compact", uri)
    assert "removed 0 generations" in lsm("collect", uri, "--grace", "0s")
    assert len(generations(uri)) == 1
    theirs.run("lance.dataset(uri).optimize.optimize_indices()", uri=str(uri))
    assert "removed 1 generations" in lsm("collect", uri, "--grace", "0s")
    assert generations(uri) == []
