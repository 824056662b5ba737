"""Computed columns against a model that evaluates the expression in Python, and columns of single fragments."""

import random
import threading

import glaive
import glaive.lance as lance
import pyarrow as pa
import pytest
from testing import SEED


@pytest.mark.parametrize("stable", ["false", "true"])
def test_refreshes_after_changes_of_all_kinds(tmp_path, stable):
    r = random.Random(f"{SEED}-{stable}")
    options = {"new_table_enable_stable_row_ids": stable}
    value = lambda: r.choice([None, r.randint(-5, 5)])  # noqa: E731
    rows = {i: value() for i in range(30)}
    table = glaive.connect(tmp_path).create_table("t", [{"id": i, "a": a} for i, a in rows.items()], storage_options=options)
    table.add_columns(computed={"c": "coalesce(a, 0) * 2 + id", "f": "CAST(a AS DOUBLE) / 0.0"})
    for step in range(12):
        kind = r.choice(["add", "update", "delete", "merge", "optimize"])
        if kind == "add":
            new = {max(rows, default=0) + 1 + i: value() for i in range(r.randint(1, 5))}
            table.add([{"id": i, "a": a} for i, a in new.items()])
            rows.update(new)
        elif kind == "update" and rows:
            some = r.sample(sorted(rows), min(3, len(rows)))
            table.update(where=f"id IN ({', '.join(map(str, some))})", values={"a": 7})
            rows.update(dict.fromkeys(some, 7))
        elif kind == "delete" and rows:
            gone = r.choice(sorted(rows))
            table.delete(f"id = {gone}")
            del rows[gone]
        elif kind == "merge" and rows:
            some = {i: value() for i in r.sample(sorted(rows), min(2, len(rows)))}
            data = pa.table({"id": pa.array(list(some), pa.int64()), "a": pa.array(list(some.values()), pa.int64())})
            table.merge_insert("id").when_matched_update_all().when_not_matched_insert_all().execute(data)
            rows.update(some)
        else:
            table.optimize()
        table.refresh_column("c")
        stored = {row["id"]: (row["a"], row["c"]) for row in table.to_arrow().to_pylist()}
        assert stored == {i: (a, (a or 0) * 2 + i) for i, a in rows.items()}, (step, kind)
        version = table.version
        assert table.refresh_column("c").rows_filled == 0 and table.version == version
    table.refresh_column("f")  # infinities, and 0 / 0
    assert table.refresh_column("f").rows_filled == 0


def test_only_fragments_that_need_it_are_rewritten(tmp_path):
    table = glaive.connect(tmp_path).create_table("t", [{"a": 1}])
    table.add_columns(computed={"c": "a + 1"})
    table.refresh_column("c")
    files = lambda: [[f.path for f in fragment.data_files()] for fragment in table.to_lance().get_fragments()]  # noqa: E731
    before = files()
    table.add([{"a": 2}])
    assert table.refresh_column("c").rows_filled == 1
    after = files()
    assert after[0] == before[0] and len(after[1]) == 2
    assert table.to_lance().validate() is None


def test_a_failing_expression_changes_nothing(tmp_path):
    table = glaive.connect(tmp_path).create_table("t", [{"a": 1, "b": 1}, {"a": 1, "b": 0}])
    table.add_columns(computed={"c": "a / b"})
    version = table.version
    with pytest.raises(RuntimeError):
        table.refresh_column("c")
    assert table.version == version and table.to_arrow()["c"].to_pylist() == [None, None]


@pytest.mark.parametrize(
    "expression",
    ["random()", "a + random()", "now()", "CURRENT_TIMESTAMP", "current_date()", "today()", "uuid()", "coalesce(a, cast(random() AS BIGINT))"],
)
def test_expressions_that_change_by_themselves_are_refused(tmp_path, expression):
    table = glaive.connect(tmp_path).create_table("t", [{"a": 1}])
    with pytest.raises(RuntimeError, match="not deterministic"):
        table.add_columns(computed={"b": "a + 1", "c": expression})
    assert table.version == 1 and table.schema.names == ["a"]
    table.add_columns({"c": expression})  # evaluated once: that is no secret
    assert table.to_arrow()["c"].null_count == 0


@pytest.mark.parametrize("name", ["_rowid", "_rowaddr", "_rowoffset", "_row_created_at_version", "_row_last_updated_at_version"])
def test_meta_columns_are_no_inputs(tmp_path, name):
    table = glaive.connect(tmp_path).create_table("t", [{"a": 1}])
    for how in ({"computed": {"c": name}}, {"computed": {"c": f"a + {name}"}}, {"transforms": {"c": name}}, {"transforms": {"c": f"a + {name}"}}):
        with pytest.raises(ValueError, match=name):
            table.add_columns(**how)
    assert table.version == 1
    ds = table.to_lance()
    with pytest.raises(OSError, match=name):
        ds.add_columns({"c": name})
    with pytest.raises(ValueError, match=name):
        ds.get_fragments()[0].merge_columns({"c": name})
    assert lance.dataset(ds.uri).version == 1


def test_a_computed_column_of_another_one(tmp_path):
    table = glaive.connect(tmp_path).create_table("t", [{"a": i} for i in range(3)])
    with pytest.raises(RuntimeError, match="'p2'.*'p1'"):
        table.add_columns(computed={"p2": "p1 * 2", "p1": "a + 1"})
    with pytest.raises(RuntimeError):
        table.add_columns(computed={"p1": "p1 + 1"})
    table.add_columns(computed={"p1": "nullif(a, 0) + 1", "p2": "p1 * 2.5"})
    assert table.schema.field("p2").type == pa.float64()
    version = table.version
    with pytest.raises(ValueError, match="reads 'p1', which has 2 unfilled rows; refresh 'p1' first"):
        table.refresh_column("p2")
    assert table.version == version
    table.refresh_column("p1")
    assert table.refresh_column("p2").rows_filled == 2
    assert table.to_arrow()["p2"].to_pylist() == [None, 5.0, 7.5]
    for gone in (["a"], ["p1"], ["a", "p1"]):
        with pytest.raises(ValueError, match="read by computed column"):
            table.drop_columns(gone)
    table.add_columns(pa.field("z", pa.int32()))
    table.drop_columns(["a", "p1", "p2"])
    assert table.schema.names == ["z"]


def test_computed_values_are_written_by_nobody(tmp_path):
    db = glaive.connect(tmp_path)
    table = db.create_table("t", [{"a": 1}])
    table.add_columns(computed={"c": "a + 1"})
    table.refresh_column("c")
    rows = table.to_arrow()
    version = table.version
    calls = (
        lambda: table.add(rows),
        lambda: table.add(rows, mode="overwrite"),
        lambda: table.update(values={"c": 1}),
        lambda: table.merge_insert("a").when_matched_update_all().execute(rows),
        lambda: db.create_table("u", rows),
        lambda: db.create_table("u", rows.to_reader()),
        lambda: db.create_table("u", [{"a": 1, "c": 9}], schema=table.schema),
    )
    for call in calls:
        with pytest.raises(ValueError, match="'c' is computed"):
            call()
    assert table.version == version and db.table_names() == ["t"]
    other = db.create_table("u", schema=table.schema)  # a declaration alone is welcome
    other.add([{"a": 5}])
    assert other.refresh_column("c").rows_filled == 1 and other.to_arrow()["c"].to_pylist() == [6]
    table.add([{"a": 7}], mode="overwrite")
    assert table.schema.names == ["a"]


def test_refresh_beside_writers(tmp_path):
    table = glaive.connect(tmp_path).create_table("t", [{"a": 0}])
    table.add_columns(computed={"c": "a * 10"})

    def write():
        other = glaive.connect(tmp_path).open_table("t")
        for i in range(1, 9):
            other.add([{"a": i}])
            other.update(where=f"a = {i}", values={"a": i + 100})

    thread = threading.Thread(target=write)
    thread.start()
    while thread.is_alive():
        table.refresh_column("c")
    thread.join()
    table.refresh_column("c")
    rows = table.to_arrow().to_pylist()
    assert sorted(row["a"] for row in rows) == [0, *range(101, 109)] and all(row["c"] == row["a"] * 10 for row in rows)


def test_columns_of_fragments_keep_deleted_rows_out(tmp_path):
    uri = str(tmp_path / "t.lance")
    lance.write_dataset(pa.table({"a": list(range(20)), "s": [{"x": i} for i in range(20)]}), uri, max_rows_per_file=7)
    ds = lance.dataset(uri)
    ds.delete("a % 3 = 0")
    fragments = [f.merge_columns({"b": "a + 1", "t": "s"}, batch_size=2) for f in ds.get_fragments()]
    assert lance.dataset(uri).version == ds.version  # nothing is committed
    ds = lance.LanceDataset.commit(uri, lance.LanceOperation.Merge([f for f, _ in fragments], fragments[0][1]), read_version=ds.version)
    want = [i for i in range(20) if i % 3]
    assert ds.to_table().to_pydict() == {"a": want, "s": [{"x": i} for i in want], "b": [i + 1 for i in want], "t": [{"x": i} for i in want]}
    new = pa.table({"a": [1, 4, 500], "s": [{"x": -1}, None, {"x": 0}]})
    for wrong in (pa.table({"a": [1], "b": [1.0]}), pa.table({"a": [1], "b": pa.array([1], pa.int32())}), pa.table({"a": [1.0], "b": [1]})):
        with pytest.raises(ValueError, match="type"):
            ds.get_fragments()[0].update_columns(wrong, left_on="a")
    made = [f.update_columns(new, left_on="a") for f in ds.get_fragments()]
    operation = lance.LanceOperation.Update(updated_fragments=[f for f, _ in made], fields_modified=made[0][1], update_mode="rewrite_columns")
    ds = lance.LanceDataset.commit(uri, operation, read_version=ds.version)
    assert ds.to_table()["s"].to_pylist() == [{1: {"x": -1}, 4: None}.get(i, {"x": i}) for i in want]
    assert ds.to_table()["t"].to_pylist() == [{"x": i} for i in want]
    ds.validate()
    with pytest.raises(ValueError, match="more values"):
        ds.get_fragments()[0].merge_columns(pa.table({"z": list(range(9))}).to_reader())


def test_pydantic_objects_as_a_dataset(tmp_path, monkeypatch):
    from typing import Optional

    from glaive.pydantic import LanceModel

    class BirdNote(LanceModel):
        a: int
        b: Optional[str] = None

    monkeypatch.chdir(tmp_path)
    ds = lance.LanceDataset.from_pydantic_model(BirdNote, [BirdNote(a=1), BirdNote(a=2, b="x")])
    assert ds.uri.endswith("bird_note") and ds.to_table().to_pylist() == [{"a": 1, "b": None}, {"a": 2, "b": "x"}]
    for data, error in (([], ValueError), ([1], TypeError)):
        with pytest.raises(error):
            lance.LanceDataset.from_pydantic_model(BirdNote, data, tmp_path / "x")
    with pytest.raises(TypeError):
        lance.LanceDataset.from_pydantic_model(dict, [{}])
