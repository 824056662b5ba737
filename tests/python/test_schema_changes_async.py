"""Columns changed through the async API, and what happens to rows that come meanwhile."""

import asyncio

import glaive
import pyarrow as pa
import pytest


@pytest.fixture
def data():
    return pa.table({"id": [1, 2, 3], "b": ["x", None, "z"]}, pa.schema([pa.field("id", pa.int64(), False), pa.field("b", pa.utf8())]))


async def test_columns_come_change_and_go(tmp_path, data):
    db = await glaive.connect_async(tmp_path)
    t = await db.create_table("t", data)
    assert (await t.add_columns({"c": "id * 2"})).version == 2
    assert (await t.add_columns(pa.field("n", pa.int32()))).version == 3
    assert (await t.alter_columns({"path": "c", "rename": "twice", "data_type": pa.int32()})).version == 4
    assert (await t.update_field_metadata({"path": "b", "metadata": {"k": "v"}})).version == 5
    await t.set_unenforced_primary_key("id")
    with pytest.warns(DeprecationWarning):
        await t.replace_field_metadata("b", {"l": "w"})
    assert (await t.drop_columns(["n"])).version == 8
    assert (await t.to_arrow()).to_pydict() == {"id": [1, 2, 3], "b": ["x", None, "z"], "twice": [2, 4, 6]}
    assert (await t.schema()).field("b").metadata == {b"l": b"w"}


async def test_changes_at_the_same_time(tmp_path, data):
    """Appends and new columns from many tasks: every row and every column is there, with the right values."""
    db = await glaive.connect_async(tmp_path)
    t = await db.create_table("t", data)
    work = []
    for i in range(4):
        work.append(t.add_columns({f"c{i}": f"nullif(id + {i}, -1)"}))
        work.append(t.add(pa.table({"id": [10 + i]}, pa.schema([pa.field("id", pa.int64(), False)]))))
    await asyncio.gather(*work)
    await t.checkout_latest()
    found = await t.to_arrow()
    assert sorted(found["id"].to_pylist()) == [1, 2, 3, 10, 11, 12, 13]
    for i in range(4):
        for row, value in zip(found["id"].to_pylist(), found[f"c{i}"].to_pylist()):
            # A row that came after the column has no value there.
            assert value == row + i or (value is None and row >= 10)
