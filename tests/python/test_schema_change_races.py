"""Rows and columns that change at the same time: the right values or a typed error, never wrong values.

The other writer works while our data are being read: a stream that changes the table before it gives its last batch.
"""

import glaive.lance as lance
import pyarrow as pa
import pytest
from glaive.exceptions import CommitConflictError, SchemaMismatchError

ROWS = pa.table({"id": [1, 2, 3, 4], "a": [10, 20, 30, 40], "b": ["p", "q", "r", None]})
MORE = pa.table({"id": [5, 6], "a": [50, 60], "b": ["s", "t"]})


@pytest.fixture
def uri(tmp_path):
    lance.write_dataset(ROWS, tmp_path / "t.lance", max_rows_per_file=2)
    return str(tmp_path / "t.lance")


def while_reading(uri, data, change):
    """`data` as a stream that lets another handle change the table before its last row."""

    def batches():
        yield from data.slice(0, data.num_rows - 1).to_batches()
        change(lance.dataset(uri))
        yield from data.slice(data.num_rows - 1).to_batches()

    return pa.RecordBatchReader.from_batches(data.schema, batches())


def drop_and_add(ds):
    ds.drop_columns(["a"])
    ds.add_columns(pa.field("a", pa.int64()))


def drop_and_add_text(ds):
    ds.drop_columns(["a"])
    ds.add_columns({"a": "'new'"})


CHANGES = {
    "cast": lambda ds: ds.alter_columns({"path": "a", "data_type": pa.int32()}),
    "rename": lambda ds: ds.alter_columns({"path": "a", "name": "z"}),
    "swap names": lambda ds: ds.alter_columns({"path": "a", "name": "id"}, {"path": "id", "name": "a"}),
    "drop": lambda ds: ds.drop_columns(["a"]),
    "drop and add under the same name": drop_and_add,
    "the same with another type": drop_and_add_text,
    "add computed": lambda ds: ds.add_columns({"c": "nullif(a, -1) + 1"}),
    "add required": lambda ds: ds.add_columns({"c": "1"}),
    "add nulls": lambda ds: ds.add_columns(pa.field("c", pa.int32())),
    "forbid nulls": lambda ds: ds.alter_columns({"path": "a", "nullable": False}),
}


@pytest.mark.parametrize("name", CHANGES)
def test_append_over_a_change(name, uri):
    try:
        lance.write_dataset(while_reading(uri, MORE, CHANGES[name]), uri, mode="append")
        appended = True
    except (CommitConflictError, SchemaMismatchError):
        appended = False
    ds = lance.dataset(uri)
    names = ds.schema.names
    key = "a" if name == "swap names" else "id"
    expected = ROWS.to_pylist() + (MORE.to_pylist() if appended else [])
    found = [dict(zip(names, row)) for row in zip(*(ds.to_table()[n].to_pylist() for n in names))]
    assert len(found) == len(expected)
    for row, want in zip(found, expected):
        fresh = want["id"] > 4
        assert row["b"] == want["b"] and row[key] == want["id"]
        if name in ("cast", "forbid nulls"):
            assert row["a"] == want["a"]  # a null here is what must never happen
        elif name == "rename":
            assert row["z"] == want["a"]
        elif name == "swap names":
            assert row["id"] == want["a"]
        elif name == "drop":
            assert "a" not in row
        elif name == "drop and add under the same name":
            assert row["a"] is None  # the dropped column's values must not come back
        elif name == "the same with another type":
            assert row["a"] == "new"
        elif name == "add computed":
            assert row["c"] == (None if fresh else want["a"] + 1)
        elif name == "add required":
            assert row["c"] == 1 and not fresh
        elif name == "add nulls":
            assert row["c"] is None
    # The handle works on.
    lance.write_dataset(ds.to_table(limit=1), uri, mode="append")
    assert lance.dataset(uri).count_rows() == len(expected) + 1


@pytest.mark.parametrize(
    "change",
    [
        lambda ds: lance.write_dataset(MORE, ds, mode="append"),
        lambda ds: ds.delete("id = 2"),
        lambda ds: ds.add_columns({"v": "a"}),
        lambda ds: ds.alter_columns({"path": "a", "data_type": pa.int32()}),
    ],
    ids=["append", "delete", "the same column", "cast"],
)
def test_given_values_over_a_change(change, uri, tmp_path):
    """Values given for the rows as they were: they fit no more, and nothing of them is left."""
    values = pa.table({"v": [1, 2, 3, 4]})
    ds = lance.dataset(uri)
    with pytest.raises(CommitConflictError):
        ds.add_columns(while_reading(uri, values, change))
    now = lance.dataset(uri)
    known = {f.path for version in now.versions() for fragment in now.checkout_version(version["version"]).get_fragments()
             for f in fragment.metadata.files}  # fmt: skip
    assert {p.name for p in (tmp_path / "t.lance" / "data").iterdir()} == known
    assert "v" not in now.schema.names or now.to_table()["v"].to_pylist() == ROWS["a"].to_pylist()


def test_stale_handles_change_columns(uri):
    """Changes through handles of an old version are made on the newest one."""
    stale = [lance.dataset(uri) for _ in range(4)]
    lance.write_dataset(MORE, uri, mode="append")
    stale[0].add_columns({"c": "a + 1"})
    stale[1].alter_columns({"path": "a", "data_type": pa.int32()})
    stale[2].alter_columns({"path": "b", "name": "text"})
    stale[3].add_columns(pa.field("n", pa.int8()))
    found = lance.dataset(uri).to_table()
    assert found.schema.names == ["id", "a", "text", "c", "n"]
    assert found["a"].type == pa.int32() and found["a"].to_pylist() == [10, 20, 30, 40, 50, 60]
    assert found["c"].to_pylist() == [11, 21, 31, 41, 51, 61]
