"""Blob columns written by the real package: descriptors as it shows them, bytes as they went in."""

import pytest

WRITE = """
values = [b"abc", None, b"", b"z" * 100_000, b"y" * 5_000_000, b"end"]
field = pa.field("b", pa.large_binary(), metadata={"lance-encoding:blob": "true"})
t = pa.table({"i": range(len(values)), "b": pa.array(values, pa.large_binary())}, schema=pa.schema([pa.field("i", pa.int64()), field]))
lance.write_dataset(t, path, data_storage_version=version)
lance.write_dataset(t.slice(3), path, mode="append")
"""
OBSERVE = """
d = lance.dataset(path)
t = d.to_table()
some = d.to_table(columns=["b"], filter="i = 3")
return {
    "names": t.column_names,
    "type": str(t.schema.field("b").type),
    "metadata": {k.decode(): v.decode() for k, v in (t.schema.field("b").metadata or {}).items()},
    "rows": t.to_pylist(),
    "filtered": some.to_pylist(),
    "nulls": d.count_rows("b IS NULL"),
    "only": d.to_table(columns=["i"]).to_pylist(),
}
"""
READ = """
d = lance.dataset(path)
return [b.readall() for b in d.take_blobs("b", indices=[0, 3, 4, 5, 6, 7, 8])]
"""


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
def test_blobs_of_the_real_package(theirs, ours, tmp_path, version):
    path = str(tmp_path / "t.lance")
    theirs.run(WRITE, path=path, version=version)
    assert ours.run(OBSERVE, path=path) == theirs.run(OBSERVE, path=path)
    payload = [b"abc", b"z" * 100_000, b"y" * 5_000_000, b"end", b"z" * 100_000, b"y" * 5_000_000, b"end"]
    assert ours.run(READ, path=path) == payload


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
def test_blobs_of_ours(theirs, ours, tmp_path, version):
    path = str(tmp_path / "t.lance")
    ours.run(WRITE, path=path, version=version)
    assert ours.run(OBSERVE, path=path)["rows"] == theirs.run(OBSERVE, path=path)["rows"]
    assert theirs.run(READ, path=path) == ours.run(READ, path=path)

WRITE_DEFAULT = WRITE.replace(", data_storage_version=version", "")
CHANGE = """
d = lance.dataset(path)
field = pa.field("b", pa.large_binary(), metadata={"lance-encoding:blob": "true"})
more = pa.table({"i": [100], "b": pa.array([b"more"], pa.large_binary())}, schema=pa.schema([pa.field("i", pa.int64()), field]))
d = lance.write_dataset(more, path, mode="append")
d.update({"i": "i + 1000"}, where="i = 0")
d.optimize.compact_files()
return d.data_storage_version
"""
READ_ALL = """
d = lance.dataset(path)
ids = d.to_table(columns=["i"])["i"].to_pylist()
files = d.take_blobs("b", indices=[n for n, i in enumerate(ids) if i not in (1,)])
return sorted((i, b.readall()[:9]) for i, b in zip([i for i in ids if i not in (1,)], files))
"""


def test_the_real_package_changes_blobs_of_ours(theirs, ours, tmp_path):
    path = str(tmp_path / "t.lance")
    ours.run(WRITE_DEFAULT, path=path)
    assert theirs.run(CHANGE, path=path) == "2.1"  # where such blobs are at home
    z, y = b"z" * 9, b"y" * 9
    rows = [(2, b""), (3, z), (3, z), (4, y), (4, y), (5, b"end"), (5, b"end"), (100, b"more"), (1000, b"abc")]
    assert ours.run(READ_ALL, path=path) == rows == theirs.run(READ_ALL, path=path)
