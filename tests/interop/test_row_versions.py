"""The columns that say at which version a row was made and last changed: selected, filtered by, taken; both sides alike."""

import pyarrow as pa
import pytest
from upstream import SideError

MADE, CHANGED = "_row_created_at_version", "_row_last_updated_at_version"

# Written by the real packages: versions 1 and 2 add rows, 3 changes one, 4 deletes one.
WRITE = """
for start in (0, 4):
    lance.write_dataset(pa.table({"i": range(start, start + 4)}), uri, mode="append", enable_stable_row_ids=stable)
lance.dataset(uri).update({"i": "i + 100"}, where="i = 1")
lance.dataset(uri).delete("i = 2")
"""
READ = """
d = lance.dataset(uri)
return [
    d.to_table(columns=[changed, "i", "_rowid"], with_row_address=True),
    d.to_table(columns=["i", made, changed]),
    d.to_table(columns=[changed]),
    d.to_table(columns=["i"], filter=f"{changed} > 1"),
    d.to_table(columns=["i", made], filter=f"{made} = 2 AND i < 6"),
    d.to_table(columns=["i", made], filter=f"{changed} > 0", limit=2, offset=1),
    d.take([0, 4], columns=["i", made]),
    d.take([0, 4], columns=["i", changed]),
    d.get_fragments()[0].to_table(columns=["i", made]),
    d.count_rows(f"{made} = 2"),
    d.scanner(columns=["i", made, changed]).projected_schema,
]
"""


@pytest.fixture(params=[True, False], ids=["stable", "addresses"])
def uri(request, theirs, tmp_path):
    uri = str(tmp_path / "t.lance")
    theirs.run(WRITE, uri=uri, stable=request.param)
    return uri


def test_both_sides_alike(uri, sides):
    ours, theirs = (sides[s].run(READ, uri=uri, made=MADE, changed=CHANGED) for s in ("ours", "theirs"))
    for number, (mine, right) in enumerate(zip(ours, theirs)):
        if isinstance(right, pa.Table):
            assert mine.schema.equals(right.schema) and mine.to_pydict() == right.to_pydict(), number
        else:
            assert mine == right, number
    assert len(ours) == len(theirs)


def test_ours_say_what_was_written(ours, theirs, tmp_path):
    """Rows of ours, read by the real packages; and a search, which upstream cannot give these columns."""
    uri = str(tmp_path / "t.lance")
    data = pa.table({"i": [1, 2], "v": pa.array([[0.0, 1.0], [5.0, 5.0]], pa.list_(pa.float32(), 2))})
    for _ in range(3):
        ours.run("lance.write_dataset(data, uri, mode='append', enable_stable_row_ids=True)", data=data, uri=uri)
    read = "return lance.dataset(uri).to_table(columns=['i', made, changed]).to_pydict()"
    right = {"i": [1, 2] * 3, MADE: [1, 1, 2, 2, 3, 3], CHANGED: [1, 1, 2, 2, 3, 3]}
    assert theirs.run(read, uri=uri, made=MADE, changed=CHANGED) == right
    assert ours.run(read, uri=uri, made=MADE, changed=CHANGED) == right
    search = f"""
        nearest = {{"column": "v", "q": [5.0, 5.0], "k": 2}}
        t = lance.dataset(uri).to_table(columns=["i", "{MADE}"], nearest=nearest, filter="{MADE} > 1", prefilter=True)
        return t.to_pydict()
    """
    assert ours.run(search, uri=uri) == {"i": [2, 2], MADE: [2, 3], "_distance": [0.0, 0.0]}
    for side in (ours, theirs):
        with pytest.raises(SideError, match=f"{MADE} is a reserved name"):
            side.run("lance.write_dataset(data, uri, mode='overwrite')", data=pa.table({MADE: ["a", "b"]}), uri=uri)
