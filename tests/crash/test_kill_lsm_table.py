"""kill -9 of a process that writes to a table with an LSM write path, with upkeep at work, at random points.

Nothing acknowledged is lost, doubled or brought back, for a reader beside it and for whoever writes next.
"""

import os
import random
import signal
import time
import zlib

import crash_helpers
import glaive
import pyarrow as pa
import pytest
from testing import SOAK

SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("n", pa.int64()), pa.field("body", pa.binary())])

# Small memtables, eager compaction and collection: the kill meets all of them. A line is printed after each step.
WRITER = """
import random
db = lancedb.connect(sys.argv[1], storage_options={"lsm_upkeep_max_generations": "2", "lsm_upkeep_collect_grace": "0s"})
t = db.open_table("t")
merge = t.merge_insert("id").when_matched_update_all().when_not_matched_insert_all()
print("ready", flush=True)
i = int(sys.argv[2])
while True:
    if i % 5 == 4:
        t.delete(f"id % 7 = {i % 7}")
    else:
        ids = [(i * 13 + j * 3) % 60 for j in range(8)]
        merge.execute(pa.table({"id": pa.array(ids, pa.int64()), "n": pa.array([i] * 8, pa.int64()), "body": [bytes([i % 251]) * 500] * 8}))
    print(i, flush=True)
    i += 1
"""


def after(count):
    """Key -> n after the first `count` steps."""
    rows = {}
    for i in range(count):
        if i % 5 == 4:
            rows = {k: n for k, n in rows.items() if k % 7 != i % 7}
        else:
            rows.update({(i * 13 + j * 3) % 60: i for j in range(8)})
    return rows


def seen(table):
    rows = table.to_arrow().to_pylist()
    assert len({r["id"] for r in rows}) == len(rows), "a key is there twice"
    assert all(r["body"] == bytes([r["n"] % 251]) * 500 for r in rows)
    return {r["id"]: r["n"] for r in rows}


@pytest.mark.parametrize("number", range(1000 if SOAK else 6))
def test_killed_writer(number, seed, tmp_path):
    rng = random.Random(zlib.crc32(repr((seed, "kill lsm", number)).encode()))
    path = str(tmp_path)
    table = glaive.connect(path).create_table("t", schema=SCHEMA)
    table.set_unenforced_primary_key("id")
    spec = glaive.LsmWriteSpec.bucket("id", 2) if rng.random() < 0.5 else glaive.LsmWriteSpec.unsharded()
    table.set_lsm_write_spec(spec.with_writer_config_defaults({"max_memtable_rows": "30", "durability": rng.choice(["os", "fsync"])}))
    done = 0  # steps that are known to be in the table
    for _ in range(rng.randrange(1, 4)):
        child = crash_helpers.start(WRITER, path, str(done), lancedb=True)
        assert child.stdout.readline() == "ready\n", child.stderr.read()
        for _ in range(rng.randrange(0, 60)):
            done = int(child.stdout.readline()) + 1
        if done:  # a reader beside the writer
            between = seen(glaive.connect(path).open_table("t"))
            assert min(between.values(), default=done) >= 0
        time.sleep(rng.random() * 0.03)
        os.kill(child.pid, signal.SIGKILL)
        rest, errors = crash_helpers.last_words(child)
        assert "Traceback" not in errors, errors
        lines = [int(line) for line in rest.split()]
        done = max([done, *(line + 1 for line in lines)])
        got = seen(glaive.connect(path).open_table("t"))
        # The step that was under way: in full or not at all per shard (several shards may each have it or not).
        before, with_it = after(done), after(done + 1)
        for key in before.keys() | with_it.keys() | got.keys():
            assert got.get(key) in (before.get(key), with_it.get(key)), (done, key, got.get(key), before.get(key), with_it.get(key))
        if got == with_it != before:
            done += 1
        elif got != before:  # some shards have it: bring both to the same state, as a caller that tries again would
            repeat = glaive.connect(path, storage_options={"lsm_upkeep": "false"}).open_table("t")
            if done % 5 == 4:
                repeat.delete(f"id % 7 = {done % 7}")
            else:
                ids = [(done * 13 + j * 3) % 60 for j in range(8)]
                rows = pa.table({"id": pa.array(ids, pa.int64()), "n": pa.array([done] * 8, pa.int64()), "body": [bytes([done % 251]) * 500] * 8})
                repeat.merge_insert("id").when_matched_update_all().when_not_matched_insert_all().execute(rows)
            repeat.close_lsm_writers()
            done += 1
            assert seen(repeat) == after(done)
    table = glaive.connect(path).open_table("t")
    assert table.checkpoint_lsm().converged
    assert {r["id"]: r["n"] for r in table.search().use_lsm(False).limit(None).to_list()} == after(done)
