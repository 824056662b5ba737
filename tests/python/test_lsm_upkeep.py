"""Upserts with nobody calling maintenance: generations, log, memory and look-up time stay within bounds."""

import os
import pathlib
import random
import statistics
import time

import glaive
import glaive.maintenance
import numpy as np
import pyarrow as pa
from glaive import LsmWriteSpec
from testing import SEED, SOAK

SCHEMA = pa.schema(
    [pa.field("id", pa.int64(), nullable=False), pa.field("n", pa.int64()), pa.field("body", pa.binary())]
)
SECONDS = 600 if SOAK else 6
KEYS = 20_000
UNFLUSHED = 16 << 20  # puts wait rather than let memtables, and the log behind them, pass it
BODY = np.random.default_rng(1).integers(0, 256, 400, dtype=np.uint8).tobytes()


def resident():
    with open("/proc/self/statm") as f:
        return int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_by_itself(tmp_path):
    rng = random.Random(SEED)
    options = {"lsm_upkeep_max_generations": "4", "lsm_upkeep_max_wait": "1s", "lsm_upkeep_collect_grace": "500ms", "auto_maintenance_retention": "1s"}
    table = glaive.connect(tmp_path, storage_options=options).create_table("t", schema=SCHEMA)
    table.set_unenforced_primary_key("id")
    config = {"max_memtable_rows": "2000", "max_memtable_size": str(4 << 20), "max_unflushed_memtable_bytes": str(UNFLUSHED), "durability": "os"}
    table.set_lsm_write_spec(LsmWriteSpec.unsharded().with_writer_config_defaults(config))
    merge = table.merge_insert("id").when_matched_update_all().when_not_matched_insert_all()
    newest = {}
    generations, entries, lookups, memory = [], [], [], []
    began = time.monotonic()
    step = 0
    while time.monotonic() - began < SECONDS or step < 60:  # a slow machine makes fewer
        step += 1
        ids = rng.sample(range(KEYS), 200)
        merge.execute(pa.table({"id": pa.array(ids, pa.int64()), "n": pa.array([step] * 200, pa.int64()), "body": [BODY] * 200}, schema=SCHEMA))
        newest.update(dict.fromkeys(ids, step))
        if step % 10 == 0:
            key = rng.choice(ids)
            clock = time.perf_counter()
            (found,) = table.search().where(f"id = {key}").limit(1).to_list()
            lookups.append(time.perf_counter() - clock)
            assert found["n"] == newest[key]
        if step % 50 == 0:
            (bucket,) = table.get_lsm_stats()["buckets"]
            generations.append(len(bucket["generations"]))
            entries.append(bucket["log_bytes"])
            memory.append(resident())
        if step % 500 == 0 or step == 30:
            assert table.count_rows() == len(newest)
    # Flushes wait for upkeep rather than pass this bound.
    assert max(generations) <= 9, generations
    assert max(entries) <= 1.5 * UNFLUSHED, entries
    assert glaive.maintenance.wait_for_maintenance(60)
    got = {r["id"]: r["n"] for r in table.search().select(["id", "n"]).limit(None).to_list()}
    assert got == newest
    if SOAK:
        third = len(lookups) // 3
        assert statistics.median(lookups[-third:]) < 10 * statistics.median(lookups[:third]) + 1e-3
        assert max(memory[len(memory) // 2 :]) < 2 * max(memory[: len(memory) // 2]) + (256 << 20)
    table.checkpoint_lsm()
    (bucket,) = table.get_lsm_stats()["buckets"]
    assert bucket["generations"] == []
    shard = next((pathlib.Path(tmp_path) / "t.lance" / "_mem_wal").iterdir())
    until = time.monotonic() + 60
    while time.monotonic() < until and sum("_gen_" in p.name for p in shard.iterdir()) > 6:
        time.sleep(0.2)
    assert sum("_gen_" in p.name for p in shard.iterdir()) <= 6
    base = {r["id"]: r["n"] for r in table.search().use_lsm(False).select(["id", "n"]).limit(None).to_list()}
    assert base == newest
    print(f"{step} upserts, at most {max(generations)} generations and {max(entries):,} bytes of log")
