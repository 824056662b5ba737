"""What changes of columns do to everything else: indices, row versions, blobs, old versions."""

import pyarrow as pa
import pytest
from same import assert_same
from upstream import SideError

ROWS = pa.table({"id": list(range(12)), "a": [i * 3 for i in range(12)], "b": [f"t{i % 5}" for i in range(12)]})

CHANGES = {
    "add computed": "ds.add_columns({'c': 'a + 1'})",
    "add nulls": "ds.add_columns(pa.field('c', pa.int32()))",
    "add data": "ds.add_columns(pa.table({'c': list(range(11))}))",
    "merge": "ds.merge(pa.table({'id': [1, 2], 'm': [1, 2]}), 'id')",
    "rename": "ds.alter_columns({'path': 'a', 'name': 'z'})",
    "cast": "ds.alter_columns({'path': 'a', 'data_type': pa.int32()})",
    "nullable": "ds.alter_columns({'path': 'a', 'nullable': False})",
    "drop": "ds.drop_columns(['a'])",
    "metadata": "ds.update_field_metadata({'a': {'k': 'v'}})",
}


@pytest.mark.parametrize("stable", [False, True])
@pytest.mark.parametrize("name", CHANGES)
def test_row_versions_and_ids(name, stable, sides, tmp_path):
    code = f"""
ds = lance.write_dataset(data, uri, max_rows_per_file=5, enable_stable_row_ids=stable)
ds.delete('id = 3')
{CHANGES[name]}
lance.write_dataset(ds.to_table(limit=1), uri, mode='append')
return lance.dataset(uri).to_table()
"""
    versions = """
ds = lance.dataset(uri)
return ds.to_table(columns=['_row_last_updated_at_version', '_row_created_at_version', '_rowid']), ds.version
"""
    found = {}
    for s, side in sides.items():
        uri = str(tmp_path / s)
        rows = side.run(code, uri=uri, data=ROWS, stable=stable)
        found[s] = rows, *sides["theirs"].run(versions, uri=uri)
    for ours, theirs in zip(found["ours"][:2], found["theirs"][:2]):
        assert_same(ours, theirs, name)
    assert found["ours"][2] == found["theirs"][2]
    # The version before the change is what it was.
    for side in sides.values():
        for s in sides:
            past = side.run("return lance.dataset(uri, version=2).to_table()", uri=str(tmp_path / s))
            assert_same(past, ROWS.filter(pa.array([i != 3 for i in range(12)])), f"{name}: the version before")


@pytest.mark.parametrize("name", ["add computed", "rename", "drop", "nullable", "merge"])
def test_indices_follow_their_columns(name, ours, theirs, tmp_path):
    """An index by the real package: kept where its column stays, gone where it does not, never in the way."""
    make = """
ds = lance.write_dataset(data, uri, max_rows_per_file=5)
ds.create_scalar_index('a', 'BTREE', name='on_a')
ds.create_scalar_index('b', 'BITMAP', name='on_b')
ds.delete('id = 3')
"""
    left = "ds = lance.dataset(uri)\nreturn sorted(i.name for i in ds.describe_indices()), ds.to_table(filter=\"b = 't1'\"), ds.to_table(filter=\"b = 't1' AND id > 1\")"
    found = {}
    for s, side in (("ours", ours), ("theirs", theirs)):
        uri = str(tmp_path / s)
        theirs.run(make, uri=uri, data=ROWS)
        side.run("ds = lance.dataset(uri)\n" + CHANGES[name], uri=uri)
        found[s] = theirs.run(left, uri=uri)
    assert found["ours"][0] == found["theirs"][0] == (["on_b"] if name == "drop" else ["on_a", "on_b"])
    for ours_table, theirs_table in zip(found["ours"][1:], found["theirs"][1:]):
        assert_same(ours_table, theirs_table, name)


def test_indexed_columns_are_not_cast(ours, theirs, tmp_path):
    theirs.run("ds = lance.write_dataset(data, uri)\nds.create_scalar_index('a', 'BTREE', name='on_a')", uri=str(tmp_path / "t"), data=ROWS)
    for side in (ours, theirs):
        with pytest.raises(SideError, match=r"Cannot cast column\(s\) \[a\] to a new type: they have 1 index\(es\) attached: \[on_a\]"):
            side.run("ds = lance.dataset(uri)\n" + CHANGES["cast"], uri=str(tmp_path / "t"))
    other = "lance.dataset(uri).alter_columns({'path': 'b', 'data_type': t})"
    ours.run(other, uri=str(tmp_path / "t"), t=pa.large_utf8())
    theirs.run(other, uri=str(tmp_path / "t"), t=pa.utf8())


@pytest.mark.parametrize("version", ["2.1", "2.2"])
def test_blobs_stay_untouched(version, ours, theirs, tmp_path):
    blob = pa.field("blob", pa.large_binary(), metadata={"lance-encoding:blob": "true"})
    data = pa.table([list(range(4)), [b"x" * 10, None, b"", b"y" * 100000]], pa.schema([pa.field("id", pa.int64()), blob]))
    uri = str(tmp_path / "t")
    theirs.run("lance.write_dataset(data, uri, data_storage_version=version, max_rows_per_file=2)", uri=uri, data=data, version=version)
    ours.run(
        """
ds = lance.dataset(uri)
ds.add_columns({'c': 'id * 2'})
ds.alter_columns({'path': 'id', 'data_type': pa.int32()}, {'path': 'blob', 'name': 'bytes'})
""",
        uri=uri,
    )
    read = "ds = lance.dataset(uri)\nreturn [f.readall() for f in ds.take_blobs('bytes', indices=[0, 2, 3])], ds.to_table(columns=['id', 'c'])"
    for side in (ours, theirs):
        blobs, rest = side.run(read, uri=uri)
        assert blobs == [b"x" * 10, b"", b"y" * 100000]
        assert rest["id"].to_pylist() == [0, 1, 2, 3] and rest["c"].to_pylist() == [0, 2, 4, 6]
