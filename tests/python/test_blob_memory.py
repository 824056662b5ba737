"""Updates and partial merges of rows with large blobs: what is in memory at once does not grow with the number of rows."""

import os
import subprocess
import sys

import pytest

ROWS, BLOB_MIB = 180, 3  # 540 MiB together
CAP = 400  # MiB of memory of its own that a change may take: a few pieces of 32 MiB, read and copied

PROGRAM = """
import sys, threading, time
import pyarrow as pa
import glaive.lance as lance
from glaive.lance.blob import blob_array, blob_field

uri, kind, what = sys.argv[1:4]
rows, size = int(sys.argv[4]), int(sys.argv[5]) << 20
bodies = lambda ids: [bytes([i]) * size for i in ids]
if what == "create":
    def table(ids):
        if kind == "first":
            field = pa.field("b", pa.large_binary(), metadata={"lance-encoding:blob": "true"})
            column = pa.array(bodies(ids), pa.large_binary())
        else:
            field, column = blob_field("b"), blob_array(bodies(ids))
        return pa.table([pa.array(ids), column, pa.array([0] * len(ids))], schema=pa.schema([("id", pa.int64()), field, ("n", pa.int64())]))
    for start in range(0, rows, 20):
        lance.write_dataset(table(list(range(start, start + 20))), uri, mode="append" if start else "create",
                            data_storage_version="2.1" if kind == "first" else "2.2")
    sys.exit()
def own():
    return next(int(l.split()[1]) for l in open("/proc/self/status") if l.startswith("RssAnon")) / 1024
ds = lance.dataset(uri)
before, peak, done = own(), [0], threading.Event()
def watch():
    while not done.is_set():
        peak[0] = max(peak[0], own())
        time.sleep(0.002)
watcher = threading.Thread(target=watch)
watcher.start()
if what == "update":
    ds.update({"n": "n + 1"})
else:
    ds.merge_insert("id").when_matched_update_all().execute(pa.table({"id": list(range(rows)), "n": [7] * rows}))
done.set()
watcher.join()
ds = lance.dataset(uri)
ids = ds.to_table(columns=["id"])["id"].to_pylist()
for place in (0, rows // 2, rows - 1):
    (_, body), = ds.read_blobs("b", indices=[place])
    assert body == bytes([ids[place]]) * size
print(peak[0] - before, sorted(ids) == list(range(rows)), set(ds.to_table(columns=["n"])["n"].to_pylist()))
"""


@pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="needs /proc")
@pytest.mark.parametrize("kind", ["first", "second"])
def test_blobs_are_moved_some_at_a_time(tmp_path, kind):
    def run(what):
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM, str(tmp_path / "t"), kind, what, str(ROWS), str(BLOB_MIB)],
            capture_output=True, text=True, timeout=900, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return done.stdout.split(maxsplit=2)

    run("create")
    for what, value in (("update", 1), ("merge", 7)):
        peak, all_there, values = run(what)
        assert (all_there, values.strip()) == ("True", f"{{{value}}}")
        assert float(peak) < CAP, (what, peak)
