"""kill -9 of a process that updates, upserts, compacts and cleans up, at random points.

Nothing that it acknowledged is lost, nothing occurs twice, no file that the table needs is gone, and the
next changes succeed, for us and for the real packages.
"""

import os
import random
import signal
import time
import zlib

import crash_helpers
import pyarrow as pa
import pytest
from testing import SOAK

# Step i belongs to one of four kinds; a line is printed after each that returned.
WRITER = """
import datetime
t = lancedb.connect(sys.argv[1]).open_table("t")
print("ready", flush=True)
i = 0
while True:
    kind = i % 4
    if kind == 0:
        t.update(f"id % 5 = {i % 5}", values_sql={"n": "n + 1"})
    elif kind == 1:
        ids = list(range(i, i + 40, 2))
        data = pa.table({"id": pa.array(ids, pa.int64()), "n": pa.array([i] * len(ids), pa.int64())})
        t.merge_insert("id").when_matched_update_all().when_not_matched_insert_all().execute(data)
    elif kind == 2:
        t.optimize()
    else:
        t.optimize(cleanup_older_than=datetime.timedelta(0), delete_unverified=True)
    print(i, flush=True)
    i += 1
"""

CREATE = "lancedb.connect(db).create_table('t', data)"
READ = """
d = lance.dataset(db + '/t.lance')
return sorted((r['id'], r['n']) for r in d.to_table().to_pylist()), d.version
"""
VALIDATE = "lance.dataset(db + '/t.lance').validate()"
CHANGE = """
t = lancedb.connect(db).open_table('t')
t.update('id = 3', values={'n': -1})
t.merge_insert('id').when_matched_update_all().when_not_matched_insert_all().execute(data)
t.optimize()
return sorted((r['id'], r['n']) for r in t.to_arrow().to_pylist())
"""


def model(count):
    """Rows after the first `count` steps: key -> n."""
    rows = {i: 0 for i in range(100)}
    for i in range(count):
        if i % 4 == 0:
            rows = {k: n + 1 if k % 5 == i % 5 else n for k, n in rows.items()}
        elif i % 4 == 1:
            rows.update({k: i for k in range(i, i + 40, 2)})
    return rows


@pytest.mark.parametrize("number", range(300 if SOAK else 8))
def test_killed_changes(number, sides, ours, seed, tmp_path):
    rng = random.Random(zlib.crc32(repr((seed, "kill changes", number)).encode()))
    db = str(tmp_path)
    start = pa.table({"id": pa.array(range(100), pa.int64()), "n": pa.array([0] * 100, pa.int64())})
    ours.run(CREATE, db=db, data=start)
    child = crash_helpers.start(WRITER, db, lancedb=True)
    assert child.stdout.readline() == "ready\n", child.stderr.read()
    acknowledged = 0
    for _ in range(rng.randrange(0, 24)):
        acknowledged = int(child.stdout.readline()) + 1
    time.sleep(rng.random() * 0.02)
    os.kill(child.pid, signal.SIGKILL)
    rest, errors = crash_helpers.last_words(child)
    assert "Traceback" not in errors, errors
    for line in rest.splitlines(keepends=True):
        if line.endswith("\n"):
            acknowledged = int(line) + 1
    possible = [sorted(model(acknowledged + more).items()) for more in (0, 1)]
    for name, side in sides.items():
        rows, _ = side.run(READ, db=db)
        assert rows in possible, f"{name}: rows of another step than {acknowledged}"
    sides["theirs"].run(VALIDATE, db=db)
    after = dict(rows)
    order = list(sides)
    rng.shuffle(order)
    for turn, name in enumerate(order):
        more = pa.table({"id": pa.array([7, 5000 + turn], pa.int64()), "n": pa.array([turn, turn], pa.int64())})
        after.update({3: -1, 7: turn, 5000 + turn: turn})
        assert sides[name].run(CHANGE, db=db, data=more) == sorted(after.items()), name
    for name, side in sides.items():
        assert side.run(READ, db=db)[0] == sorted(after.items()), name
