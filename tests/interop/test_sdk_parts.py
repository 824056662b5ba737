"""Namespaces, computed columns and blobs: what one side makes, the other reads, changes and fills."""

import pytest

BOTH = pytest.mark.parametrize("maker,other", [("ours", "theirs"), ("theirs", "ours")])

MAKE_NAMESPACES = """
db = lancedb.connect(uri)
db.create_namespace(["n"], properties={"k": "v"})
db.create_namespace(["n", "m"])
db.create_table("t", [{"a": 1}], namespace_path=["n"])
db.create_table("t", [{"a": 2}], namespace_path=["n", "m"])
"""
USE_NAMESPACES = """
db = lancedb.connect(uri)
db.open_table("t", namespace_path=["n"]).add([{"a": 10}])
db.create_table("u", [{"a": 3}], namespace_path=["n"])
db.create_namespace(["o"])
db.drop_table("t", ["n", "m"])
db.drop_namespace(["n", "m"])
return [db.list_namespaces().namespaces, db.list_namespaces(["n"]).namespaces, db.describe_namespace(["n"]).properties,
        db.list_tables(["n"]).tables, db.open_table("t", namespace_path=["n"]).to_arrow()["a"].to_pylist()]
"""
SEE_NAMESPACES = """
db = lancedb.connect(uri)
db.drop_all_tables(["n"])
db.drop_namespace(["n"])
return db.list_namespaces().namespaces, db.list_tables().tables
"""


@BOTH
def test_namespaces(maker, other, sides, tmp_path):
    uri = str(tmp_path)
    sides[maker].run(MAKE_NAMESPACES, uri=uri)
    assert sides[other].run(USE_NAMESPACES, uri=uri) == [["n", "o"], [], {"k": "v"}, ["t", "u"], [1, 10]]
    assert sides[maker].run("return lancedb.connect(uri).open_table('u', namespace_path=['n']).to_arrow().to_pylist()", uri=uri) == [{"a": 3}]
    assert sides[maker].run(SEE_NAMESPACES, uri=uri) == (["o"], [])


DECLARE = """
t = lancedb.connect(uri).create_table("t", [{"a": i} for i in range(5)])
t.add_columns(computed={"c": "a * 2"})
if fill:
    t.refresh_column("c")
"""
FILL = """
t = lancedb.connect(uri).open_table("t")
t.add([{"a": 7}])
t.update(where="a = 3", values={"a": 30})
filled = t.refresh_column("c").rows_filled
try:
    t.add([{"a": 1, "c": 1}])
except ValueError as e:
    assert "computed" in str(e)
return filled, sorted((r["a"], r["c"]) for r in t.to_arrow().to_pylist())
"""


@BOTH
@pytest.mark.parametrize("fill", [False, True])
def test_computed_columns(maker, other, fill, sides, tmp_path):
    uri = str(tmp_path)
    sides[maker].run(DECLARE, uri=uri, fill=fill)
    filled, rows = sides[other].run(FILL, uri=uri)
    assert rows == [(a, 2 * a) for a in (0, 1, 2, 4, 7, 30)] and filled >= 2
    sides[maker].run("lancedb.connect(uri).open_table('t').add([{'a': 9}])", uri=uri)
    assert sides[maker].run("t = lancedb.connect(uri).open_table('t'); t.refresh_column('c'); return t.count_rows('c = a * 2')", uri=uri) == 7


MAKE_BLOBS = """
schema = pa.schema([pa.field("id", pa.int64()), lancedb.blob("b")])
t = lancedb.connect(uri).create_table("t", [{"id": i, "b": bytes([i]) * size if i else None} for i, size in enumerate(sizes)], schema=schema)
t.delete("id = 1")
"""
READ_BLOBS = """
t = lancedb.connect(uri).open_table("t")
hits = t.search().to_arrow().sort_by([("id", "descending")])
frame = t.to_pandas(blob_mode="bytes")
return t.fetch_blobs("b", hits).to_pylist(), frame["b"].tolist()[::-1]
"""


@BOTH
def test_blobs(maker, other, sides, tmp_path):
    sizes = [0, 5, 0, 100, 70_000, 5_000_000]
    sides[maker].run(MAKE_BLOBS, uri=str(tmp_path), sizes=sizes)
    want = [bytes([i]) * sizes[i] for i in (5, 4, 3, 2)] + [None]
    for side in (maker, other):
        by_row, frame = sides[side].run(READ_BLOBS, uri=str(tmp_path))
        assert by_row == want and frame == want
