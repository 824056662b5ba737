"""Shards that writers of both sides take over from one another: each replays and continues what the other left,
whether it was closed (generations) or dropped (the log alone)."""

import random
import zlib

import pytest
from testing import SOAK

SHARD = "aa48498d-ac91-59e2-8452-69f46010ace2"  # LanceDB's name for "unsharded"

CREATE = """
key = {"lance-schema:unenforced-primary-key": "true"}
schema = pa.schema([
    pa.field("id", pa.int64(), False, key), pa.field("text", pa.utf8()),
    pa.field("vector", pa.list_(pa.float32(), 4)), pa.field("st", pa.struct([pa.field("n", pa.int32())])),
])
ds = lance.write_dataset(pa.Table.from_pylist(rows, schema=schema), path, data_storage_version=storage)
ds.initialize_mem_wal(unsharded=True)
"""

# Opens a writer, looks at the rows, runs the calls, looks again, and ends.
SESSION = """
import gc
ds = lance.dataset(path)
table = lambda rows: pa.Table.from_pylist(rows, schema=ds.schema)
keys = lambda ids: pa.table({"id": pa.array(ids, pa.int64())}, schema=pa.schema([ds.schema.field("id")]))
seen = lambda: {row["id"]: row for row in writer.lsm_scanner().to_table().to_pylist()}
writer = ds.mem_wal_writer(shard, **config)
before = seen()
for kind, value in calls:
    writer.put(table(value)) if kind == "put" else writer.delete(keys(value))
after = seen()
if close:
    writer.close()
del writer
gc.collect()
return before, after
"""

# What log and manifest look like after a session.
SHAPE = """
import pathlib
shard = pathlib.Path(path) / "_mem_wal" / shard
return len(list((shard / "wal").glob("*.arrow"))), len(list(shard.glob("*_gen_*")))
"""


def make_row(rng, key, serial):
    vector = None if rng.random() < 0.2 else [float(serial), 0.5, -1.0, 2.0]
    return {"id": key, "text": f"v{serial}", "vector": vector, "st": {"n": serial % 100}}


def draw_calls(rng, serials, count):
    calls = []
    for _ in range(rng.randrange(count)):
        keys = [rng.randrange(20) for _ in range(rng.randrange(1, 6))]
        if rng.random() < 0.7:
            calls.append(("put", [make_row(rng, key, next(serials)) for key in keys]))
        else:
            calls.append(("delete", keys))
    return calls


def apply(model, calls):
    for kind, value in calls:
        if kind == "put":
            model.update((row["id"], row) for row in value)
        else:
            for key in value:
                model.pop(key, None)


def counter():
    serial = 0
    while True:
        yield serial
        serial += 1


@pytest.mark.parametrize("number", range(40 if SOAK else 2))
def test_writers_take_turns(number, sides, seed, tmp_path):
    rng = random.Random(zlib.crc32(repr((seed, "turns", number)).encode()))
    serials = counter()
    path = str(tmp_path / "t.lance")
    rows = [make_row(rng, key, next(serials)) for key in range(5)]
    # One bound for all: a log written under a larger one cannot be opened by pylance.
    max_rows = rng.choice([8, 100_000])
    creator = rng.choice(["ours", "theirs"])
    sides[creator].run(CREATE, path=path, rows=rows, storage=rng.choice(["2.1", "2.2"]))
    model = {row["id"]: row for row in rows}
    story = []
    for turn in range(8):
        side = ["ours", "theirs"][turn % 2] if rng.random() < 0.8 else rng.choice(["ours", "theirs"])
        calls = draw_calls(rng, serials, 6)
        close = rng.random() < 0.4
        config = {"max_wal_flush_interval_ms": 5, "max_memtable_rows": max_rows}
        if sides[side].name == "ours":
            config["durability"] = rng.choice(["fsync", "os"])
            config["write_generation"] = rng.random() < 0.7
        story.append((side, close, config, calls))
        before, after = sides[side].run(SESSION, path=path, shard=SHARD, config=config, calls=calls, close=close)
        assert before == model, story
        apply(model, calls)
        # Scans of pylance miss a memtable while it is being flushed.
        if sides[side].name == "ours" or max_rows > 100:
            assert after == model, story


def test_each_side_reads_the_log_alone(sides, tmp_path):
    """No generation at all: every session replays the whole log."""
    for first, second in [("ours", "theirs"), ("theirs", "ours")]:
        path = str(tmp_path / f"{first}.lance")
        sides[first].run(CREATE, path=path, rows=[], storage="2.2")
        rng = random.Random(7)
        serials = counter()
        model = {}
        for side in [first, second, first, second]:
            calls = [("put", [make_row(rng, key, next(serials)) for key in (1, 2, 2, 3 + len(model))]), ("delete", [2])]
            before, after = sides[side].run(
                SESSION, path=path, shard=SHARD, config={"max_wal_flush_interval_ms": 5}, calls=calls, close=False
            )
            assert before == model
            apply(model, calls)
            assert after == model
        entries, generations = sides["ours"].run(SHAPE, path=path, shard=SHARD)
        assert generations == 0
        assert entries == 4 * 2 + 3  # a sentinel for each but the first


# LanceDB 0.40 writes through the same log.
LANCEDB_SESSION = """
import datetime
name = path.rsplit("/", 1)[1].removesuffix(".lance")
db = lancedb.connect(path.rsplit("/", 1)[0], read_consistency_interval=datetime.timedelta(0))
table = db.open_table(name)
new = pa.Table.from_pylist(rows, schema=table.schema)
table.merge_insert("id").when_matched_update_all().when_not_matched_insert_all().execute(new)
seen = {row["id"]: row for row in table.search().limit(1000).to_arrow().to_pylist()}
table.close_lsm_writers() if close else None
return seen
"""

LANCEDB_CREATE = """
db = lancedb.connect(path.rsplit("/", 1)[0])
schema = pa.schema([pa.field("id", pa.int64(), False), pa.field("text", pa.utf8())])
table = db.create_table(path.rsplit("/", 1)[1].removesuffix(".lance"), schema=schema)
table.set_unenforced_primary_key("id")
table.set_lsm_write_spec(lancedb.LsmWriteSpec.unsharded())
"""


def test_lancedb_goes_on_with_entries_without_generation(sides, tmp_path):
    path = str(tmp_path / "t.lance")
    sides["theirs"].run(LANCEDB_CREATE, path=path)
    config = {"write_generation": False}
    model = {}
    for turn in range(4):
        calls = [
            ("put", [{"id": key, "text": f"ours {turn}"} for key in (turn, turn + 1, 50)]),
            ("delete", [turn - 1]),
        ]
        before, after = sides["ours"].run(
            SESSION, path=path, shard=SHARD, config=config, calls=calls, close=turn == 2
        )
        assert before == model, turn
        apply(model, calls)
        assert after == model, turn
        rows = [{"id": key, "text": f"theirs {turn}"} for key in (turn, 60 + turn)]
        seen = sides["theirs"].run(LANCEDB_SESSION, path=path, rows=rows, close=turn > 0)
        apply(model, [("put", rows)])
        assert seen == model, turn
