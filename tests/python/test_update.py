"""`update`: values of every type, expressions, what stays untouched, and what is refused."""

import asyncio
import datetime as dt
import decimal
import pathlib
import threading
import uuid

import numpy as np
import pyarrow as pa
import pytest

import glaive
import glaive.lance

SCHEMA = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        ("i8", pa.int8()),
        ("f", pa.float64()),
        ("s", pa.string()),
        ("raw", pa.binary()),
        ("flag", pa.bool_()),
        ("day", pa.date32()),
        ("at", pa.timestamp("us")),
        ("utc", pa.timestamp("us", tz="UTC")),
        ("price", pa.decimal128(12, 3)),
        ("v", pa.list_(pa.float32(), 3)),
        ("tags", pa.list_(pa.string())),
        ("p", pa.struct([("x", pa.int32()), ("y", pa.list_(pa.int16()))])),
        ("word", pa.dictionary(pa.int16(), pa.string())),
    ]
)


def row(i):
    return {
        "id": i,
        "i8": i % 100,
        "f": i / 4,
        "s": f"text {i}",
        "raw": bytes([i % 256, 0]),
        "flag": i % 2 == 0,
        "day": dt.date(2020, 1, 1) + dt.timedelta(i),
        "at": dt.datetime(2021, 1, 1) + dt.timedelta(seconds=i),
        "utc": dt.datetime(2022, 1, 1, tzinfo=dt.timezone.utc) + dt.timedelta(seconds=i),
        "price": decimal.Decimal(i).scaleb(-3),
        "v": [float(i), 0.5, -1.0],
        "tags": [f"t{i}", "all"] if i % 3 else None,
        "p": {"x": i, "y": [i, i]} if i % 4 else None,
        "word": f"w{i % 5}",
    }


@pytest.fixture
def table(tmp_path):
    db = glaive.connect(tmp_path)
    t = db.create_table("t", pa.Table.from_pylist([row(i) for i in range(20)], SCHEMA))
    t.add(pa.Table.from_pylist([row(i) for i in range(20, 50)], SCHEMA))
    return t


def rows(t):
    return {r["id"]: r for r in t.to_arrow().to_pylist()}


def files_of(t):
    return sorted(p for p in pathlib.Path(t.uri).rglob("*") if p.is_file())


NEW = {
    "i8": -7,
    "f": float("inf"),
    "s": "O'Hara \"q\" \\ größe",
    "raw": b"\x00'\xff",
    "flag": True,
    "day": dt.date(1960, 2, 29),
    "at": dt.datetime(1999, 12, 31, 23, 59, 59, 999999),
    "utc": dt.datetime(1999, 12, 31, tzinfo=dt.timezone.utc),
    "price": decimal.Decimal("-123456789.125"),
    "v": [1.5, 2.5, 3.5],
    "tags": ["a", None, "it's"],
    "p": {"x": None, "y": [1, 2, 3]},
    "word": "new word",
}


@pytest.mark.parametrize("column", list(NEW))
def test_each_type(table, column):
    result = table.update("id = 7 OR id = 33", {column: NEW[column]})
    assert (result.rows_updated, result.version) == (2, 3)
    expected = {i: row(i) for i in range(50)}
    for i in (7, 33):
        expected[i][column] = NEW[column]
    assert rows(table) == expected
    table.update("id = 7", {column: None})
    expected[7][column] = None
    assert rows(table) == expected


def test_all_at_once_and_order(table):
    table.update("id >= 10 AND id < 15", NEW)
    ids = table.to_arrow()["id"].to_pylist()
    assert ids == [*range(10), *range(15, 50), *range(10, 15)]
    assert rows(table)[12] == {"id": 12, **NEW}


def test_expressions_see_the_old_row(table):
    table.update("id < 4", values_sql={"f": "id * 2 + f", "i8": "id", "s": "s || '!'"})
    for i in range(4):
        assert rows(table)[i] == {**row(i), "f": i * 2 + i / 4, "i8": i, "s": f"text {i}!"}
    table.update(values_sql={"id": "id + 100"})
    assert sorted(rows(table)) == list(range(100, 150))


@pytest.mark.parametrize(
    "value",
    [np.array([1.0, 2.0, 3.0]), np.float32([1, 2, 3]), (1, 2, 3), pa.scalar([1.0, 2.0, 3.0], pa.list_(pa.float32(), 3))],
    ids=["double", "float", "tuple", "scalar"],
)
def test_vectors(table, value):
    table.update("id = 1", {"v": value})
    assert rows(table)[1]["v"] == [1.0, 2.0, 3.0]


# What lancedb 0.40.0 stores: a value of another kind is cast as SQL casts a literal.
@pytest.mark.parametrize(
    "column, value, stored",
    [
        ("i8", 1.5, 1),
        ("i8", -1.99, -1),
        ("i8", np.float32(1.5), 1),
        ("i8", "7", 7),
        ("i8", True, 1),
        ("f", 2, 2.0),
        ("f", "1e3", 1000.0),
        ("s", 5, "5"),
        ("s", True, "true"),
        ("s", [1, 2], "[1, 2]"),
        ("flag", 0, False),
        ("day", "2021-02-03", dt.date(2021, 2, 3)),
    ],
)
def test_values_of_another_kind(table, column, value, stored):
    table.update("id = 1", {column: value})
    assert table.search().where("id = 1").to_list()[0][column] == stored


def test_no_row_commits_a_version(table):
    result = table.update("id = 999", {"s": "x"})
    assert (result.rows_updated, result.version, table.version) == (0, 3, 3)


@pytest.mark.parametrize(
    "call, error",
    [
        (lambda t: t.update("id = 1"), ValueError),
        (lambda t: t.update("id = 1", {}), ValueError),
        (lambda t: t.update("id = 1", {"s": "a"}, values_sql={"s": "'a'"}), ValueError),
        (lambda t: t.update("", {"s": "a"}), ValueError),
        (lambda t: t.update("id = ", {"s": "a"}), ValueError),
        (lambda t: t.update("nope = 1", {"s": "a"}), ValueError),
        (lambda t: t.update("id = 1", {"nope": "a"}), ValueError),
        (lambda t: t.update("id = 1", values_sql={"nope": "1"}), ValueError),
        (lambda t: t.update("id = 1", values_sql={"i8": "i8 +"}), ValueError),
        (lambda t: t.update("id = 1", values_sql={"i8": "id + 1000"}), RuntimeError),
        (lambda t: t.update("id = 1", {"i8": 300}), ValueError),
        (lambda t: t.update("id = 1", {"day": 1.5}), ValueError),
        (lambda t: t.update("id = 1", {"i8": decimal.Decimal("1.5")}), NotImplementedError),
        (lambda t: t.update("id = 1", {"i8": uuid.UUID(int=1)}), NotImplementedError),
        (lambda t: t.update("id = 1", {"tags": {"a"}}), NotImplementedError),
        (lambda t: t.update("id = 1", {"v": [1.0, 2.0]}), ValueError),
        (lambda t: t.update("id = 1", {"id": None}), ValueError),
        (lambda t: t.update("id = 1", {"s": object()}), NotImplementedError),
        (lambda t: t.update("id = 1", {"p.x": 1}), NotImplementedError),
        (lambda t: t.update(5, {"s": "a"}), TypeError),
        (lambda t: t.update("id = 1", {5: "a"}), TypeError),
        (lambda t: t.update("id = 1", values_sql={"s": 5}), TypeError),
    ],
)
def test_refused(table, call, error):
    before = table.to_arrow()
    files = files_of(table)
    with pytest.raises(error):
        call(table)
    assert table.version == 2 and table.to_arrow().equals(before)
    assert files_of(table) == files


def test_pinned_table_refuses(table):
    table.checkout(1)
    with pytest.raises(ValueError, match="checked out"):
        table.update("id = 1", {"s": "a"})


def test_blobs_and_json_stay(tmp_path):
    schema = pa.schema([("k", pa.int32()), pa.field("b", pa.large_binary(), metadata={"lance-encoding:blob": "true"}), ("j", pa.json_())])
    json = pa.ExtensionArray.from_storage(pa.json_(), pa.array(['{"a":1}', None, "[1,2]"]))
    data = pa.table([pa.array([0, 1, 2], pa.int32()), pa.array([b"x" * 70000, None, b""], pa.large_binary()), json], schema=schema)
    ds = glaive.lance.write_dataset(data, tmp_path / "d.lance")
    assert ds.update({"k": "k + 10"}) == {"num_rows_updated": 3}
    assert [f.readall() for f in ds.take_blobs("b", indices=[0, 2])] == [b"x" * 70000, b""]
    assert ds.to_table(columns=["k", "j"]).to_pydict() == {"k": [10, 11, 12], "j": ['{"a":1}', None, "[1,2]"]}


def test_stable_row_ids_stay(tmp_path):
    ds = glaive.lance.write_dataset(pa.table({"k": range(30)}), tmp_path / "d.lance", enable_stable_row_ids=True)
    before = {r["k"]: r["_rowid"] for r in ds.to_table(with_row_id=True).to_pylist()}
    ds.update({"k": "k + 100"}, where="k % 3 = 1")
    after = {r["k"]: r["_rowid"] for r in ds.to_table(with_row_id=True).to_pylist()}
    assert after == {(k + 100 if k % 3 == 1 else k): i for k, i in before.items()}


def test_threads_all_succeed(table):
    def work(n):
        for i in range(4):
            table.update(f"id = {n * 4 + i}", values_sql={"f": "f + 1"})
            table.update("id = 49", values_sql={"f": "f + 1"})

    threads = [threading.Thread(target=work, args=(n,)) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = rows(table)
    assert len(found) == 50 and found[49]["f"] == 49 / 4 + 24
    assert all(found[i]["f"] == i / 4 + 1 for i in range(24))


def test_async(tmp_path):
    async def main():
        db = await glaive.connect_async(tmp_path)
        t = await db.create_table("t", [{"k": 1, "s": "a"}, {"k": 2, "s": "b"}])
        result = await t.update({"s": "c"}, where="k = 2")
        assert (result.rows_updated, result.version) == (1, 2)
        result = await t.update(updates_sql={"k": "k * 10"})
        assert (result.rows_updated, result.version) == (2, 3)
        with pytest.raises(ValueError):
            await t.update()
        assert (await t.to_arrow()).to_pylist() == [{"k": 10, "s": "a"}, {"k": 20, "s": "c"}]

    asyncio.run(main())


def test_blobs_of_the_second_kind_stay_with_their_rows(tmp_path):
    from glaive.lance import blob_array, blob_field

    schema = pa.schema([pa.field("k", pa.int64()), blob_field("b")])
    ds = glaive.lance.write_dataset(pa.table([pa.array([1, 2, 3]), blob_array([b"x", None, b"y" * 70_000])], schema=schema), tmp_path / "d.lance")
    ds.update({"k": "k + 1"})
    ds.merge_insert("k").when_matched_update_all().when_not_matched_insert_all().execute(pa.table({"k": [4, 9]}))
    ds = glaive.lance.dataset(ds.uri)
    keys = ds.to_table(columns=["k"])["k"].to_pylist()
    blobs = dict(zip(keys, (b for _, b in ds.read_blobs("b", indices=list(range(len(keys)))))))
    assert blobs == {2: b"x", 3: None, 4: b"y" * 70_000, 9: None}
