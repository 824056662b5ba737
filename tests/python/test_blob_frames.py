"""Frames of tables with blob columns: descriptions where they are asked for, otherwise a refusal by name."""

import asyncio

import glaive
import pyarrow as pa
import pytest

BLOB = pa.field("b", pa.large_binary(), metadata={"lance-encoding:blob": "true"})
SCHEMA = pa.schema([pa.field("id", pa.int64()), BLOB])


@pytest.fixture
def table(tmp_path):
    return glaive.connect(tmp_path).create_table("t", pa.table([[1, 2], pa.array([b"x", b"yz"], BLOB.type)], SCHEMA))


@pytest.mark.parametrize("mode", ["lazy", "bytes"])
def test_contents_are_refused_by_name(table, mode):
    for call in (table.to_pandas, table.search().to_pandas):
        with pytest.raises(NotImplementedError, match="blob column 'b'"):
            call(blob_mode=mode)


def test_descriptions_and_other_columns_work(table):
    frame = table.to_pandas(blob_mode="descriptions")
    assert [d["size"] for d in frame["b"]] == [1, 2]
    assert table.search().select(["id"]).to_pandas()["id"].tolist() == [1, 2]


def test_the_async_table_refuses_too(table, tmp_path):
    async def run():
        t = await (await glaive.connect_async(tmp_path)).open_table("t")
        with pytest.raises(NotImplementedError, match="blob column 'b'"):
            await t.to_pandas()
        return await t.to_pandas(blob_mode="descriptions")

    assert asyncio.run(run())["id"].tolist() == [1, 2]
