"""Names that a column cannot have, on every way in; and columns that a search would hide."""

import glaive
import glaive.lance as lance
import pyarrow as pa
import pytest

META = ["_rowid", "_rowaddr", "_rowoffset", "_row_created_at_version", "_row_last_updated_at_version"]


def rows(name):
    return pa.Table.from_arrays([pa.array([1, 2]), pa.array([3, 4])], names=["x", name])


@pytest.mark.parametrize("name", [*META, "a.b", ""])
def test_names_that_no_column_may_have(tmp_path, name):
    db = glaive.connect(tmp_path)
    calls = (
        lambda: db.create_table("new", rows(name)),
        lambda: db.create_table("new", schema=rows(name).schema),
        lambda: lance.write_dataset(rows(name), tmp_path / "new.lance"),
        lambda: lance.fragment.write_fragments(rows(name), str(tmp_path / "new.lance"), mode="create"),
    )
    for call in calls:
        with pytest.raises(ValueError) as caught:
            call()
        assert isinstance(caught.value, (RuntimeError, OSError)) and not isinstance(caught.value, FileNotFoundError)
        assert db.table_names() == []
    table = db.create_table("t", rows("y"))
    ds = table.to_lance()
    calls = (
        lambda: table.add(rows(name), mode="overwrite"),
        lambda: db.create_table("t", rows(name), mode="overwrite"),
        lambda: table.add(rows(name)),
        lambda: table.add_columns({name: "y + 1"}),
        lambda: table.add_columns(pa.field(name, pa.int64())),
        lambda: table.add_columns(computed={name: "y + 1"}),
        lambda: table.alter_columns({"path": "y", "rename": name}),
        lambda: table.merge(rows(name), "x"),
        lambda: table.merge_insert("x").when_matched_update_all().when_not_matched_insert_all().execute(rows(name)),
        lambda: lance.write_dataset(rows(name), ds.uri, mode="overwrite"),
        lambda: ds.add_columns({name: "y + 1"}),
        lambda: ds.alter_columns({"path": "y", "name": name}),
        lambda: ds.merge(rows(name), "x"),
        lambda: ds.get_fragments()[0].merge_columns({name: "y + 1"}),
    )
    for call in calls:
        with pytest.raises(ValueError):
            call()
        assert lance.dataset(ds.uri).version == 1
    assert table.to_arrow() == rows("y")


def test_names_that_come_twice(tmp_path):
    db = glaive.connect(tmp_path)
    with pytest.raises(RuntimeError, match="Duplicate"):
        db.create_table("t", rows("x"))
    with pytest.raises(OSError, match="Duplicate"):
        lance.write_dataset(rows("x"), tmp_path / "t.lance")
    assert db.table_names() == []
    # Names that differ in case are two names, here as upstream.
    table = db.create_table("t", rows("X"))
    with pytest.raises(ValueError, match="X"):
        table.alter_columns({"path": "x", "rename": "X"})
    assert table.to_arrow() == rows("X")


def test_names_of_a_search_are_free_until_it_searches(tmp_path):
    vectors = pa.FixedSizeListArray.from_arrays(pa.array([0.0, 0, 1, 1], pa.float32()), 2)
    db = glaive.connect(tmp_path)
    table = db.create_table("t", pa.table({"vector": vectors, "_distance": [10.0, 20.0], "query_index": [7, 8]}))
    assert table.search().where("_distance > 15").to_arrow()["query_index"].to_pylist() == [8]
    searches = (
        lambda: table.search([0.0, 0.0]).to_list(),
        lambda: table.search([0.0, 0.0]).select(["vector"]).to_list(),
        lambda: table.search([0.0, 0.0]).where("_distance > 15").to_list(),
        lambda: table.search([[0.0, 0.0], [1.0, 1.0]]).to_list(),
        lambda: table.to_lance().to_table(nearest={"column": "vector", "q": [0.0, 0.0], "k": 1}),
    )
    for search in searches:
        with pytest.raises((RuntimeError, ValueError), match="_distance"):
            search()
    table.alter_columns({"path": "_distance", "rename": "far"})
    assert [row["query_index"] for row in table.search([1.0, 1.0]).limit(1).to_list()] == [8]
    with pytest.raises(ValueError, match="query_index"):
        table.search([[0.0, 0.0], [1.0, 1.0]]).to_list()
    table.drop_columns(["query_index"])
    assert table.search([[0.0, 0.0], [1.0, 1.0]]).limit(1).to_arrow()["query_index"].to_pylist() == [0, 1]
