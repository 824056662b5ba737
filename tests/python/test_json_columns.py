"""JSON columns: text for users, JSONB in the files, at every level of nesting."""

import json

import glaive
import glaive.lance as lance
import pyarrow as pa

VALUES = ['{"a":1,"b":[1,2.5,null,true,"x"]}', None, "3", '"é"', "[]", "-0.0"]


def _texts(column):
    return [None if v is None else json.loads(v) for v in column]


EXPECTED = _texts(VALUES)


def test_json_text_comes_back_through_every_read(tmp_path):
    table = pa.table({"i": range(6), "j": pa.array(VALUES, pa.json_())})
    ds = lance.write_dataset(table, tmp_path / "t.lance")
    ds = lance.write_dataset(table.slice(2), tmp_path / "t.lance", mode="append")
    assert ds.schema.field("j").type == pa.json_()
    assert _texts(ds.to_table()["j"].to_pylist()) == EXPECTED + EXPECTED[2:]
    assert _texts(ds.to_table(filter="i = 3", columns=["j"])["j"].to_pylist()) == [EXPECTED[3]] * 2
    assert _texts(ds.take([4, 0])["j"].to_pylist()) == [EXPECTED[4], EXPECTED[0]]
    assert ds.count_rows("j IS NULL") == 1
    batches = list(ds.to_batches(batch_size=4))
    assert all(b.schema == ds.schema for b in batches)


def test_json_inside_lists_and_structs(tmp_path):
    member = pa.struct([pa.field("k", pa.string()), pa.field("doc", pa.json_())])
    rows = [[{"k": "a", "doc": '{"x":1}'}, {"k": "b", "doc": None}], None, []]
    storage = pa.array(rows, pa.list_(pa.struct([("k", pa.string()), ("doc", pa.string())])))
    items = storage.values
    docs = pa.ExtensionArray.from_storage(pa.json_(), items.field("doc"))
    structs = pa.StructArray.from_arrays([items.field("k"), docs], fields=list(member))
    column = pa.ListArray.from_arrays(storage.offsets, structs, mask=storage.is_null())
    db = glaive.connect(tmp_path)
    t = db.create_table("docs", pa.table({"docs": column}))
    t.add(pa.table({"docs": column}))
    assert t.to_arrow().schema.field("docs").type.value_type.field("doc").type == pa.json_()
    assert t.to_arrow()["docs"].to_pylist() == rows * 2


def test_text_that_is_not_json_leaves_the_table_alone(tmp_path):
    ds = lance.write_dataset(pa.table({"j": pa.array(["1"], pa.json_())}), tmp_path / "t.lance")
    try:
        lance.write_dataset(pa.table({"j": pa.array(["{nope"], pa.json_())}), ds.uri, mode="append")
    except ValueError as e:
        assert "'j'" in str(e)
    else:
        raise AssertionError("accepted")
    assert lance.dataset(ds.uri).version == 1
