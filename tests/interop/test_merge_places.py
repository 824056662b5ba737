"""Conditions of merges that name the row id and the address of the table's row, as the real packages answer them."""

import pyarrow as pa
import pytest

PROGRAM = """
import pyarrow as pa
db = lancedb.connect(uri)
options = {"storage_options": {"new_table_enable_stable_row_ids": "true"}} if stable else {}
table = db.create_table("t", pa.table({"id": range(6), "n": range(6)}), **options)
table.add(pa.table({"id": range(6, 9), "n": range(6, 9)}))
table.delete("id = 1")
if stable:
    table.update(where="id = 4", values={"n": 40})  # the row moves and keeps its id
source = pa.table({"id": list(range(9)) + [99], "n": [100 + k for k in range(9)] + [199]})
answers = []
for condition in conditions:
    before = table.version
    try:
        done = table.merge_insert("id").when_matched_update_all(where=condition).execute(source)
        rows = table.to_arrow().sort_by("id")
        answers.append((done.num_updated_rows, rows["id"].to_pylist(), rows["n"].to_pylist()))
        table.restore(before)
        table.checkout_latest()
    except ValueError as error:
        answers.append("ValueError")
for condition in deletions:
    try:
        table.merge_insert("id").when_not_matched_by_source_delete(condition).execute(source.slice(0, 2))
        answers.append("deleted")
    except ValueError:
        answers.append("ValueError")
return answers
"""
CONDITIONS = [
    "target._rowid = 2",
    "target._rowid >= 4",
    "_rowid = 4",
    "target._rowaddr = 4294967296",
    "_rowaddr < 4294967296 AND source.n > 102",
    "target._rowaddr = target._rowid",
    "target._rowid IS NULL",
    "target._rowid + 1 = source.id",
    "source._rowid = 1",
    "target._rowoffset = 1",
    "target._row_created_at_version = 1",
    "_distance > 0",
]
DELETIONS = ["_rowid = 0", "_rowaddr = 0", "target._rowid = 0", "_row_created_at_version = 1"]


@pytest.mark.parametrize("stable", [False, True])
def test_where_the_row_of_the_table_is_may_decide(ours, theirs, tmp_path, stable):
    args = {"stable": stable, "conditions": CONDITIONS, "deletions": DELETIONS}
    mine = ours.run(PROGRAM, uri=str(tmp_path / "ours"), **args)
    real = theirs.run(PROGRAM, uri=str(tmp_path / "theirs"), **args)
    assert dict(zip(CONDITIONS + DELETIONS, mine)) == dict(zip(CONDITIONS + DELETIONS, real))
    assert real[0][0] == 1 and real[1][0] > 1
