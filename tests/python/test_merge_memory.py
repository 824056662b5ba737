"""Upserts into a table that is much larger than the memory they may take."""

import os
import subprocess
import sys

import pytest
from testing import SOAK

ROWS = 1_000_000 if SOAK else 60_000
# What a run may take beyond Python and its libraries, MiB. Of a mapped file only the keys are looked at.
CAP = 512 if SOAK else 200

PROGRAM = """
import sys, time
import pyarrow as pa
import glaive

rows, folder, what = int(sys.argv[1]), sys.argv[2], sys.argv[3]
def batches(first, count, step, fill):
    schema = pa.schema([("k", pa.int64()), ("body", pa.binary())])
    def make():
        for start in range(0, count, 5000):
            n = min(5000, count - start)
            keys = pa.array(range(first + start * step, first + (start + n) * step, step), pa.int64())
            yield pa.record_batch([keys, pa.array([fill * 512] * n, pa.binary())], schema)
    return pa.RecordBatchReader.from_batches(schema, make())
db = glaive.connect(folder)
if what == "create":
    db.create_table("t", batches(0, rows, 1, b"a"))
    sys.exit()
t = db.open_table("t")
count = 500 if what == "few" else rows
with open("/proc/self/clear_refs", "w") as f:
    f.write("5")
status = lambda name: next(int(l.split()[1]) for l in open("/proc/self/status") if l.startswith(name)) / 1024
before = status("VmRSS")
r = t.merge_insert("k").when_matched_update_all().when_not_matched_insert_all().execute(batches(0, count, rows // count, b"b"))
print(status("VmHWM") - before, r.num_updated_rows, r.num_inserted_rows, t.count_rows())
"""


@pytest.mark.skipif(not os.path.exists("/proc/self/clear_refs"), reason="needs /proc")
def test_peak_of_upserts(tmp_path):
    def run(what):
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM, str(ROWS), str(tmp_path), what], capture_output=True, text=True, timeout=1800, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.split()

    run("create")
    for what, count in (("few", 500), ("all", ROWS)):
        peak, updated, inserted, rows = run(what)
        assert (int(updated), int(inserted), int(rows)) == (count, 0, ROWS)
        assert float(peak) < CAP, what
