"""Databases, tables and queries through the sync API: what must hold beyond equality with upstream."""

import datetime as dt
import math
import random
import threading
import warnings
from typing import List, Optional

import glaive
import numpy as np
import pyarrow as pa
import pydantic
import pytest
from glaive.exceptions import GlaiveError
from glaive.pydantic import LanceModel, Vector
from testing import SEED

NOW = dt.timedelta(0)


@pytest.fixture
def db(tmp_path):
    return glaive.connect(tmp_path / "db")


@pytest.fixture(params=["disk", "memory"])
def any_db(request, tmp_path):
    return glaive.connect(tmp_path / "db" if request.param == "disk" else "memory://")


def vectors(rows, dim=2, type_=pa.float32()):
    return pa.FixedSizeListArray.from_arrays(pa.array(np.asarray(rows, np.float64).reshape(-1), type_), dim)


def numbered(n, start=0):
    ids = range(start, start + n)
    return pa.table({"id": pa.array(ids, pa.int64()), "s": [f"s{i}" for i in ids], "vector": vectors([(i, 1) for i in ids])})


# --- databases ----------------------------------------------------------------------------------------------


def test_in_memory_databases_are_apart():
    one, two = glaive.connect("memory://"), glaive.connect("memory://")
    one.create_table("t", [{"a": 1}])
    assert len(one) == 1 and len(two) == 0 and one["t"].to_arrow().to_pylist() == [{"a": 1}]


def test_many_tables_in_pages(db):
    names = sorted(f"stock_{i * 37 % 33:02}" for i in range(33))
    for name in names:
        db.create_table(name, [{"k": 1}])
    assert len(db) == 33 and all(n in db for n in names) and "stock" not in db and "stock_33" not in db
    seen, token = [], None
    while True:
        page = db.list_tables(page_token=token, limit=7)
        seen += page.tables
        token = page.page_token
        if token is None:
            break
        assert len(page.tables) == 7
    assert seen == names
    assert db.list_tables(limit=0).tables == [] and db.list_tables(limit=33).page_token is None
    with pytest.warns(DeprecationWarning):
        assert db.table_names("stock_30", 5) == ["stock_31", "stock_32"]


@pytest.mark.parametrize("name", ["", "a b", "a/b", "..", ".", "a/../b", "a\0b", "x" * 400, "é", None, 5, [], ["t"]])
def test_names_that_are_no_names(db, name):
    for call in (lambda: db.create_table(name, [{"a": 1}]), lambda: db.open_table(name), lambda: db.drop_table(name), lambda: db[name]):
        with pytest.raises((ValueError, TypeError, OSError)) as e:
            call()
        assert isinstance(e.value, GlaiveError)
    assert name not in db and len(db) == 0


def test_repr_needs_no_disk(tmp_path, db):
    t = db.create_table("t", [{"k": 1}])
    path = str(tmp_path / "db")
    assert repr(db) == f"LanceDBConnection(uri={path!r})" and repr(t) == f"LanceTable(name='t', _conn={db!r})"


def test_serialized_connections(tmp_path):
    db = glaive.connect(tmp_path, read_consistency_interval=dt.timedelta(seconds=2), storage_options={"new_table_data_storage_version": "2.1"})
    again = glaive.deserialize_conn(db.serialize())
    assert (again.uri, again.read_consistency_interval, again.serialize()) == (db.uri, db.read_consistency_interval, db.serialize())


@pytest.mark.parametrize("options", [{"a": 1}, {1: "a"}, {"new_table_data_storage_version": True}])
def test_options_are_text(db, options):
    with pytest.raises(TypeError, match="storage_options"):
        db.create_table("t", [{"a": 1}], storage_options=options)
    assert len(db) == 0


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2", "stable"])
def test_storage_version_of_new_tables(db, version):
    t = db.create_table("t", numbered(3), storage_options={"new_table_data_storage_version": version})
    assert t.to_arrow().equals(numbered(3))
    with pytest.warns(DeprecationWarning):
        u = db.create_table("u", numbered(3), data_storage_version=version)
    assert u.to_lance().data_storage_version == t.to_lance().data_storage_version
    if version != "stable":
        assert t.to_lance().data_storage_version == version


def test_unknown_storage_version(db):
    with pytest.raises((ValueError, NotImplementedError), match="nine"):
        db.create_table("t", [{"a": 1}], storage_options={"new_table_data_storage_version": "nine"})
    assert "t" not in db


def test_old_manifest_names(db):
    with pytest.warns(DeprecationWarning):
        t = db.create_table("t", [{"a": 1}], enable_v2_manifest_paths=False)
    t.add([{"a": 2}])
    assert not t.uses_v2_manifest_paths() and db.open_table("t").to_arrow()["a"].to_pylist() == [1, 2]
    assert db.create_table("u", [{"a": 1}]).uses_v2_manifest_paths()


# --- creating and adding ------------------------------------------------------------------------------------


def test_a_failing_create_leaves_nothing(db):
    for data, options in (
        ([{"vector": [1.0, math.nan]}], {}),
        ([{"a": None}], {"schema": pa.schema([pa.field("a", pa.int64(), nullable=False)])}),
        ((x for x in [[{"a": 1}], [{"b": 1}]]), {}),
    ):
        with pytest.raises(ValueError):
            db.create_table("t", data, **options)
        assert "t" not in db


def test_exceptions_of_iterators_come_through(db):
    class Mine(Exception):
        pass

    def parts():
        yield [{"a": 1}]
        raise Mine("stop")

    with pytest.raises(Mine, match="stop"):
        db.create_table("t", parts())
    assert "t" not in db
    t = db.create_table("t", [{"a": 0}])
    with pytest.raises(Mine, match="stop"):
        t.add(parts())
    assert t.version == 1 and t.count_rows() == 1


def test_the_declared_schema_is_the_schema(db):
    class Row(LanceModel):
        id: int
        note: Optional[str] = None
        vector: Vector(2)

    rows = [{"vector": [1, 2], "id": 1, "note": None}]
    for name, data in (("dicts", rows), ("table", pa.Table.from_pylist(rows)), ("models", [Row(**rows[0])]), ("empty", []), ("none", None)):
        t = db.create_table(name, data, schema=Row)
        assert t.schema == Row.to_arrow_schema()
    again = db.create_table("dicts", rows, schema=Row, exist_ok=True)
    assert again.count_rows() == 1
    with pytest.raises(ValueError, match="does not match"):
        db.create_table("dicts", rows, schema=pa.schema([("x", pa.int8())]), exist_ok=True)


def test_exist_ok_does_not_touch_the_data(db):
    db.create_table("t", [{"a": 1}])

    def never():
        raise AssertionError("drawn")
        yield

    assert db.create_table("t", never(), exist_ok=True).to_arrow().to_pylist() == [{"a": 1}]


def test_rows_match_columns_by_name_at_every_level(db):
    schema = pa.schema(
        [("id", pa.int64()), ("at", pa.struct([("lat", pa.float64()), ("lon", pa.float64())])), ("memo", pa.string()), ("lang", pa.string())]
    )
    t = db.create_table("t", schema=schema)
    t.add([{"lang": "pl", "memo": "m1", "at": {"lon": 2.0, "lat": 1.0}, "id": 1}])
    t.add([{"memo": "m2", "id": 2, "at": {"lat": 3.0, "lon": 4.0}}, {"id": 3}])
    t.add([{"id": 4, "at": None}, {"id": 5, "at": {"lat": None}}])
    assert sorted(t.to_arrow().to_pylist(), key=lambda r: r["id"]) == [
        {"id": 1, "at": {"lat": 1.0, "lon": 2.0}, "memo": "m1", "lang": "pl"},
        {"id": 2, "at": {"lat": 3.0, "lon": 4.0}, "memo": "m2", "lang": None},
        {"id": 3, "at": None, "memo": None, "lang": None},
        {"id": 4, "at": None, "memo": None, "lang": None},
        {"id": 5, "at": {"lat": None, "lon": None}, "memo": None, "lang": None},
    ]
    for bad, name in (({"id": 6, "quay": 1}, "quay"), ({"id": 6, "at": {"alt": 1.0}}, "alt")):
        with pytest.raises(ValueError, match=name):
            t.add([{"id": 7}, bad])
    assert t.count_rows() == 5


def test_bad_vectors_are_refused_by_default(db):
    schema = pa.schema([("k", pa.int64()), ("vector", pa.list_(pa.float32(), 2))])
    t = db.create_table("t", schema=schema)
    for bad in ([math.nan, 1.0], [1.0], [5.0, 6.0, 7.0], ["a", "b"], []):
        with pytest.raises(ValueError):
            t.add([{"k": 1, "vector": [1.0, 1.0]}, {"k": 2, "vector": bad}])
        with pytest.raises(ValueError):
            t.add(iter([[{"k": 1, "vector": [1.0, 1.0]}], [{"k": 2, "vector": bad}]]))
    assert t.count_rows() == 0 and t.version == 1
    t.add([{"k": 1, "vector": None}])
    assert t.to_arrow().to_pylist() == [{"k": 1, "vector": None}]


def test_progress(db):
    seen = []
    t = db.create_table("t", numbered(10))
    t.add(numbered(5), progress=seen.append)
    assert seen[-1]["output_bytes"] == 5 * numbered(5).nbytes // 5
    assert seen[-1]["done"] is True and seen[-1]["output_rows"] == 5 and seen[-1]["total_rows"] == 5
    assert [s["output_rows"] for s in seen] == sorted(s["output_rows"] for s in seen)

    class Bar:
        total, n = None, 0

        def update(self, rows):
            self.n += rows

    bar = Bar()
    t.add(numbered(7), progress=bar)
    assert (bar.n, bar.total) == (7, 7)
    t.add(numbered(1), progress=lambda _: 1 / 0)
    with pytest.raises(TypeError, match="progress"):
        t.add(numbered(1), progress=5)
    assert t.count_rows() == 23


def test_frames_round_trip(db):
    pd, pl = pytest.importorskip("pandas"), pytest.importorskip("polars")
    frame = pd.DataFrame({"k": [1, 2, 3], "s": ["x", None, "z"], "f": [0.5, math.nan, 2.0]}, index=[7, 8, 9])
    t = db.create_table("p", frame)
    assert t.schema.names == ["k", "s", "f"] and t.schema.metadata is None
    assert t.to_pandas()["k"].tolist() == [1, 2, 3] and t.to_pandas()["s"].isna().tolist() == [False, True, False]
    polars = pl.DataFrame(
        {"k": [1, 2], "l": [["a", None], None], "d": [None, 3]}, schema={"k": pl.Int32, "l": pl.List(pl.String), "d": pl.UInt8}
    )
    t = db.create_table("q", polars)
    lazy = t.to_polars()
    assert isinstance(lazy, pl.LazyFrame) and lazy.collect().equals(polars)
    assert lazy.select("d").filter(pl.col("d") == 3).collect().to_dict(as_series=False) == {"d": [3]}
    assert lazy.head(1).collect().equals(polars.head(1))
    assert t.search().to_polars().equals(polars)


def test_models_round_trip(db):
    class Port(pydantic.BaseModel):
        city: str
        depth: Optional[float] = None

    class Ship(LanceModel):
        name: str = pydantic.Field(alias="title")
        home: Optional[Port] = None
        calls: List[Port]
        crew: int | None = None

    ships = [Ship(title="Ada", home=Port(city="Oslo", depth=2.5), calls=[Port(city="Riga")], crew=9), Ship(title="Bo", calls=[])]
    t = db.create_table("ships", schema=Ship)
    t.add(ships)
    assert t.search().to_pydantic(Ship) == ships
    assert t.search().where("crew IS NULL").to_pydantic(Ship) == [ships[1]]


# --- queries ------------------------------------------------------------------------------------------------


def wide_gaps(distances):
    """Positions before which there is room for a bound, whatever the rounding."""
    return (i for i in range(3, len(distances)) if distances[i] - distances[i - 1] > 1e-3)


@pytest.mark.parametrize("metric", ["l2", "cosine", "dot"])
@pytest.mark.parametrize("seed", [7, SEED])
def test_search_against_numpy(any_db, metric, seed):
    rng = np.random.default_rng(seed)
    data = rng.normal(size=(300, 8)).astype(np.float32)
    t = any_db.create_table("t", pa.table({"id": range(300), "grp": [i % 7 for i in range(300)], "vector": vectors(data, 8)}))
    query = rng.normal(size=8).astype(np.float32)
    q, d = query.astype(np.float64), data.astype(np.float64)
    distance = {
        "l2": lambda: ((d - q) ** 2).sum(1),
        "cosine": lambda: 1 - d @ q / np.linalg.norm(d, axis=1) / np.linalg.norm(q),
        "dot": lambda: 1 - d @ q,
    }[metric]()
    for keep, clause in ((np.ones(300, bool), None), (np.arange(300) % 7 == 3, "grp = 3")):
        order = [i for i in np.argsort(distance, kind="stable") if keep[i]]
        found = t.search(query).distance_type(metric).limit(9).offset(2)
        found = found.where(clause) if clause else found
        got = found.to_arrow()
        assert got["id"].to_pylist() == order[2:11]
        assert np.allclose(got["_distance"].to_numpy(), distance[order[2:11]], rtol=1e-4, atol=1e-4)
        near = distance[order]
        first, last = (i for i, _ in zip(wide_gaps(near), range(2)))
        low, high = (near[first - 1] + near[first]) / 2, (near[last - 1] + near[last]) / 2
        got = t.search(query.tolist()).metric(metric).distance_range(low, high).limit(100).select(["id"])
        got = got.where(clause) if clause else got
        assert got.to_arrow()["id"].to_pylist() == order[first:last]


def test_forms_of_a_query(db):
    t = db.create_table("t", numbered(20))
    one = [{"id": 7, "_distance": 0.0}]
    for query in ([7, 1], (7.0, 1.0), np.array([7, 1]), np.array([7, 1], np.float16), pa.array([7.0, 1.0]), pa.chunked_array([[7.0], [1.0]]), [[7.0, 1.0]]):
        assert t.search(query).select(["id"]).limit(1).to_list() == one
    for query in ([[7, 1], [3, 1]], np.array([[7, 1], [3, 1]]), [np.array([7, 1]), np.array([3, 1])], [pa.array([7, 1]), pa.array([3, 1])], pa.array([[7, 1], [3, 1]])):
        got = t.search(query).select(["id"]).limit(2).to_arrow()
        assert got.column_names == ["query_index", "id", "_distance"] and not got.schema.field(0).nullable
        assert got["query_index"].to_pylist() == [0, 0, 1, 1] and [i for i in got["id"].to_pylist()][::2] == [7, 3]
    for bad in ([], [[]], [1.0], [[1.0, 2.0], [1.0]], ["a", "b"], np.zeros((2, 2, 2)), np.array(1.0), {"a": 1}, b"ab", object(), 5, True):
        with pytest.raises((ValueError, TypeError)) as e:
            t.search(bad).to_list()
        assert isinstance(e.value, GlaiveError)


def test_selected_columns(db):
    t = db.create_table("t", numbered(5))
    names = lambda q: q.limit(2).to_arrow().column_names
    search = lambda: t.search([0.0, 1.0])
    assert names(search()) == ["id", "s", "vector", "_distance"]
    assert names(search().select(["s"])) == ["s", "_distance"]
    assert names(search().select(["_distance", "s"])) == ["_distance", "s"]
    assert names(search().select(["_distance"])) == ["_distance"]
    assert names(search().select({"x": "id", "_distance": "_distance"})) == ["x", "_distance"]
    assert names(search().select(["s"]).with_row_id(True)) == ["s", "_distance", "_rowid"]
    assert names(search().select(["_distance", "s"]).with_row_id(True)) == ["_distance", "s", "_rowid"]
    assert names(t.search().select(["s"]).with_row_id(True)) == ["s", "_rowid"]
    assert names(t.search().select(["s", "_rowid"])) == ["s", "_rowid"]
    assert names(t.search().with_row_address()) == ["id", "s", "vector", "_rowaddr"]
    for query in (search().select(["_distance"]), search().select(["s"]).with_row_id(True), t.search([[1, 1], [2, 1]]).select({"x": "id"}), t.search().select({"x": "id"})):
        assert query.output_schema() == query.limit(1).to_arrow().schema
    for bad in ("id", None, 5, ("id",), ["nope"], ["id", "id"], [5], {"a": 5}, {"a": "nope"}):
        with pytest.raises((ValueError, TypeError)):
            t.search().select(bad).to_arrow()


def test_batches_of_a_scan(db):
    t = db.create_table("t", numbered(25))
    sizes = [b.num_rows for b in t.search().to_batches(10)]
    assert len(sizes) == 3 and max(sizes) <= 10 and sum(sizes) == 25
    assert [b.num_rows for b in t.search([1, 1]).limit(7).to_batches(3)] == [3, 3, 1]
    assert t.search().where("id > 20").to_batches().read_all().equals(numbered(4, 21))
    for bad in (0, -1, "x", 1.5):
        with pytest.raises((ValueError, TypeError)):
            t.search().to_batches(bad)


def test_filters_add_up(db):
    t = db.create_table("t", numbered(20))
    assert t.search().where("id < 3 OR id > 15").where("id > 1").select(["id"]).to_arrow()["id"].to_pylist() == [2, 16, 17, 18, 19]
    assert t.search().where(None).limit(1).to_list()[0]["id"] == 0
    for bad in ("", "  ", "id >", "nope = 1", "id", 5, [], "id = 1; id = 2", "id > 2 LIMIT 1"):
        for call in (lambda: t.search().where(bad).to_list(), lambda: t.search([1, 1]).where(bad).to_list(), lambda: t.count_rows(bad), lambda: t.delete(bad)):
            with pytest.raises((ValueError, TypeError)) as e:
                call()
            assert isinstance(e.value, GlaiveError)
    assert t.count_rows() == 20 and t.version == 1


def test_prefilter_and_postfilter(db):
    t = db.create_table("t", numbered(100))
    assert [r["id"] for r in t.search([0, 1]).where("id >= 50").limit(3).to_list()] == [50, 51, 52]
    assert t.search([0, 1]).where("id >= 50", prefilter=False).limit(3).to_list() == []
    assert [r["id"] for r in t.search([0, 1]).where("id % 2 = 1", prefilter=False).limit(4).to_list()] == [1, 3] if _has_modulo(t) else True


def _has_modulo(t):
    try:
        t.count_rows("id % 2 = 1")
        return True
    except ValueError:
        return False


def test_knobs_of_indexes_change_nothing(db):
    t = db.create_table("t", numbered(50))
    plain = t.search([20, 1]).limit(5).to_list()
    assert t.search([20, 1]).limit(5).nprobes(3).refine_factor(9).ef(50).bypass_vector_index().to_list() == plain
    for call in (
        lambda q: q.minimum_nprobes(0),
        lambda q: q.maximum_nprobes(5),
        lambda q: q.minimum_nprobes(21),
        lambda q: q.minimum_nprobes(9).maximum_nprobes(8),
        lambda q: q.nprobes(-1),
        lambda q: q.refine_factor(-1),
        lambda q: q.ef(2**40),
        lambda q: q.nprobes("x"),
        lambda q: q.limit(0),
        lambda q: q.limit(None),
        lambda q: q.limit(-5),
        lambda q: q.distance_type("euclid"),
        lambda q: q.distance_range("a"),
    ):
        with pytest.raises((ValueError, TypeError)) as e:
            call(t.search([20, 1])).to_list()
        assert isinstance(e.value, GlaiveError)


def test_timeouts(db):
    t = db.create_table("t", numbered(5))
    for query in (t.search(), t.search([1, 1])):
        for call in (query.to_arrow, query.to_list, query.to_pandas, query.to_batches):
            with pytest.raises(RuntimeError, match="Query timeout"):
                call(timeout=NOW)
            assert call(timeout=dt.timedelta(seconds=60)) is not None
        with pytest.raises(TypeError, match="timedelta"):
            query.to_arrow(timeout=3)


def test_take(db):
    t = db.create_table("t", numbered(10))
    t.add(numbered(10, 10))
    t.delete("id = 3 OR id = 12")
    live = [i for i in range(20) if i not in (3, 12)]
    ids = lambda q: [r["id"] for r in q.to_list()]
    assert ids(t.take_offsets([17, 0, 3])) == [live[0], live[3], live[17]]
    assert ids(t.take_offsets([5, 5])) == [live[5]] * 2
    assert ids(t.take_offsets([18, 400, 2])) == [live[2]]
    assert [r["id"] for r in t.__getitems__([17, 0, 3, 0]).to_pylist()] == [live[17], live[0], live[3], live[0]]
    row_ids = {r["id"]: r["_rowid"] for r in t.search().with_row_id(True).to_list()}
    assert ids(t.take_row_ids([row_ids[15], row_ids[2], row_ids[2]])) == [2, 15]
    assert ids(t.take_row_ids(np.array([row_ids[4]]))) == [4]
    got = t.take_offsets([1]).select(["s", "_rowoffset"]).with_row_id().to_arrow()
    assert got.to_pylist() == [{"s": "s1", "_rowoffset": 1, "_rowid": row_ids[1]}]
    assert t.take_offsets([1]).select(["s"]).output_schema() == pa.schema([("s", pa.string())])
    for bad in ([-1], ["a"], [1.5], None, "12", 5, [2**70]):
        for call in (t.take_offsets, t.take_row_ids):
            with pytest.raises((ValueError, TypeError)):
                call(bad).to_arrow()


def test_search_of_every_vector_type(db):
    for i, (type_, metric) in enumerate([(pa.float16(), "l2"), (pa.float32(), "l2"), (pa.float64(), "l2"), (pa.uint8(), "hamming")]):
        t = db.create_table(f"t{i}", pa.table({"id": [0, 1, 2], "vector": vectors([[1, 2], [7, 7], [3, 4]], 2, type_)}))
        got = t.search([3, 4]).distance_type(metric).limit(1).to_list()
        assert (got[0]["id"], got[0]["_distance"]) == (2, 0.0)


def test_null_vectors_are_never_found(db):
    t = db.create_table("t", schema=pa.schema([("id", pa.int64()), ("vector", pa.list_(pa.float32(), 2))]))
    t.add([{"id": 0, "vector": None}, {"id": 1, "vector": [5.0, 5.0]}])
    assert [r["id"] for r in t.search([0, 0]).limit(10).to_list()] == [1]


def test_which_column_is_searched(db):
    t = db.create_table("t", pa.table({"a": vectors([[1, 2]]), "b": vectors([[3, 4]]), "c": vectors([[1, 2, 3]], 3)}))
    with pytest.raises(ValueError, match=r"more than one vector column.*\['a', 'b'\]"):
        t.search([1, 2])
    with pytest.raises(ValueError, match="no vector column"):
        t.search([1, 2, 3, 4])
    assert t.search([3, 4], "b").to_list()[0]["_distance"] == 0.0 and t.search([1, 2, 3]).to_list()[0]["_distance"] == 0.0
    for column in ("nope", "", 5):
        with pytest.raises((ValueError, TypeError, RuntimeError)):
            t.search([1, 2], column).to_list()


# --- versions -----------------------------------------------------------------------------------------------


def test_a_random_history(any_db):
    rng = random.Random(SEED)
    t = any_db.create_table("t", numbered(5))
    content, now, last = {1: list(range(5))}, list(range(5)), 1
    for step in range(40):
        action = rng.choice(["add", "add", "delete", "restore", "overwrite", "look"])
        if action == "add":
            start, n = rng.randrange(1000), rng.randrange(1, 5)
            assert t.add(numbered(n, start)).version == last + 1
            now = now + list(range(start, start + n))
        elif action == "delete":
            edge = rng.randrange(1000)
            result = t.delete(f"id < {edge}")
            assert (result.num_deleted_rows, result.version) == (sum(i < edge for i in now), last + 1)
            now = [i for i in now if i >= edge]
        elif action == "restore":
            version = rng.randrange(1, last + 1)
            t.restore(version)
            now = content[version]
        elif action == "overwrite":
            t.add(numbered(3, 10 * step), mode="overwrite")
            now = list(range(10 * step, 10 * step + 3))
        else:
            version = rng.randrange(1, last + 1)
            t.checkout(version)
            assert (t.version, t.to_arrow()["id"].to_pylist()) == (version, content[version])
            with pytest.raises(ValueError, match="cannot be modified when a specific version is checked out"):
                t.add(numbered(1))
            t.checkout_latest()
            continue
        last += 1
        content[last] = now
        assert (t.version, t.count_rows(), t.to_arrow()["id"].to_pylist()) == (last, len(now), now)
    listed = t.list_versions()
    assert [v["version"] for v in listed] == list(range(1, last + 1))
    assert all(isinstance(v["timestamp"], dt.datetime) and abs(v["timestamp"] - dt.datetime.now()) < dt.timedelta(minutes=5) for v in listed)


def test_tags(db):
    t = db.create_table("t", numbered(2))
    t.add(numbered(2))
    t.tags.create("first", 1)
    assert t.tags.get_version("first") == 1 and t.tags.list()["first"]["version"] == 1 and t.tags.list()["first"]["manifest_size"] > 0
    t.checkout("first")
    t.tags.create("second", 2)
    assert t.count_rows() == 2
    t.tags.update("first", 2)
    t.restore("first")
    assert (t.version, t.count_rows()) == (3, 4)
    for call in (
        lambda: t.tags.create("first", 1),
        lambda: t.tags.create("third", 99),
        lambda: t.tags.update("third", 1),
        lambda: t.tags.delete("third"),
        lambda: t.tags.get_version("third"),
        lambda: t.tags.create("a/b", 1),
        lambda: t.tags.create("", 1),
    ):
        with pytest.raises(RuntimeError):
            call()
    for call in (lambda: t.tags.create(5, 1), lambda: t.tags.create("x", "1"), lambda: t.tags.create("x", -1), lambda: t.tags.create("x", None)):
        with pytest.raises((TypeError, ValueError)):
            call()
    t.tags.delete("first")
    assert sorted(db.open_table("t").tags.list()) == ["second"]


def test_what_a_handle_sees(tmp_path):
    still = glaive.connect(tmp_path).create_table("t", numbered(6))
    fresh = glaive.connect(tmp_path, read_consistency_interval=NOW).open_table("t")
    other = glaive.connect(tmp_path).open_table("t")
    for n in range(1, 4):
        other.add(numbered(1, 100 + n))
        assert (still.count_rows(), still.version) == (6, 1)
        assert (fresh.count_rows(), fresh.version, fresh.search().where("id > 50").to_arrow().num_rows) == (6 + n, 1 + n, n)
    fresh.checkout(2)
    other.add(numbered(1))
    assert fresh.count_rows() == 7
    fresh.checkout_latest()
    still.checkout_latest()
    assert fresh.count_rows() == still.count_rows() == 10
    assert glaive.connect(tmp_path).open_table("t", version=1).count_rows() == 6


@pytest.mark.parametrize("version", [77, "nope", -1, 1.5, None, True, 2**70, [1]])
def test_versions_that_are_none(db, version):
    t = db.create_table("t", numbered(2))
    with pytest.raises((ValueError, TypeError)):
        t.checkout(version)
    if version is not None:
        with pytest.raises((ValueError, TypeError)):
            t.restore(version)
    assert t.version == 1 and t.count_rows() == 2


# --- several at once ----------------------------------------------------------------------------------------


def test_threads_on_one_table(db):
    t = db.create_table("t", numbered(100))
    errors = []

    def work(i):
        try:
            for k in range(3):
                t.delete(f"id = {i * 3 + k}")
                t.add(numbered(1, 1000 + i * 3 + k))
                assert len(t.search([50, 1]).limit(3).to_list()) == 3
        except Exception as e:
            errors.append(e)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    [x.start() for x in threads]
    [x.join(60) for x in threads]
    assert errors == []
    t.checkout_latest()
    assert sorted(t.to_arrow()["id"].to_pylist()) == list(range(24, 100)) + list(range(1000, 1024))


def test_creators_racing_for_one_name(tmp_path):
    for race in range(3):
        gate, counts = threading.Barrier(4), []

        def make(who):
            mine = glaive.connect(tmp_path)
            gate.wait()
            try:
                t = mine.create_table(f"t{race}", [{"who": who, "part": p} for p in range(3)], exist_ok=True)
                t.checkout_latest()
                counts.append(t.count_rows())
            except Exception as e:
                counts.append(e)

        threads = [threading.Thread(target=make, args=(w,)) for w in range(4)]
        [x.start() for x in threads]
        [x.join(60) for x in threads]
        assert counts == [3, 3, 3, 3]


def test_overwriters_racing_for_one_name(tmp_path):
    db = glaive.connect(tmp_path)
    db.create_table("t", [{"who": -1}])
    gate, errors = threading.Barrier(4), []

    def make(who, stream):
        mine = glaive.connect(tmp_path)
        gate.wait()
        try:
            rows = [{"who": who}] * (who + 1)
            mine.create_table("t", (x for x in [rows]) if stream else rows, mode="overwrite")
        except Exception as e:
            errors.append(e)

    threads = [threading.Thread(target=make, args=(w, w % 2 == 1)) for w in range(4)]
    [x.start() for x in threads]
    [x.join(60) for x in threads]
    assert errors == []
    rows = db.open_table("t").to_arrow()["who"].to_pylist()
    assert len(rows) == rows[0] + 1 and len(set(rows)) == 1 and db.open_table("t").version == 5


def test_unsupported_methods_name_themselves(db):
    t = db.create_table("t", numbered(1))
    for call, name in (
        (lambda: t.create_index("id"), "LanceTable.create_index"),
        (lambda: t.search("text"), "full text search"),
        (lambda: t.search(query_type="hybrid"), "hybrid search"),
        (lambda: db.create_materialized_view("v", t), "LanceDBConnection.create_materialized_view"),
    ):
        with pytest.raises(NotImplementedError, match=name + ".* is not supported yet"):
            call()
    with pytest.raises(NotImplementedError, match="rename_table is not supported in LanceDB OSS"):
        db.rename_table("t", "u")


def test_no_warning_without_a_reason(db):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        t = db.create_table("t", numbered(3))
        t.add(numbered(2))
        t.search([1, 1]).limit(1).to_pandas()
        assert "t" in db and len(db) == 1
