"""Blob columns of tables: contents by row, in frames, and by what results carry; against the values that were written."""

import asyncio
import random

import glaive
import pyarrow as pa
import pytest
from testing import SEED

LEGACY = pa.field("b", pa.large_binary(), metadata={"lance-encoding:blob": "true"})


def rows_of(r, first, n):
    sizes = [0, 1, 50, 70_000]  # in the data file, in files shared with others
    return [{"id": first + i, "b": r.choice([None, r.randbytes(r.choice(sizes))])} for i in range(n)]


@pytest.fixture(params=["legacy", "new", "stable ids"])
def lived_in(request, tmp_path):
    """A table of several fragments with deletions, and its rows."""
    r = random.Random(SEED)
    field = LEGACY if request.param == "legacy" else glaive.blob("b")
    options = {"new_table_enable_stable_row_ids": "true"} if request.param == "stable ids" else None
    schema = pa.schema([pa.field("id", pa.int64()), field])
    table = glaive.connect(tmp_path).create_table("t", schema=schema, storage_options=options)
    rows = []
    for start in (0, 40, 80):
        some = rows_of(r, start, 40)
        table.add(some)
        rows += some
    gone = set(r.sample(range(120), 30))
    table.delete(f"id IN ({', '.join(map(str, gone))})")
    return table, [row for row in rows if row["id"] not in gone]


def frame_rows(frame):
    return [{k: v.read() if hasattr(v, "read") else v for k, v in row.items()} for row in frame.to_dict("records")]


def test_frames_show_what_was_written(lived_in):
    table, rows = lived_in
    for mode in ("lazy", "bytes"):
        assert frame_rows(table.to_pandas(blob_mode=mode)) == rows
        some = table.search().where("id % 3 = 0").select({"x": "b", "n": "id * 2"}).limit(9).offset(2).to_pandas(blob_mode=mode)
        assert frame_rows(some) == [{"x": row["b"], "n": row["id"] * 2} for row in rows if row["id"] % 3 == 0][2:11]
    sizes = [None if d is None else d["size"] for d in table.to_pandas(blob_mode="descriptions")["b"]]
    assert sizes == [None if row["b"] is None else len(row["b"]) for row in rows]


def test_contents_by_row_id_and_by_results(lived_in):
    table, rows = lived_in
    ids = table.search().with_row_id(True).select(["id"]).to_arrow()
    by_id = dict(zip(ids["id"].to_pylist(), ids["_rowid"].to_pylist()))
    r = random.Random(SEED)
    asked = [r.choice(rows) for _ in range(60)]
    row_ids = [by_id[row["id"]] for row in asked]
    assert table.fetch_blobs("b", row_ids).to_pylist() == [row["b"] for row in asked]
    assert [f if f is None else f.read() for f in table.fetch_blob_files("b", row_ids)] == [row["b"] for row in asked]
    parts = [(i, *sorted(r.randint(0, len(row["b"] or b"")) for _ in range(2))) for i, row in zip(row_ids, asked)]
    want = [None if row["b"] is None else row["b"][start:end] for row, (_, start, end) in zip(asked, parts)]
    assert table.fetch_blob_ranges("b", [(i, start, end - start) for i, start, end in parts]).to_pylist() == want
    hits = table.search().with_row_id(True).to_arrow().sort_by([("id", "descending")])
    assert table.fetch_blobs("b", hits).to_pylist() == [row["b"] for row in reversed(rows)]
    with pytest.raises(ValueError, match="do not exist"):
        table.fetch_blobs("b", [row_ids[0], 1 << 50])


def test_results_carry_row_ids_through_sorting_and_slicing(tmp_path):
    r = random.Random(SEED)
    rows = [{"id": i, "s": {"b": r.choice([None, r.randbytes(9)])}, "v": [float(i), 0.0]} for i in range(30)]
    rows[4]["s"] = None
    schema = pa.schema([pa.field("id", pa.int64()), pa.field("s", pa.struct([glaive.blob("b")])), pa.field("v", glaive.vector(2))])
    table = glaive.connect(tmp_path).create_table("t", rows, schema=schema)
    want = {row["id"]: (row["s"] or {}).get("b") for row in rows}
    for query in (table.search(), table.search([3.0, 0.0]).limit(12), table.take_offsets([1, 5, 20]), table.search().select(["id", "s"])):
        hits = query.to_arrow()
        assert "_rowid" not in hits.column_names
        hits = hits.sort_by([("id", "descending")]).slice(2)
        assert table.fetch_blobs("s.b", hits).to_pylist() == [want[i] for i in hits["id"].to_pylist()]
    flat = table.search().select(["id", "s.b"]).to_arrow()
    assert flat.column_names == ["id", "s.b"]
    flat.validate(full=True)
    assert table.fetch_blobs("s.b", flat).to_pylist() == [want[i] for i in flat["id"].to_pylist()]
    whole = frame_rows(table.to_pandas(blob_mode="bytes"))
    assert [(row["s"] or {}).get("b") for row in whole] == list(want.values()) and whole[4]["s"] is None
    struct = table.to_lance().take([1], columns=["s.b"])
    struct.validate(full=True)
    assert struct.schema.field("s").type.field("b").type.get_field_index("blob_uri") >= 0


def test_shapes_that_cannot_be_frames_say_so(tmp_path):
    schema = pa.schema([pa.field("id", pa.int64()), glaive.blob("b"), pa.field("v", glaive.vector(2))])
    table = glaive.connect(tmp_path).create_table("t", [{"id": 1, "b": b"x", "v": [0.0, 0.0]}], schema=schema)
    for query in (table.search([0.0, 0.0]), table.take_offsets([0])):
        for mode in ("lazy", "bytes", "descriptions"):
            with pytest.raises(RuntimeError, match="plain scan query"):
                query.to_pandas(blob_mode=mode)
    assert table.search([0.0, 0.0]).select(["id"]).to_pandas()["id"].tolist() == [1]
    lists = pa.schema([pa.field("l", pa.list_(glaive.blob("b")))])
    many = glaive.connect(tmp_path).create_table("l", [{"l": [b"a", b"b"]}], schema=lists)
    with pytest.raises(NotImplementedError, match="inside lists"):
        many.to_pandas(blob_mode="bytes")


def test_with_fragments(tmp_path):
    table = glaive.connect(tmp_path).create_table("t", [{"a": 1}])
    table.add([{"a": 2}])
    second = table.to_lance().get_fragments()[1]
    assert table.search().with_fragments([second]).to_arrow()["a"].to_pylist() == [2]
    with pytest.raises(TypeError, match="LanceFragments"):
        table.search().with_fragments([1])


def test_async_tables(tmp_path):
    async def main():
        db = await glaive.connect_async(tmp_path)
        table = await db.create_table("t", [{"b": b"one"}, {"b": None}], schema=pa.schema([glaive.blob("b")]))
        assert frame_rows(await table.to_pandas()) == [{"b": b"one"}, {"b": None}]
        assert await (await table.fetch_blob_files("b", await table.query().to_arrow()))[0].aread() == b"one"

    asyncio.run(main())
