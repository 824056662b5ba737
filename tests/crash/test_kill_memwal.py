"""kill -9 of the writer of a shard at random points, and processes that fight for one.

What was acknowledged is there, what was not is there wholly or not at all, for us and for the real packages.
"""

import json
import random
import signal
import time
import zlib

import crash_helpers
import pytest
from testing import SOAK

SHARD = "aa48498d-ac91-59e2-8452-69f46010ace2"
# One bound for all sides: a log written under a larger one cannot be opened by pylance.
MAX_ROWS = 25

# Call `i` is always the same: some keys (with repeats) put, or deleted.
CALL = """
def call(i):
    rng = random.Random(i)
    keys = [rng.randrange(30) for _ in range(rng.randrange(1, 5))]
    return ("put", keys) if rng.random() < 0.75 else ("delete", keys)
"""

# One line after each call that returned. From time to time the writer is closed, or dropped as it is.
WRITER = (
    CALL
    + """
path, shard, first, durability, max_rows = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4], int(sys.argv[5])
ds = lance.dataset(path)
key = pa.schema([ds.schema.field("id")])
def open_writer():
    return ds.mem_wal_writer(shard, durability=durability, max_memtable_rows=max_rows)
writer = open_writer()
print("ready", flush=True)
i = first
while True:
    kind, keys = call(i)
    if kind == "put":
        writer.put(pa.table({"id": pa.array(keys, pa.int64()), "text": [f"v{i}" * 50] * len(keys)}, schema=ds.schema))
    else:
        writer.delete(pa.table({"id": pa.array(keys, pa.int64())}, schema=key))
    print(i, flush=True)
    i += 1
    if i % 17 == 0:
        writer.close()
        writer = open_writer()
    elif i % 29 == 0:
        del writer
        writer = open_writer()
"""
)

CREATE = """
schema = pa.schema([
    pa.field("id", pa.int64(), False, {"lance-schema:unenforced-primary-key": "true"}), pa.field("text", pa.utf8()),
])
lance.write_dataset(schema.empty_table(), path).initialize_mem_wal(unsharded=True)
"""

READ = """
import gc
writer = lance.dataset(path).mem_wal_writer(shard, max_memtable_rows=max_rows)
rows = writer.lsm_scanner().to_table().to_pylist()
if close:
    writer.close()
del writer
gc.collect()
return sorted((row["id"], row["text"][: len(row["text"]) // 50]) for row in rows)
"""

scope = {"random": random}
exec(CALL, scope)


def model(count):
    """Rows after the first `count` calls."""
    rows = {}
    for i in range(count):
        kind, keys = scope["call"](i)
        for key in keys:
            if kind == "put":
                rows[key] = f"v{i}"
            else:
                rows.pop(key, None)
    return sorted(rows.items())


@pytest.mark.parametrize("number", range(250 if SOAK else 2))
def test_killed_writer(number, sides, seed, tmp_path):
    rng = random.Random(zlib.crc32(repr((seed, "kill memwal", number)).encode()))
    path = str(tmp_path / "t.lance")
    sides["ours"].run(CREATE, path=path)
    count = 0
    for life in range(4 if SOAK else 3):
        durability = rng.choice(["fsync", "os"])
        child = crash_helpers.start(WRITER, path, SHARD, count, durability, MAX_ROWS)
        try:
            assert child.stdout.readline() == "ready\n", child.stderr.read()
            acknowledged = count
            for _ in range(rng.randrange(40)):
                acknowledged = int(child.stdout.readline()) + 1
            time.sleep(rng.random() * 0.02)
            child.send_signal(signal.SIGKILL)
            rest = child.stdout.read().split()
            if rest:
                acknowledged = int(rest[-1]) + 1
        finally:
            child.kill()
            child.communicate()
        reader = rng.choice(["ours", "theirs"])
        rows = sides[reader].run(READ, path=path, shard=SHARD, max_rows=MAX_ROWS, close=rng.random() < 0.3)
        # The call that was under way may have got through.
        assert rows in (model(acknowledged), model(acknowledged + 1)), (life, reader, durability, acknowledged)
        count = acknowledged if rows == model(acknowledged) else acknowledged + 1


# Counts up one key of its own, in two rows; opens anew whenever the other one has taken the shard.
RIVAL = """
from glaive.exceptions import WriterFencedError
path, shard, me, seconds = sys.argv[1], sys.argv[2], int(sys.argv[3]), float(sys.argv[4])
ds = lance.dataset(path)
def rows(value):
    return pa.table({"id": [2 * me, 2 * me + 1], "text": [str(value)] * 2}, schema=ds.schema)
print("ready", flush=True)
sys.stdin.readline()
end = time.time() + seconds
value, fenced, writer = 0, 0, None
while time.time() < end or (value == 0 and time.time() < end + 30):
    try:
        if writer is None:
            writer = ds.mem_wal_writer(shard, durability="os", max_memtable_rows=40)
        writer.put(rows(value + 1))
        value += 1
    except WriterFencedError:
        writer, fenced = None, fenced + 1
        time.sleep(random.random() * 0.1)  # or both would claim and claim, and never put
print(json.dumps([value, fenced]), flush=True)
"""


def test_rivals(sides, tmp_path):
    """No put that was acknowledged is lost, whoever takes the shard from whom."""
    path = str(tmp_path / "t.lance")
    sides["ours"].run(CREATE, path=path)
    children = [crash_helpers.start(RIVAL, path, SHARD, me, 60 if SOAK else 2) for me in range(2)]
    try:
        for child in children:
            assert child.stdout.readline() == "ready\n", child.stderr.read()
        for child in children:
            child.stdin.write("\n")
            child.stdin.flush()
        results = [json.loads(child.stdout.readline() or child.stderr.read()) for child in children]
    finally:
        for child in children:
            child.kill()
            child.communicate()
    rows = sides["ours"].run(
        "return {r['id']: r['text'] for r in lance.dataset(path).mem_wal_writer(shard).lsm_scanner().to_table().to_pylist()}",
        path=path,
        shard=SHARD,
    )
    assert sum(fenced for _, fenced in results) > 0, results
    for me, (value, _) in enumerate(results):
        assert value > 0, results
        assert rows[2 * me] == rows[2 * me + 1]
        # One more put may have been stored although its writer was told that it is fenced.
        assert int(rows[2 * me]) in (value, value + 1)
