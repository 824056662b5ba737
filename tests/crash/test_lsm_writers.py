"""Two processes change the same rows of a table with an LSM write path: every change builds on the one before."""

import collections
import json

import crash_helpers
import pytest
from testing import SOAK

KEYS = range(4)
CREATE = """
schema = pa.schema([pa.field("id", pa.int64(), nullable=False), ("shelf", pa.string()), ("log", pa.string())])
table = lancedb.connect(path).create_table(
    "t", pa.table({"id": list(range(4)), "shelf": ["a", "b", "a", "b"], "log": [""] * 4}, schema=schema))
table.set_unenforced_primary_key("id")
spec = lancedb.LsmWriteSpec
table.set_lsm_write_spec(spec.identity("shelf") if moving else spec.bucket("id", 3))
"""

# Each change appends its own name to the log of a row, so that a change that was lost or made twice is seen. Half of them
# move the row to another shelf. Row 50 comes and goes.
WRITER = """
from glaive.exceptions import WriterFencedError
path, me, seconds, seed = sys.argv[1], sys.argv[2], float(sys.argv[3]), int(sys.argv[4])
rng = random.Random(f"{seed} {me}")
table = lancedb.connect(path).open_table("t")
print("ready", flush=True)
sys.stdin.readline()
sure, unsure, refused = [], [], 0
end = time.time() + seconds
while time.time() < end or (len(sure) < 3 and time.time() < end + 30):
    name = f"{me}{len(sure) + len(unsure)};"
    key, shelf = rng.randrange(4), rng.choice("abcde")
    try:
        kind = rng.random()
        if kind < 0.1:
            table.delete("id = 50")
        elif kind < 0.2:
            table.add(pa.table({"id": [50], "shelf": [shelf], "log": [""]}, schema=table.schema))
        else:
            values = {"log": f"log || '{name}'"}
            if rng.random() < 0.5:
                values["shelf"] = f"'{shelf}'"
            table.update(where=f"id = {key}", values_sql=values)
            sure.append([key, name])
    except (WriterFencedError, RuntimeError) as error:
        if not isinstance(error, WriterFencedError) and "try again" not in str(error) and "conflict" not in str(error).lower():
            raise
        refused += 1
        unsure.append([key, name])
        time.sleep(rng.random() * 0.05)  # or both would claim and claim, and never change anything
try:
    table.close_lsm_writers()
except WriterFencedError:  # what this one has not flushed is replayed from the log
    pass
print(json.dumps([sure, unsure, refused]), flush=True)
"""
READ = """
table = lancedb.connect(path).open_table("t")
seen = table.search().limit(None).to_list()
assert table.checkpoint_lsm().converged
return seen, table.search().use_lsm(False).limit(None).to_list()
"""


@pytest.mark.parametrize("moving", [False, True], ids=["rows stay", "rows move"])
def test_changes_of_two_processes(moving, ours, seed, tmp_path):
    path = str(tmp_path)
    ours.run(CREATE, path=path, moving=moving)
    children = [crash_helpers.start(WRITER, path, me, 60 if SOAK else 2, seed, lancedb=True) for me in "xy"]
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
    for rows in ours.run(READ, path=path):
        ids = collections.Counter(row["id"] for row in rows)
        assert set(KEYS) <= set(ids) <= {*KEYS, 50} and set(ids.values()) == {1}, f"rows lost or doubled: {ids}"
        logs = {row["id"]: row["log"].split(";")[:-1] for row in rows}
        for sure, unsure, _ in results:
            for key, name in sure:
                assert logs[key].count(name[:-1]) == 1, f"change {name} of row {key}: {logs[key]}"
            for key, name in unsure:
                assert logs[key].count(name[:-1]) <= 1, f"change {name} of row {key}: {logs[key]}"
        known = sum(len(sure) + len(unsure) for sure, unsure, _ in results)
        assert sum(map(len, logs.values())) <= known
    assert all(len(sure) >= 3 for sure, _, _ in results), results
