"""Eight processes append to and delete from one table: every commit is kept or is a typed conflict."""

import json

import crash_helpers
import pytest
from testing import SOAK

PROCESSES = 8

WORKER = """
uri, me, operations, seed = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
rng = random.Random(seed * 100 + me)
appended, deleted, commits, conflicts = [], [], 0, 0
live = []
def conflict(error):
    text = str(error).lower()
    if not ("conflict" in text or "concurrent" in text or "retr" in text):
        raise error
print("ready", flush=True)
sys.stdin.readline()
for i in range(operations):
    if live and rng.random() < 0.35:
        gone = [live.pop(rng.randrange(len(live))) for _ in range(min(len(live), rng.randint(1, 4)))]
        try:
            lance.dataset(uri).delete(f"id IN ({', '.join(map(str, gone))})")
            deleted += gone
            commits += 1
        except Exception as error:
            conflict(error)
            conflicts += 1
            live += gone
    else:
        ids = [me * 1_000_000 + i * 10 + k for k in range(rng.randint(1, 6))]
        try:
            lance.write_dataset(pa.table({"id": pa.array(ids, pa.int64())}), uri, mode="append")
            appended += ids
            live += ids
            commits += 1
        except Exception as error:
            conflict(error)
            conflicts += 1
print(json.dumps({"appended": appended, "deleted": deleted, "commits": commits, "conflicts": conflicts}), flush=True)
"""

CREATE = "lance.write_dataset(pa.table({'id': pa.array([-1], pa.int64())}), uri, enable_stable_row_ids=stable)"
READ = """
d = lance.dataset(uri)
return sorted(d.to_table()['id'].to_pylist()), d.version, d.count_rows()
"""


@pytest.mark.parametrize("stable", [False, True], ids=["addresses", "stable row ids"])
def test_eight_writers(stable, sides, ours, seed, tmp_path):
    uri = str(tmp_path / "t.lance")
    ours.run(CREATE, uri=uri, stable=stable)
    operations = 120 if SOAK else 12
    workers = [crash_helpers.start(WORKER, uri, me, operations, seed) for me in range(PROCESSES)]
    for worker in workers:
        assert worker.stdout.readline() == "ready\n", worker.stderr.read()
    for worker in workers:
        worker.stdin.write("go\n")
        worker.stdin.flush()
    reports = []
    for worker in workers:
        out, errors = worker.communicate(timeout=600)
        assert worker.returncode == 0, errors
        reports.append(json.loads(out))
    expected = {-1}
    for report in reports:
        expected |= set(report["appended"])
    for report in reports:
        expected -= set(report["deleted"])
    commits = sum(r["commits"] for r in reports)
    for name, side in sides.items():
        ids, version, count = side.run(READ, uri=uri)
        assert ids == sorted(expected), f"{name}: rows lost or come back"
        assert count == len(expected), name
        assert version == 1 + commits, f"{name}: {version - 1} versions for {commits} acknowledged commits"
    # Appends never clash with one another, nor deletes with appends: conflicts are the exception.
    assert commits >= PROCESSES * operations * 0.5, f"only {commits} commits, the rest were conflicts"
