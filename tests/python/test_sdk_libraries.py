"""Tables and datasets as pandas, Polars, DuckDB and pyarrow see them."""

import datetime as dt

import glaive
import glaive.lance as lance
import numpy as np
import pyarrow as pa
import pyarrow.dataset
import pytest
from glaive.integrations.pyarrow import PyarrowDatasetAdapter

N = 5000


def rows(n=N):
    ids = np.arange(n)
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "f": pa.array([None if i % 7 == 0 else i / 2 for i in ids], pa.float64()),
            "s": pa.array([f"s{i % 10}" for i in ids]),
            "day": pa.array([dt.date(2024, 1, 1) + dt.timedelta(days=int(i) % 30) for i in ids]),
            "tags": pa.array([[str(i), "x"] if i % 2 else [] for i in ids]),
            "at": pa.array([{"x": int(i), "y": None} for i in ids], pa.struct([("x", pa.int32()), ("y", pa.string())])),
            "vector": pa.FixedSizeListArray.from_arrays(pa.array(ids.repeat(4), pa.float32()), 4),
        }
    )


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    table = glaive.connect(tmp_path_factory.mktemp("db")).create_table("t", rows(N // 2))
    table.add(rows().slice(N // 2))
    return table


SUMS = [(f"s{d}", N // 10, sum(i / 2 for i in range(N) if i % 10 == d and i % 7)) for d in range(10)]


def test_duckdb_finds_tables_and_datasets_in_variables(table):
    duckdb = pytest.importorskip("duckdb")
    birds, dataset = table, table.to_lance()
    scanner = dataset.scanner(columns=["s", "f", "id"])
    reader = table.search().select(["s", "f", "id"]).to_batches(700)
    adapter = PyarrowDatasetAdapter(table)
    assert all(x is not None for x in (birds, dataset, scanner, reader, adapter))
    for name in ("birds", "dataset", "scanner", "reader", "adapter"):
        got = duckdb.sql(f"SELECT s, count(*), sum(f) FROM {name} GROUP BY s ORDER BY s").fetchall()
        assert [(s, n, pytest.approx(f)) for s, n, f in SUMS] == got, name
    for name in ("birds", "dataset", "adapter"):  # once more: a table is no stream that runs dry
        got = duckdb.sql(f"SELECT id, \"at\".x, tags, day FROM {name} WHERE id >= 4990 AND f IS NOT NULL ORDER BY id LIMIT 3").fetchall()
        days = [dt.date(2024, 1, d) for d in (11, 13, 14)]
        assert got == [(4990, 4990, [], days[0]), (4992, 4992, [], days[1]), (4993, 4993, ["4993", "x"], days[2])], name
    connection = duckdb.connect()
    connection.register("birds", table)
    connection.register("other", pa.table({"id": [1, 2, 99999], "w": ["a", "b", "c"]}))
    assert connection.sql("SELECT w, s FROM other JOIN birds USING (id) ORDER BY w").fetchall() == [("a", "s1"), ("b", "s2")]
    assert connection.sql("SELECT max(id), sum(vector[1]) FROM birds").fetchall() == [(N - 1, sum(range(N)))]
    back = glaive.connect("memory://").create_table("from_duckdb", connection.sql("SELECT id, s FROM birds WHERE id < 3"))
    assert back.to_arrow().to_pylist() == [{"id": i, "s": f"s{i}"} for i in range(3)]


def test_polars_reads_and_feeds_tables(table):
    pl = pytest.importorskip("polars")
    frame = pl.DataFrame(table)
    assert frame.equals(pl.from_arrow(rows())) and pl.from_arrow(table.to_arrow()).equals(frame)
    lazy = table.to_polars().filter(pl.col("id") > 10).select("id", "s").head(2)
    assert lazy.collect().rows() == [(11, "s1"), (12, "s2")]
    assert table.to_polars().group_by("s").agg(pl.col("id").count()).sort("s").collect().rows() == [(f"s{d}", N // 10) for d in range(10)]
    assert pl.scan_pyarrow_dataset(table.to_lance()).filter(pl.col("id") == 7).select("s").collect().rows() == [("s7",)]
    copy = glaive.connect("memory://").create_table("t", frame)
    assert copy.to_arrow().select(["id", "f", "s", "day", "at"]).to_pylist() == table.to_arrow().select(["id", "f", "s", "day", "at"]).to_pylist()
    copy.add(frame.lazy().filter(pl.col("id") < 3))
    assert copy.count_rows() == N + 3


def test_pandas_round_trip(table):
    pd = pytest.importorskip("pandas")
    frame = table.to_pandas()
    assert len(frame) == N and frame["id"].sum() == sum(range(N)) and frame["f"].isna().sum() == len(range(0, N, 7))
    small = frame[frame["id"] < 5][["id", "f", "s"]].set_index("id", drop=False)
    copy = glaive.connect("memory://").create_table("t", small)
    assert copy.schema.names == ["id", "f", "s"]  # an index is no column
    assert b"pandas" not in (copy.schema.metadata or {})
    pd.testing.assert_frame_equal(copy.to_pandas(), small.reset_index(drop=True))


def test_arrow_streams_of_tables(table):
    assert pa.table(table).equals(table.to_arrow())
    reader = pa.RecordBatchReader.from_stream(table)
    assert reader.schema == table.schema and sum(b.num_rows for b in reader) == N
    narrow = pa.schema([("id", pa.int64())])
    assert table.to_lance().scanner(columns=["id"]).to_reader().schema == narrow


def test_the_adapter_scans_as_asked(table):
    dataset = PyarrowDatasetAdapter(table)
    assert isinstance(dataset, pyarrow.dataset.Dataset) and dataset.schema == table.schema
    assert dataset.count_rows("id < 12") == 12 and dataset.count_rows() == N
    assert dataset.to_table(columns=["s"], filter="id = 3").to_pylist() == [{"s": "s3"}]
    assert dataset.head(3, columns=["id"]).to_pylist() == [{"id": 0}, {"id": 1}, {"id": 2}]
    assert {b.num_rows for b in dataset.to_batches(batch_size=500)} == {500}
    scanner = dataset.scanner(columns=["id"], filter="id > 4997")
    assert scanner.count_rows() == 2 and scanner.projected_schema == pa.schema([("id", pa.int64())])
    with pytest.raises(NotImplementedError):
        dataset.scanner(use_threads=False)
    with pytest.raises(ValueError):
        scanner.head(0)


# --- readers of tables as data ------------------------------------------------------------------------------


@pytest.mark.parametrize("uri", ["memory://", None])
def test_a_table_is_fed_from_itself_and_from_others(uri, tmp_path):
    db = glaive.connect(uri or tmp_path)
    source = db.create_table("source", rows(1000))
    table = db.create_table("copy", source)
    assert table.to_arrow().equals(source.to_arrow())
    table.add(source.search().where("id < 10").to_batches(3))
    assert table.count_rows() == 1010
    feeds = [
        lambda: table.search().to_batches(100),  # a stream over the version that it grows from
        lambda: table,
        lambda: table.to_arrow(),
        lambda: (batch for batch in table.search().to_batches(64)),
    ]
    if uri is None:
        feeds += [lambda: table.to_lance(), lambda: table.to_lance().scanner(filter="id >= 0")]
    for feed in feeds:
        before = table.count_rows()
        table.add(feed())
        assert table.count_rows() == 2 * before
        table.delete("true")
        table.add(source)
        table.add(source.search().where("id < 10").to_batches(3))
    table.add(table.search().where("id < 5").to_batches(), mode="overwrite")
    assert sorted(table.to_arrow()["id"].to_pylist()) == [i for i in range(5) for _ in range(2)]
    again = db.create_table("copy", table.search().where("id < 2").to_batches(), mode="overwrite")
    assert sorted(again.to_arrow()["id"].to_pylist()) == [0, 0, 1, 1]


def test_a_dataset_is_fed_from_itself(tmp_path):
    path = str(tmp_path / "d.lance")
    dataset = lance.write_dataset(rows(100), path)
    dataset = lance.write_dataset(dataset.scanner().to_reader(), path, mode="append")
    assert dataset.count_rows() == 200
    dataset = lance.write_dataset(dataset, path, mode="append")
    assert dataset.count_rows() == 400
    dataset = lance.write_dataset(dataset.scanner(filter="id < 3").to_reader(), path, mode="overwrite")
    assert dataset.count_rows() == 12
