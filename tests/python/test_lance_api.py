"""glaive.lance: the dataset-level API, its results and its errors.

Expected values are spelled out, computed from the rows that were written, or taken from pylance 14.0.2 once and
written down here. Files are compared with the real package in tests/interop.
"""

import copy
import datetime as dt
import pickle
import threading

import glaive.lance as lance
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from glaive.lance.file import LanceFileReader, LanceFileWriter

N = 60


def rows(start=0, n=N):
    ids = range(start, start + n)
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "name": [None if i % 7 == 0 else f"row {i}" for i in ids],
            "point": [{"x": i / 2, "y": -i} for i in ids],
            "vec": pa.array([[float(i), 1.0, 0.0] for i in ids], pa.list_(pa.float32(), 3)),
        }
    )


@pytest.fixture
def uri(tmp_path):
    return str(tmp_path / "set.lance")


@pytest.fixture
def ds(uri):
    """Two fragments of 60 and 40 rows, ids 0 to 99."""
    lance.write_dataset(rows(), uri)
    return lance.write_dataset(rows(60, 40), uri, mode="append")


# --- writing -----------------------------------------------------------------------------------------------


def test_written_rows_are_read(ds, uri):
    whole = pa.concat_tables([rows(), rows(60, 40)])
    assert ds.to_table().equals(whole.combine_chunks()) or ds.to_table().to_pylist() == whole.to_pylist()
    assert (ds.version, ds.latest_version, ds.count_rows(), len(ds)) == (2, 2, 100, 100)
    assert ds.schema.equals(whole.schema)
    assert ds.uri == uri and ds.data_storage_version == "2.2" and not ds.has_stable_row_ids
    assert ds.max_field_id == 5


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2", "stable"])
def test_storage_versions(uri, version):
    ds = lance.write_dataset(rows(), uri, data_storage_version=version)
    assert ds.data_storage_version == version.replace("stable", "2.2")
    assert ds.to_table().to_pylist() == rows().to_pylist()
    assert ds.get_fragments()[0].data_files()[0].file_minor_version == int(ds.data_storage_version[-1])


@pytest.mark.parametrize("bad,error", [("2.3", NotImplementedError), ("next", NotImplementedError), ("legacy", NotImplementedError), ("9", ValueError)])
def test_storage_versions_refused_by_name(uri, bad, error):
    with pytest.raises(error, match=bad):
        lance.write_dataset(rows(), uri, data_storage_version=bad)


def test_inputs_of_write_dataset(tmp_path):
    schema = pa.schema([("a", pa.int8()), ("b", pa.string())])
    want = [{"a": 1, "b": "x"}, {"a": 2, "b": None}]
    table = pa.Table.from_pylist(want, schema=schema)
    batches = table.to_batches(max_chunksize=1)
    inputs = {
        "table": table,
        "batch": table.to_batches()[0],
        "reader": table.to_reader(),
        "scanner": pa.dataset.dataset(table).scanner(),
        "dataset": pa.dataset.dataset(table),
        "list": want,
        "dict": table.to_pydict(),
        "generator": (b for b in batches),
        "pandas": table.to_pandas(),
        "stream": _OnlyStream(table),
    }
    for name, data in inputs.items():
        made = lance.write_dataset(data, tmp_path / name, schema=schema)
        assert made.schema.equals(schema), name
        assert made.to_table().to_pylist() == want, name
    again = lance.write_dataset(made, tmp_path / "copy")
    assert again.to_table().to_pylist() == want
    empty = lance.write_dataset(schema, tmp_path / "empty")
    assert empty.schema.equals(schema) and empty.count_rows() == 0 and empty.to_table().num_rows == 0


def test_streams_that_have_the_schema_already_are_not_cast(uri):
    # Arrow's cast of this stream fails: "nulls in input cannot be viewed as non-nullable".
    items = pa.StructArray.from_arrays([pa.array([None], pa.int8())], fields=[pa.field("x", pa.int8(), nullable=False)], mask=pa.array([True]))
    vectors = pa.FixedSizeListArray.from_arrays(items, 1, mask=pa.array([True]))
    table = pa.table({"c": vectors})
    made = lance.write_dataset(table.to_reader(), uri, schema=table.schema)
    assert made.to_table().to_pylist() == [{"c": None}]


def test_take_keeps_members_in_their_structs(uri):
    inner = pa.struct([("x", pa.list_(pa.int8())), ("y", pa.string())])
    items = pa.list_(pa.struct([("p", pa.int8()), ("q", pa.string())]))
    values = [{"a": 1, "b": {"x": [1], "y": None}}, None, {"a": 2, "b": None}]
    table = pa.table({"c": pa.array(values, pa.struct([("a", pa.int8()), ("b", inner)])), "l": pa.array([[{"p": 1, "q": "s"}], None, []], items)})
    ds = lance.write_dataset(table, uri)
    rows = [2, 0, 1]
    for take in ds.take, ds._take_rows, ds.get_fragments()[0].take:
        # Members stand in the order of the schema, columns in the order asked for.
        assert take(rows, columns=["l.item.p", "c.b.x", "c.a"]).to_pylist() == [
            {"l": [], "c": {"a": 2, "b": None}},
            {"l": [{"p": 1}], "c": {"a": 1, "b": {"x": [1]}}},
            {"l": None, "c": None},
        ]
        assert take(rows, columns={"n": "c.a"}).to_pylist() == [{"n": 2}, {"n": 1}, {"n": None}]
        with pytest.raises(ValueError, match="c.zz"):
            take(rows, columns=["c.zz"])
    # A scan flattens them.
    assert ds.to_table(columns=["c.a"]).to_pylist() == [{"c.a": 1}, {"c.a": None}, {"c.a": 2}]


class _OnlyStream:
    def __init__(self, table):
        self._table = table

    def __arrow_c_stream__(self, requested_schema=None):
        return self._table.__arrow_c_stream__(requested_schema)


def test_modes(uri):
    with pytest.raises(ValueError, match="Invalid mode"):
        lance.write_dataset(rows(), uri, mode="upsert")
    lance.write_dataset(rows(0, 3), uri, mode="append")  # nothing there yet
    with pytest.raises(OSError, match="already exists") as caught:
        lance.write_dataset(rows(), uri)
    assert caught.value.kind == "AlreadyExists"
    over = lance.write_dataset(pa.table({"z": [1]}), uri, mode="overwrite")
    assert over.version == 2 and over.schema.names == ["z"] and over.to_table().to_pylist() == [{"z": 1}]
    assert lance.dataset(uri, version=1).count_rows() == 3


def test_append_with_another_type_changes_nothing(ds, uri):
    with pytest.raises(OSError):
        lance.write_dataset(pa.table({"id": ["text"]}), uri, mode="append")
    with pytest.raises(OSError):
        lance.write_dataset(pa.table({"other": [1]}), uri, mode="append")
    assert lance.dataset(uri).version == 2 and lance.dataset(uri).count_rows() == 100


def test_append_without_nullable_columns(ds, uri):
    more = lance.write_dataset(pa.table({"id": [1000]}), uri, mode="append")
    assert more.to_table(filter="id = 1000").to_pylist() == [{"id": 1000, "name": None, "point": None, "vec": None}]


def test_source_that_fails_keeps_its_exception(ds, uri):
    class Odd(Exception):
        pass

    def batches():
        yield rows().to_batches()[0]
        raise Odd("no more")

    with pytest.raises(Odd, match="no more"):
        lance.write_dataset(batches(), uri, schema=rows().schema, mode="append")
    assert lance.dataset(uri).version == 2


def test_iterable_needs_a_schema(uri):
    with pytest.raises(ValueError, match="Must provide schema"):
        lance.write_dataset(iter(rows().to_batches()), uri)


def test_files_are_cut_by_rows(uri):
    ds = lance.write_dataset(rows(), uri, max_rows_per_file=25)
    assert [f.count_rows() for f in ds.get_fragments()] == [25, 25, 10]
    for wrong in (0, -1):
        with pytest.raises(ValueError, match="max_rows_per_file"):
            lance.write_dataset(rows(), uri, mode="append", max_rows_per_file=wrong)


@pytest.mark.parametrize(
    "argument,value",
    [("target_bases", ["x"]), ("progress", object()), ("auto_cleanup_options", {}), ("session", object()),
     ("external_blob_mode", "ingest"), ("max_page_bytes", 4096)],
)  # fmt: skip
def test_arguments_that_are_not_built_say_so(uri, argument, value):
    with pytest.raises(NotImplementedError, match=argument):
        lance.write_dataset(rows(), uri, **{argument: value})


# --- reading -----------------------------------------------------------------------------------------------


def test_columns_and_filters(ds):
    got = ds.to_table(columns=["name", "id"], filter="id > 4 AND name IS NULL", limit=2, offset=1)
    assert got.to_pylist() == [{"name": None, "id": 14}, {"name": None, "id": 21}]
    assert ds.to_table(columns=["point.x"], limit=2).schema.names == ["point.x"]
    assert ds.to_table(columns={"twice": "id * 2"}, filter="id < 3").to_pylist() == [{"twice": 0}, {"twice": 2}, {"twice": 4}]
    assert ds.to_table(limit=0).num_rows == 0
    with pytest.raises(ValueError, match="nope"):
        ds.to_table(columns=["nope"])
    with pytest.raises(ValueError, match="nope"):
        ds.to_table(filter="nope = 1")
    with pytest.raises(ValueError, match="position"):
        ds.to_table(filter="id > ")
    with pytest.raises(ValueError, match="uplicate"):
        ds.to_table(columns=["id", "id"])
    with pytest.raises(ValueError, match="empty"):
        ds.to_table(filter="  ")
    for argument in ("limit", "offset"):
        with pytest.raises(ValueError, match="must be non-negative"):
            ds.to_table(**{argument: -1})
    with pytest.raises(TypeError):
        ds.to_table(columns="id")


def test_row_ids_and_addresses(ds):
    got = ds.to_table(columns=["id"], with_row_id=True, with_row_address=True, filter="id IN (1, 61)")
    assert got.schema.names == ["id", "_rowid", "_rowaddr"]
    assert got["_rowid"].to_pylist() == [1, (1 << 32) + 1] == got["_rowaddr"].to_pylist()
    named = ds.to_table(columns=["_rowid", "id"], with_row_id=True, limit=1)
    assert named.schema.names == ["_rowid", "id"]


def test_batches(ds):
    batches = list(ds.to_batches(batch_size=17))
    assert max(b.num_rows for b in batches) <= 17 and sum(b.num_rows for b in batches) == 100
    assert [i for b in batches for i in b["id"].to_pylist()] == list(range(100))
    reader = ds.scanner(columns=["id"]).to_reader()
    assert isinstance(reader, pa.RecordBatchReader) and reader.read_all()["id"].to_pylist() == list(range(100))
    assert pa.table(ds)["id"].to_pylist() == list(range(100))
    with pytest.raises(ValueError, match="batch_size"):
        ds.to_table(batch_size=0)


def test_count_rows(ds):
    assert ds.count_rows() == 100
    assert ds.count_rows("id % 10 = 3") == 10
    assert ds.count_rows(filter=pc.field("id") >= 95) == 5
    assert ds.scanner(filter="id < 30", limit=7).count_rows() == 7


def test_expressions_of_pyarrow_as_filter(ds):
    got = ds.to_table(columns=["id"], filter=(pc.field("id") > 97) & pc.field("name").is_valid())
    assert got.to_pylist() == [{"id": 99}]
    assert ds.scanner(columns=["id"], filter=pc.field("id") > 90, limit=2, offset=1, with_row_id=True).to_table().to_pylist() == [
        {"id": 92, "_rowid": (1 << 32) + 32},
        {"id": 93, "_rowid": (1 << 32) + 33},
    ]


def test_take(ds):
    picks = [99, 3, 3, 60, 59, 0]
    assert ds.take(picks)["id"].to_pylist() == picks
    assert ds.take(np.array(picks, np.int32), columns=["id"]).to_pydict() == {"id": picks}
    assert ds.take(pa.array(picks, pa.uint16()), columns=["id"]).to_pydict() == {"id": picks}
    assert ds.take([2], columns={"next": "id + 1"}).to_pydict() == {"next": [3]}
    assert ds.take([]).num_rows == 0 and ds.take([]).schema.equals(ds.schema)
    assert ds._take_rows([(1 << 32) + 5, 2], columns=["id"]).to_pydict() == {"id": [65, 2]}
    with pytest.raises(OSError, match="100"):
        ds.take([100])
    for wrong in ([-1], ["x"], [1.5], 7, None, [None]):
        with pytest.raises((ValueError, TypeError)):
            ds.take(wrong)


def test_take_skips_deleted_rows(ds):
    ds.delete("id IN (0, 2, 60)")
    assert ds.take([0, 1, 57, 58])["id"].to_pylist() == [1, 3, 59, 61]


def test_head_slice_sample(ds):
    assert ds.head(3, columns=["id"]).to_pydict() == {"id": [0, 1, 2]}
    assert ds.slice(58, 62, columns=["id"]).to_pydict() == {"id": [58, 59, 60, 61]}
    sample = ds.sample(20, columns=["id"])["id"].to_pylist()
    assert len(set(sample)) == 20 and set(sample) <= set(range(100))
    assert len(ds.sample(100)) == 100
    for wrong in (101, -1):  # as pylance
        with pytest.raises(ValueError):
            ds.sample(wrong)


def test_vector_search_is_exact(ds):
    got = ds.to_table(columns=["id"], nearest={"column": "vec", "q": [41.2, 1.0, 0.0], "k": 3})
    assert got.schema.names == ["id", "_distance"] and got.schema.field("_distance").type == pa.float32()
    assert got["id"].to_pylist() == [41, 42, 40]
    assert got["_distance"].to_pylist() == pytest.approx([0.04, 0.64, 1.44], rel=1e-4)
    assert ds.to_table(nearest={"column": "vec", "q": np.zeros(3)}).num_rows == 10
    one = ds.to_table(columns=["id"], nearest={"column": "vec", "q": [0.0, 0, 0], "k": 1}, with_row_id=True)
    assert one.schema.names == ["id", "_distance", "_rowid"]
    window = ds.to_table(columns=["id"], nearest={"column": "vec", "q": [10.1, 1, 0], "k": 4}, limit=2, offset=1)
    assert window["id"].to_pylist() == [11, 9]


def test_vector_search_filters_before_or_after(ds):
    search = {"column": "vec", "q": [0.0, 1, 0], "k": 5}
    assert ds.to_table(columns=["id"], nearest=search, filter="id > 50", prefilter=True)["id"].to_pylist() == [51, 52, 53, 54, 55]
    assert ds.to_table(columns=["id"], nearest=search, filter="id > 50").num_rows == 0
    assert ds.to_table(columns=["id"], nearest=search, filter="id > 2")["id"].to_pylist() == [3, 4]


def test_several_queries_at_once(ds):
    got = ds.to_table(columns=["id"], nearest={"column": "vec", "q": [[5.0, 1, 0], [70.1, 1, 0]], "k": 2})
    assert got.schema.names == ["query_index", "id", "_distance"]
    assert got["query_index"].to_pylist() == [0, 0, 1, 1]
    assert got["id"].to_pylist()[0] == 5 and got["id"].to_pylist()[2:] == [70, 71]


@pytest.mark.parametrize(
    "nearest,error",
    [
        ({"column": "vec", "q": [1.0, 2, 3], "k": 0}, ValueError),
        ({"column": "vec", "q": [1.0, 2, 3], "k": -1}, ValueError),
        ({"column": "vec", "q": [1.0, 2]}, ValueError),
        ({"column": "vec", "q": []}, ValueError),
        ({"column": "vec", "q": [1.0, None, 3]}, ValueError),
        ({"column": "vec", "q": "abc"}, ValueError),
        ({"column": "vec", "q": [1.0, 2, 3], "metric": "foo"}, ValueError),
        ({"column": "zz", "q": [1.0, 2, 3]}, ValueError),
        ({"column": "id", "q": [1.0, 2, 3]}, (TypeError, ValueError)),
        ({"column": "vec", "q": [1.0, 2, 3], "foo": 1}, TypeError),
        ({"column": "vec", "q": [1.0, 2, 3], "nprobes": 0}, ValueError),
    ],
)
def test_bad_searches(ds, nearest, error):
    with pytest.raises(error):
        ds.to_table(nearest=nearest)


def test_scanner(ds):
    scanner = ds.scanner(columns=["id"], with_row_id=True, with_row_address=True)
    assert scanner.projected_schema.names == ["id", "_rowid", "_rowaddr"]
    assert scanner.dataset_schema.equals(ds.schema)
    assert scanner.head(2)["id"].to_pylist() == [0, 1]
    assert scanner.count_rows() == 100
    assert isinstance(scanner.explain_plan(), str) and scanner.explain_plan()
    assert [b.record_batch.num_rows for b in ds.scanner().scan_batches()]
    fragments = ds.get_fragments()
    assert ds.scanner(fragments=[fragments[1]], columns=["id"]).to_table()["id"].to_pylist() == list(range(60, 100))
    assert ds.scanner(fragments=[], columns=["id"]).to_table().num_rows == 0


def test_hints_do_not_change_results_and_the_rest_is_refused(ds):
    hints = dict(batch_readahead=4, fragment_readahead=2, use_stats=False, io_buffer_size=1 << 20, late_materialization=True,
                 use_scalar_index=False, scan_in_order=True, fast_search=False, include_deleted_rows=False)  # fmt: skip
    assert ds.scanner(columns=["id"], **hints).to_table()["id"].to_pylist() == list(range(100))
    for argument, value in dict(full_text_query="x", fast_search=True, include_deleted_rows=True, order_by=["id"],
                                strict_batch_size=True).items():  # fmt: skip
        with pytest.raises(NotImplementedError):
            ds.scanner(**{argument: value})


def test_default_scan_options(ds, uri):
    with_defaults = lance.dataset(uri, default_scan_options={"with_row_id": True, "limit": 3})
    assert with_defaults.to_table(columns=["id"]).schema.names == ["id", "_rowid"]
    assert with_defaults.to_table().num_rows == 3 and with_defaults.to_table(limit=5).num_rows == 5


def test_to_pandas(ds):
    frame = ds.to_pandas(columns=["id"], filter="id < 3")
    assert frame["id"].tolist() == [0, 1, 2]


def test_threads_share_one_reader(ds):
    reader = ds._ds.scan(["id"], batch_size=3)
    seen, lock = [], threading.Lock()

    def drain():
        for batch in reader:
            with lock:
                seen.extend(batch["id"].to_pylist())

    threads = [threading.Thread(target=drain) for _ in range(4)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert sorted(seen) == list(range(100))


# --- versions ----------------------------------------------------------------------------------------------


def test_delete(ds):
    assert ds.delete("id < 10 AND name IS NOT NULL") == {"num_deleted_rows": 8}
    assert ds.version == 3 and ds.count_rows() == 92
    assert ds.to_table(filter="id < 10")["id"].to_pylist() == [0, 7]
    assert ds.delete("false") == {"num_deleted_rows": 0}
    assert ds.delete(pc.field("id") == 99) == {"num_deleted_rows": 1}
    with pytest.raises(OSError):
        ds.delete("bad syntax here")
    ds.truncate_table()
    assert ds.count_rows() == 0 and ds.get_fragments() == []


def test_versions_and_checkout(ds, uri):
    ds.delete("id = 5")
    versions = ds.versions()
    assert [v["version"] for v in versions] == [1, 2, 3]
    now = dt.datetime.now()
    assert all(v["timestamp"].tzinfo is None and abs(now - v["timestamp"]) < dt.timedelta(minutes=5) for v in versions)
    assert versions[2]["metadata"]["total_rows"] == "99"
    assert ds.get_version() == versions[2]
    old = ds.checkout_version(1)
    assert (old.version, old.latest_version, old.count_rows(), ds.version) == (1, 3, 60, 3)
    assert ds.checkout_version((None, 2)).count_rows() == 100
    old.checkout_latest()
    assert old.version == 3
    for version in (99, 0, -1, "no-such-tag"):
        with pytest.raises(ValueError):
            lance.dataset(uri, version=version)
        with pytest.raises(OSError):
            ds.checkout_version(version)


def test_asof(ds, uri):
    first, second = (v["timestamp"] for v in ds.versions())
    assert lance.dataset(uri, asof=first).version == 1
    assert lance.dataset(uri, asof=second - dt.timedelta(microseconds=1)).version == 1
    assert lance.dataset(uri, asof=second.astimezone(dt.timezone.utc)).version == 2
    assert lance.dataset(uri, asof="2200-01-01").version == 2
    with pytest.raises(ValueError):
        lance.dataset(uri, asof="2001-01-01 00:00:00")
    with pytest.raises(ValueError, match="ISO"):
        lance.dataset(uri, asof="yesterday")
    with pytest.raises(ValueError):
        lance.dataset(uri, version=1, asof=first)


def test_restore(ds):
    ds.delete("true")
    old = ds.checkout_version(1)
    old.restore()
    assert old.version == 4 and old.count_rows() == 60
    ds.checkout_latest()
    assert ds.version == 4 and ds.count_rows() == 60


def test_tags(ds, uri):
    ds.tags.create("first", 1)
    ds.tags.create("here")
    assert {k: v["version"] for k, v in ds.tags.list().items()} == {"first": 1, "here": 2}
    assert ds.tags.list()["first"]["manifest_size"] > 0 and ds.tags.list()["first"]["branch"] is None
    assert [name for name, _ in ds.tags.list_ordered()] == ["here", "first"]
    assert [name for name, _ in ds.tags.list_ordered("asc")] == ["first", "here"]
    assert ds.tags.get_version("first") == 1
    assert lance.dataset(uri, version="first").count_rows() == 60
    assert ds.checkout_version("first").version == 1
    ds.tags.update("first", 2)
    assert ds.tags.get_version("first") == 2
    ds.tags.delete("first")
    assert list(ds.tags.list()) == ["here"]
    for call in (
        lambda: ds.tags.create("here", 1),
        lambda: ds.tags.create("new", 99),
        lambda: ds.tags.update("none", 1),
        lambda: ds.tags.delete("none"),
        lambda: ds.tags.get_version("none"),
    ):
        with pytest.raises(ValueError):
            call()


def test_insert_moves_the_dataset(ds):
    ds.insert(rows(100, 5))
    assert (ds.version, ds.count_rows()) == (3, 105)
    ds.insert(pa.table({"z": [1]}), mode="overwrite")
    assert (ds.version, ds.schema.names) == (4, ["z"])


def test_missing_dataset(tmp_path):
    with pytest.raises(ValueError, match="not found"):
        lance.dataset(tmp_path / "none.lance")
    assert not (tmp_path / "none.lance").exists()
    (tmp_path / "foreign").mkdir()
    (tmp_path / "foreign" / "x.txt").write_text("?")
    with pytest.raises(ValueError, match="not found"):
        lance.dataset(tmp_path / "foreign")
    with pytest.raises(NotImplementedError, match="s3"):
        lance.dataset("s3://bucket/set.lance")
    with pytest.raises(ValueError):
        lance.dataset()
    with pytest.raises(ValueError):
        lance.LanceDataset.drop(tmp_path / "none.lance")
    lance.LanceDataset.drop(tmp_path / "none.lance", ignore_not_found=True)


def test_drop(ds, uri):
    lance.LanceDataset.drop(uri)
    with pytest.raises(ValueError, match="not found"):
        lance.dataset(uri)
    assert lance.write_dataset(rows(0, 3), uri).to_table()["id"].to_pylist() == [0, 1, 2]


def test_stable_row_ids(uri):
    lance.write_dataset(rows(0, 10), uri, enable_stable_row_ids=True)
    ds = lance.write_dataset(rows(10, 10), uri, mode="append")
    assert ds.has_stable_row_ids
    assert ds.to_table(with_row_id=True)["_rowid"].to_pylist() == list(range(20))
    ds.delete("id % 2 = 0")
    got = ds.to_table(columns=["id"], with_row_id=True, with_row_address=True)
    assert got["_rowid"].to_pylist() == got["id"].to_pylist() == list(range(1, 20, 2))
    assert got["_rowaddr"].to_pylist()[-1] == (1 << 32) + 9
    assert ds._take_rows([19, 1, 2], columns=["id"]).to_pydict() == {"id": [19, 1]}
    meta = ds.get_fragments()[0].metadata.row_id_meta
    assert meta.asdict()["Inline"][:2] == [10, 4]


def test_copies_and_pickles(ds):
    for other in (copy.copy(ds), pickle.loads(pickle.dumps(ds))):
        assert (other.version, other.uri, other.count_rows()) == (2, ds.uri, 100)
    fragment = pickle.loads(pickle.dumps(ds.get_fragments()[1]))
    assert fragment.count_rows() == 40


# --- fragments ---------------------------------------------------------------------------------------------


def test_fragments(ds):
    ds.delete("id IN (1, 2, 3)")
    first, second = ds.get_fragments()
    assert [f.fragment_id for f in (first, second)] == ds.fragment_ids() == [0, 1]
    assert (first.physical_rows, first.num_deletions, first.count_rows(), second.num_deletions) == (60, 3, 57, 0)
    assert first.count_rows("id < 10") == 7
    assert first.deletion_file() == first.metadata.deletion_file.path(0)
    assert first.deletion_file().startswith("_deletions/0-2-") and second.deletion_file() is None
    assert first.to_table(columns=["id"], limit=3)["id"].to_pylist() == [0, 4, 5]
    assert first.take([0, 56, 1], columns=["id"])["id"].to_pylist() == [0, 59, 4]
    assert second.take([0])["id"].to_pylist() == [60] and second.head(2)["id"].to_pylist() == [60, 61]
    sizes = [b.num_rows for b in second.to_batches(batch_size=25)]
    assert sum(sizes) == 40 and max(sizes) <= 25
    with pytest.raises(OSError, match="40 rows"):
        second.take([40])
    assert first.schema.equals(ds.schema)
    file = first.data_files()[0]
    assert file.fields == [0, 1, 3, 4, 5] and file.column_indices == [0, 1, 2, 3, 4]
    assert (file.file_major_version, file.file_minor_version) == (2, 2) and file.file_size_bytes > 0
    assert ds.get_fragment(1).fragment_id == 1 and ds.get_fragment(77) is None
    assert repr(second) == f"LanceFileFragment(id=1, data_files=['{second.data_files()[0].path}'], deletion_file=None)"


def test_fragment_metadata_round_trips(ds):
    import json

    ds.delete("id = 0")
    for fragment in ds.get_fragments():
        meta = fragment.metadata
        again = type(meta).from_json(json.dumps(meta.to_json()))
        assert again == meta and again.num_rows == fragment.count_rows()


def test_schema_with_ids(ds):
    fields = ds.lance_schema.fields()
    assert [(f.name(), f.id()) for f in fields] == [("id", 0), ("name", 1), ("point", 2), ("vec", 5)]
    assert [(f.name(), f.id()) for f in fields[2].children()] == [("x", 3), ("y", 4)]
    assert ds.lance_schema.field("name").to_arrow().type == pa.string()


def test_stats(ds):
    ds.delete("id < 2")
    assert ds.stats.dataset_stats() == {"num_deleted_rows": 2, "num_fragments": 2, "num_small_files": 2}


# --- what is not there -------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["create_index", "sort_by", "join", "sql"])
def test_methods_that_are_not_built_name_themselves(ds, name):
    with pytest.raises(NotImplementedError, match=f"LanceDataset.{name}"):
        getattr(ds, name)()


# --- blobs -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", ["2.0", "2.1"])
def test_blobs(uri, version):
    field = pa.field("data", pa.large_binary(), metadata={"lance-encoding:blob": "true"})
    values = [b"", b"mast", None, b"hull" * 5000]
    table = pa.table([pa.array(range(4)), pa.array(values, pa.large_binary())], schema=pa.schema([("n", pa.int64()), field]))
    ds = lance.write_dataset(table, uri, data_storage_version=version)
    described = ds.to_table()
    assert described.schema.field("data").type == pa.struct([("position", pa.uint64()), ("size", pa.uint64())])
    assert [d and d["size"] for d in described["data"].to_pylist()][1::2] == [4, 20000]
    files = ds.take_blobs("data", indices=[3, 1, 0])
    assert [f.read() for f in files] == [values[3], values[1], b""]
    assert ds.take_blobs("data", indices=[3])[0].read_range(4, 6) == b"hullhu"
    assert files[0].size() == 20000 and files[0].seek(-2, 2) == 19998 and files[0].read() == b"ll"
    assert [data for _, data in ds.read_blobs("data", ids=[1, 3])] == [values[1], values[3]]
    assert [f.read() for f in ds.take_blobs("data", addresses=[3, 1])] == [values[3], values[1]]
    for wrong in ({}, {"ids": [0], "indices": [0]}):
        with pytest.raises(ValueError, match="Exactly one"):
            ds.take_blobs("data", **wrong)
    with pytest.raises(ValueError, match="not a blob column"):
        ds.take_blobs("n", indices=[0])


# --- JSON and other extension types ------------------------------------------------------------------------


def test_json_at_any_depth(uri):
    """As upstream: stored as `lance.json`, shown as `arrow.json`."""
    plain = pa.list_(pa.struct([("who", pa.string()), ("doc", pa.string())]))
    nested = [[{"who": "ana", "doc": '{"a":1}'}, {"who": "bo", "doc": None}], None, []]
    table = pa.table(
        {
            "j": pa.array(['{"a":1}', None, "[1,2]"]).cast(pa.json_()),
            "docs": pa.array(nested, plain).cast(pa.list_(pa.struct([("who", pa.string()), ("doc", pa.json_())]))),
            "u": pa.array([b"0123456789abcdef", None, b"x" * 16], pa.uuid()),
        }
    )
    ds = lance.write_dataset(table, uri)
    ds = lance.write_dataset(table, uri, mode="append")
    assert ds.schema.equals(table.schema)
    assert ds.to_table().equals(pa.concat_tables([table, table]))
    assert ds.take([2, 3])["j"].to_pylist() == ["[1,2]", '{"a":1}']
    assert next(ds.to_batches()).schema.equals(table.schema)
    field = ds.lance_schema.fields()[0]
    assert field.metadata["ARROW:extension:name"] == "lance.json"


# --- files -------------------------------------------------------------------------------------------------


def test_file_round_trip(tmp_path):
    path = str(tmp_path / "one.lance")
    table = rows(0, 5000)
    with LanceFileWriter(path, table.schema) as writer:
        writer.write_batch(table.slice(0, 1000))
        for batch in table.slice(1000).to_batches():
            writer.write_batch(batch)
        assert writer.add_global_buffer(b"hello") == 1
        writer.add_schema_metadata("k", "v")
    assert writer.close() is None
    reader = LanceFileReader(path)
    assert reader.num_rows() == 5000 and reader.read_global_buffer(1) == b"hello"
    got = reader.read_all().to_table()
    assert got.to_pylist() == table.to_pylist() and got.schema.metadata == {b"k": b"v"}
    assert [b.num_rows for b in reader.read_all(batch_size=2000).to_batches()] == [2000, 2000, 1000]
    assert reader.read_range(10, 3).to_table()["id"].to_pylist() == [10, 11, 12]
    assert reader.take_rows([1, 4999]).to_table()["id"].to_pylist() == [1, 4999]
    assert LanceFileReader(path, columns=["name"]).read_all().to_table().schema.names == ["name"]
    for call in (
        lambda: reader.read_range(4999, 2),
        lambda: reader.read_range(-1, 2),
        lambda: reader.take_rows([5000]),
        lambda: reader.read_global_buffer(7),
        lambda: LanceFileReader(path, columns=["zz"]),
        lambda: LanceFileReader(str(tmp_path / "none.lance")),
    ):
        with pytest.raises((ValueError, OSError)):
            call()


def test_file_metadata(tmp_path):
    path = str(tmp_path / "one.lance")
    for version, pair in {"2.0": (0, 3), "2.1": (2, 1), "2.2": (2, 2)}.items():
        with LanceFileWriter(path, version=version) as writer:
            writer.write_batch(pa.table({"a": range(5000)}))
        meta = LanceFileReader(path).metadata()
        assert (meta.major_version, meta.minor_version) == pair and meta.num_rows == 5000
        assert len(meta.columns) == 1 and len(meta.columns[0].pages) == 1 and meta.columns[0].pages[0].encoding
        assert LanceFileReader(path).file_statistics().columns[0].size_bytes > 0


def test_file_writer_leaves_nothing_behind(tmp_path):
    path = tmp_path / "gone.lance"
    with pytest.raises(KeyError):
        with LanceFileWriter(str(path), pa.schema([("a", pa.int64())])) as writer:
            writer.write_batch(pa.table({"a": [1]}))
            raise KeyError
    assert not path.exists() and list(tmp_path.iterdir()) == []
    with pytest.raises(ValueError, match="[Ss]chema"):
        LanceFileWriter(str(path)).close()
    writer = LanceFileWriter(str(path), pa.schema([("a", pa.int64())]))
    assert writer.close() == 0
    with pytest.raises(ValueError, match="closed"):
        writer.write_batch(pa.table({"a": [1]}))


def test_simd_info():
    info = lance.simd_info()
    assert {"tier", "target_arch", "host_features", "kernels"} <= set(info)
    assert info["tier"] in ("scalar", "avx", "avx_fma", "avx2_fma", "avx512")


def test_validate(tmp_path):
    ds = lance.write_dataset(pa.table({"a": [1, 2]}), tmp_path / "d.lance")
    assert ds.validate() is None
    (path,) = (tmp_path / "d.lance" / "data").iterdir()
    whole = path.read_bytes()
    path.write_bytes(whole[:50])
    with pytest.raises(OSError, match=path.name):
        ds.validate()
    path.unlink()
    with pytest.raises(OSError, match=path.name):
        ds.validate()
    path.write_bytes(whole)
    ds.validate()
