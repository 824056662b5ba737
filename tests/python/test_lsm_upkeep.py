"""Generations reach the base table by themselves, and what is merged goes away."""

import pathlib
import random
import time

import pyarrow as pa
from testing import SEED

import glaive
from glaive import LsmWriteSpec

SCHEMA = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False, metadata={"lance-schema:unenforced-primary-key": "true"}),
        pa.field("text", pa.utf8()),
    ]
)


def make(path, **options):
    table = glaive.connect(path, storage_options=options).create_table("t", schema=SCHEMA)
    table.set_lsm_write_spec(LsmWriteSpec.unsharded().with_writer_config_defaults({"max_memtable_rows": "100"}))
    return table


def upsert(table, rows):
    data = pa.Table.from_pylist([{"id": k, "text": v} for k, v in rows.items()], schema=SCHEMA)
    table.merge_insert("id").when_matched_update_all().when_not_matched_insert_all().execute(data)


def contents(query):
    rows = query.limit(100_000).to_arrow().to_pylist()
    found = {r["id"]: r["text"] for r in rows}
    assert len(found) == len(rows)
    return found


def waiting(table):
    return len(table.get_lsm_stats()["buckets"][0]["generations"])


def wait_for(condition, seconds=30):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


def test_bounded_while_nobody_calls_anything(tmp_path):
    table = make(tmp_path, lsm_upkeep_collect_grace="300ms")
    rng = random.Random(SEED)
    model = {}
    for step in range(120):
        rows = {rng.randrange(500): f"{step}" for _ in range(25)}
        upsert(table, rows)
        model.update(rows)
        if step % 10 == 0:
            assert waiting(table) <= 10
    assert contents(table.search()) == model
    table.flush_lsm()
    upsert(table, {1: "last"})
    model[1] = "last"
    wait_for(lambda: waiting(table) < 4)
    shard = next((pathlib.Path(tmp_path) / "t.lance" / "_mem_wal").iterdir())
    # 30 generations were made, with a log entry per call.
    wait_for(lambda: len(list(shard.glob("*_gen_*"))) < 12 and len(list((shard / "wal").glob("*.arrow"))) < 100)
    assert contents(table.search()) == model
    assert table.checkpoint_lsm().converged
    assert contents(table.search().use_lsm(False)) == model


def test_what_an_earlier_process_left(tmp_path):
    table = make(tmp_path, lsm_upkeep="false")
    model = {}
    for step in range(5):
        rows = {k: f"{step}" for k in range(step, step + 3)}
        upsert(table, rows)
        model.update(rows)
        table.flush_lsm()
    table.close_lsm_writers()
    time.sleep(0.2)
    assert waiting(table) == 5
    assert contents(table.search().use_lsm(False)) == {}
    table = glaive.connect(tmp_path).open_table("t")
    upsert(table, {100: "new"})
    model[100] = "new"
    wait_for(lambda: waiting(table) == 0)
    assert contents(table.search()) == model
    assert 100 not in contents(table.search().use_lsm(False))
