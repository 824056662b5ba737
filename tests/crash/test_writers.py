"""Several processes append to, update, delete from, upsert into and compact one table, all at once.

Each change that a writer was told of is replayed on a plain dictionary in the order of the versions: the
table must hold exactly that. Changes name single keys, so that a change that found its row at a version
must find it there in the replay as well. One writer is the real package.
"""

import json

import crash_helpers
import pyarrow as pa
import pytest
from testing import SOAK

WRITER = """
db, me, seconds, seed = sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), int(sys.argv[4])
rng = random.Random(seed * 100 + me)
t = lancedb.connect(db).open_table("t")
def rows(ids):
    return pa.table({"id": pa.array(ids, pa.int64()), "n": pa.array([rng.randrange(1000) for _ in ids], pa.int64()),
                     "who": pa.array([f"writer {me}"] * len(ids))}).cast(t.schema)
def conflict(error):
    text = str(error).lower()
    if not ("conflict" in text or "concurrent" in text or "retr" in text or "too many" in text):
        raise error
print("ready", flush=True)
sys.stdin.readline()
end, fresh, done, conflicts = time.monotonic() + seconds, (me + 1) * 1_000_000, [], 0
while time.monotonic() < end:
    kind = rng.choice(["append", "update", "update", "delete", "upsert", "upsert", "compact"] if me % 4 == 0
                      else ["append", "update", "update", "delete", "upsert", "upsert"])
    t.checkout_latest()
    try:
        if kind == "append":
            new = rows(list(range(fresh, fresh + 3)))
            fresh += 3
            done.append((t.add(new).version, kind, new.to_pylist(), 3))
        elif kind == "update":
            key = rng.randrange(300)
            r = t.update(f"id = {key}", values_sql={"n": "n + 1"})
            done.append((r.version, kind, key, r.rows_updated))
        elif kind == "delete":
            key = rng.randrange(300)
            r = t.delete(f"id = {key}")
            done.append((r.version, kind, key, r.num_deleted_rows))
        elif kind == "upsert":
            new = rows(rng.sample(range(300), rng.choice([1, 2, 5])))
            r = (t.merge_insert("id").when_matched_update_all().when_not_matched_insert_all().execute(new))
            done.append((r.version, kind, new.to_pylist(), r.num_updated_rows + r.num_inserted_rows))
        else:
            t.optimize()
    except Exception as error:
        conflict(error)
        conflicts += 1
print(json.dumps({"done": done, "conflicts": conflicts}), flush=True)
"""

# The key is declared, so that two upserts of one new key meet as a conflict.
KEY = pa.field("id", pa.int64(), nullable=False, metadata={"lance-schema:unenforced-primary-key": "true"})
SCHEMA = pa.schema([KEY, ("n", pa.int64()), ("who", pa.utf8())])

CREATE = """
storage = {'new_table_enable_stable_row_ids': str(stable).lower()}
lancedb.connect(db, storage_options=storage).create_table('t', data)
"""
READ = "return lancedb.connect(db).open_table('t').to_arrow().to_pylist()"


def replay(rows, changes):
    """`rows`: key -> row, changed in place."""
    for version, kind, what, count in sorted(changes, key=lambda c: c[0]):
        if kind == "append":
            for row in what:
                assert row["id"] not in rows
                rows[row["id"]] = row
        elif kind == "upsert":
            assert count == len(what), f"version {version}: {count} rows for {len(what)} keys"
            for row in what:
                rows[row["id"]] = row
        elif count:
            assert count == 1, f"version {version}: {kind} of one key met {count} rows"
            assert what in rows, f"version {version}: {kind} of key {what}, which is not there"
            if kind == "update":
                rows[what] = {**rows[what], "n": rows[what]["n"] + 1}
            else:
                del rows[what]


@pytest.mark.parametrize("stable", [False, True], ids=["addresses", "stable row ids"])
def test_writers_are_serial(stable, sides, ours, seed, tmp_path):
    db, processes, seconds = str(tmp_path), 8 if SOAK else 4, 60 if SOAK else 2.5
    start = [{"id": i, "n": 0, "who": "nobody"} for i in range(200)]
    ours.run(CREATE, db=db, data=pa.Table.from_pylist(start, SCHEMA), stable=stable)
    writers = [
        crash_helpers.start(WRITER, db, me, seconds, seed, upstream=me == processes - 1, lancedb=True)
        for me in range(processes)
    ]
    for writer in writers:
        assert writer.stdout.readline() == "ready\n", writer.stderr.read()
    for writer in writers:
        writer.stdin.write("go\n")
        writer.stdin.flush()
    changes, conflicts = [], []
    for writer in writers:
        out, errors = writer.communicate(timeout=600)
        assert writer.returncode == 0, errors
        report = json.loads(out)
        changes += report["done"]
        conflicts.append((len(report["done"]), report["conflicts"]))
    versions = [c[0] for c in changes if c[3]]
    assert len(set(versions)) == len(versions), "two changes claim one version"
    expected = {row["id"]: row for row in start}
    replay(expected, changes)
    for name, side in sides.items():
        rows = side.run(READ, db=db)
        found = {row["id"]: row for row in rows}
        assert len(found) == len(rows), f"{name}: a key occurs twice"
        assert found == expected, f"{name}: the rows are not those of a serial run"
    assert len(changes) > 10 * processes * (seconds / 60), f"(changes, conflicts) per writer: {conflicts}"
