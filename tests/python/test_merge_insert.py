"""`merge_insert`: every clause against a plain model, keys of every type, spilling, what is refused, threads."""

import asyncio
import datetime as dt
import decimal
import os
import pathlib
import random
import threading

import pyarrow as pa
import pytest

import glaive
import glaive.lance
from testing import SEED, SOAK

KEY_TYPES = {
    "int8": (pa.int8(), lambda i: i - 60),
    "uint16": (pa.uint16(), lambda i: i * 7),
    "int64": (pa.int64(), lambda i: i * 10**12 - 5),
    "bool": (pa.bool_(), lambda i: i % 2 == 0),
    "float": (pa.float32(), lambda i: float("inf") if i == 17 else i / 4),
    "double": (pa.float64(), lambda i: i / 8),
    "date": (pa.date32(), lambda i: dt.date(2000, 1, 1) + dt.timedelta(i)),
    "timestamp": (pa.timestamp("us", tz="UTC"), lambda i: dt.datetime(2000, 1, 1, tzinfo=dt.timezone.utc) + dt.timedelta(seconds=i)),
    "decimal": (pa.decimal128(20, 2), lambda i: decimal.Decimal(i) / 4),
    "decimal256": (pa.decimal256(60, 2), lambda i: decimal.Decimal(i) / 4),
    "string": (pa.string(), lambda i: "k" * (i % 40) + str(i)),
    "large_string": (pa.large_string(), str),
    "binary": (pa.binary(), lambda i: bytes([i, 0, i])),
    "fixed": (pa.binary(3), lambda i: bytes([i, 0, i])),
    "fixed_long": (pa.binary(16), lambda i: bytes([i] * 16)),
    "dictionary": (pa.dictionary(pa.int16(), pa.string()), lambda i: f"w{i}"),
    "list": (pa.list_(pa.int32()), lambda i: [] if i == 15 else [i, None, i] if i % 3 else [i]),
    "struct": (pa.struct([("x", pa.int32()), ("y", pa.string())]), lambda i: {"x": i % 5, "y": str(i // 5)}),
}


def files_of(uri):
    return sorted(str(p) for p in pathlib.Path(uri).rglob("*") if p.is_file())


def merged(rows, source, on, columns, update=None, insert=False, delete=None, matched="keep"):
    """The model: dicts of the table's rows after the merge, and the counts (updated, inserted, deleted)."""
    key = lambda r: tuple(repr(r[c]) for c in on)
    usable = lambda r: all(r[c] is not None for c in on)
    by_key = {}
    for s in source:
        if usable(s):
            by_key.setdefault(key(s), []).append(s)
    out, counts, seen = [], [0, 0, 0], set()
    for r in rows:
        found = by_key.get(key(r), []) if usable(r) else []
        if found:
            seen.add(key(r))
            if matched == "delete":
                counts[2] += 1
                continue
            chosen = [s for s in found if matched == "update" and (update is None or update(r, s))]
            if len(chosen) > 1:
                return None
            if chosen:
                counts[0] += 1
                r = {**r, **chosen[0]}
        elif delete is not None and delete(r):
            counts[2] += 1
            continue
        out.append(r)
    if insert:
        for s in source:
            if not usable(s) or key(s) not in seen:
                counts[1] += 1
                out.append({**dict.fromkeys(columns), **s})
    return out, tuple(counts)


def canonical(rows):
    return sorted(repr(sorted(r.items())) for r in rows)


@pytest.mark.parametrize("kind", list(KEY_TYPES))
def test_keys_of_every_type(tmp_path, kind):
    key_type, make = KEY_TYPES[kind]
    schema = pa.schema([("k", key_type), ("n", pa.int64())])
    table = pa.Table.from_pylist([{"k": make(i), "n": i} for i in range(20)] + [{"k": None, "n": -1}], schema)
    source = [{"k": make(i), "n": 100 + i} for i in range(15, 25)] + [{"k": None, "n": 200}]
    if kind == "bool":
        source = [{"k": True, "n": 100}, {"k": None, "n": 200}]
    source = pa.Table.from_pylist(source, schema).to_pylist()
    db = glaive.connect(tmp_path)
    t = db.create_table("t", table)
    expected, counts = merged(table.to_pylist(), source, ["k"], ["k", "n"], insert=True, matched="update")
    r = t.merge_insert("k").when_matched_update_all().when_not_matched_insert_all().execute(pa.Table.from_pylist(source, schema))
    assert (r.num_updated_rows, r.num_inserted_rows, r.num_deleted_rows) == counts
    assert (r.version, r.num_attempts, r.num_rows) == (2, 1, counts[0] + counts[1])
    assert canonical(t.to_arrow().to_pylist()) == canonical(expected)


def test_floats_match_by_their_bits(tmp_path):
    schema = pa.schema([("k", pa.float64()), ("n", pa.int64())])
    t = glaive.connect(tmp_path).create_table("t", pa.Table.from_pylist([{"k": 0.0, "n": 1}, {"k": -0.0, "n": 2}, {"k": float("nan"), "n": 3}], schema))
    source = pa.Table.from_pylist([{"k": -0.0, "n": 20}, {"k": float("nan"), "n": 30}], schema)
    r = t.merge_insert("k").when_matched_update_all().when_not_matched_insert_all().execute(source)
    assert (r.num_updated_rows, r.num_inserted_rows) == (2, 0)
    assert sorted(t.to_arrow()["n"].to_pylist()) == [1, 20, 30]


SCHEMA = pa.schema([("a", pa.int32()), ("b", pa.string()), ("n", pa.int64()), ("s", pa.string()), ("v", pa.list_(pa.float32(), 2))])


def random_row(rng, columns=None):
    row = {
        "a": rng.choice([None, *range(12)]),
        "b": rng.choice([None, "x", "y", ""]),
        "n": rng.randrange(10),
        "s": rng.choice([None, "p", "q"]),
        "v": [float(rng.randrange(5)), 0.5],
    }
    return row if columns is None else {c: row[c] for c in columns}


@pytest.mark.parametrize("seed", range(40 if not SOAK else 2000))
def test_random_merges_equal_the_model(tmp_path, seed):
    rng = random.Random(f"{SEED} {seed}")
    stable = rng.random() < 0.3
    options = {"new_table_enable_stable_row_ids": "true"} if stable else {}
    db = glaive.connect(tmp_path)
    t = db.create_table("t", schema=SCHEMA, storage_options=options)
    rows = []
    for _ in range(rng.randrange(1, 4)):
        part = [random_row(rng) for _ in range(rng.randrange(0, 30))]
        t.add(pa.Table.from_pylist(part, SCHEMA))
        rows += part
    for _ in range(rng.randrange(1, 4)):
        on = rng.choice([["a"], ["b", "a"], ["a", "b", "s"]])
        others = rng.sample([c for c in SCHEMA.names if c not in on], rng.randrange(0, 6 - len(on)))
        columns = rng.sample([*on, *others], len(on) + len(others))
        source = [random_row(rng, columns) for _ in range(rng.choice([0, 1, 3, 8, 40]))]
        if rng.random() < 0.8:
            source = list({tuple(s[c] for c in on): s for s in source}.values())
        options = rng.choice([{"matched": "update"}, {"matched": "update", "where": True}, {"matched": "keep"}])
        merge = t.merge_insert(on)
        update = None
        if options["matched"] == "update":
            if options.get("where"):
                has_n = "n" in columns
                where = "target.n > 3" + (" AND source.n <> target.n" if has_n else "")
                update = lambda r, s, has_n=has_n: r["n"] is not None and r["n"] > 3 and (not has_n or s["n"] != r["n"])
                merge.when_matched_update_all(where=where)
            else:
                merge.when_matched_update_all()
        insert = rng.random() < 0.6
        if insert:
            merge.when_not_matched_insert_all()
        delete = None
        if rng.random() < 0.4:
            if rng.random() < 0.5:
                delete = lambda r: r["n"] is not None and r["n"] < 5
                merge.when_not_matched_by_source_delete("n < 5")
            else:
                delete = lambda r: True
                merge.when_not_matched_by_source_delete()
        if options["matched"] == "keep" and not insert and delete is None:
            continue
        merge._options["memory_bytes"] = rng.choice([0, 1])  # 1: everything is spilled
        expected = merged(rows, source, on, SCHEMA.names, update, insert, delete, options["matched"])
        data = pa.Table.from_pylist(source, pa.schema([SCHEMA.field(c) for c in columns]))
        data = data.to_reader(max_chunksize=rng.choice([3, 1000]))
        before = (t.version, files_of(t.uri))
        if expected is None:
            with pytest.raises(ValueError, match="Ambiguous"):
                merge.execute(data)
            assert (t.version, files_of(t.uri)) == before
            continue
        rows, counts = expected
        r = merge.execute(data)
        assert (r.num_updated_rows, r.num_inserted_rows, r.num_deleted_rows) == counts
        assert r.version == t.version == before[0] + 1
        assert canonical(t.to_arrow().to_pylist()) == canonical(rows)
        assert t.count_rows() == len(rows)


@pytest.fixture
def table(tmp_path):
    return glaive.connect(tmp_path).create_table("t", pa.table({"k": range(100), "s": [f"s{i}" for i in range(100)]}))


@pytest.mark.parametrize("width", [4, 200])
def test_spilled_sources_give_the_same(tmp_path, monkeypatch, width):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    os.mkdir(tmp_path / "spill")
    db = glaive.connect(tmp_path / "db")
    text = lambda i: f"{i:0{width}}"
    t = db.create_table("t", pa.table({"k": [text(i) for i in range(30000)], "n": range(30000)}))
    source = pa.table({"k": [text(i) for i in range(15000, 45000)], "n": range(30000)})
    merge = t.merge_insert("k").when_matched_update_all().when_not_matched_insert_all()
    options = {**merge._options, "memory_bytes": 1 << 16, "spill_directory": str(tmp_path / "spill")}
    done = t._inner.merge_insert(options, source.to_reader(max_chunksize=1000))
    assert done["spilled_bytes"] > 0 and done["num_passes"] > 1
    assert (done["num_updated_rows"], done["num_inserted_rows"]) == (15000, 15000)
    got = dict(zip(*t.to_arrow().to_pydict().values()))
    assert got == {**{text(i): i for i in range(15000)}, **{text(i): i - 15000 for i in range(15000, 45000)}}
    assert os.listdir(tmp_path / "spill") == []


def test_duplicates(table):
    source = pa.table({"k": [5, 7, 5], "s": ["first", "b", "second"]})
    before = files_of(table.uri)
    with pytest.raises(ValueError, match=r"Ambiguous.*k = 5"):
        table.merge_insert("k").when_matched_update_all().execute(source)
    assert table.version == 1 and files_of(table.uri) == before
    r = table.merge_insert("k").when_matched_update_all().source_dedupe_behavior("first_seen").execute(source)
    assert r.num_updated_rows == 2
    rows = dict(zip(*table.to_arrow().to_pydict().values()))
    assert rows[5] == "first" and rows[7] == "b"
    new = pa.table({"k": [500, 500], "s": ["one", "two"]})
    first = table.merge_insert("k").when_not_matched_insert_all().source_dedupe_behavior("first_seen").execute(new)
    assert first.num_inserted_rows == 1 and table.count_rows("k = 500 AND s = 'one'") == 1


def test_matched_delete_and_fail(tmp_path):
    ds = glaive.lance.write_dataset(pa.table({"k": range(10), "n": range(10)}), tmp_path / "d.lance")
    assert ds.merge_insert("k").when_matched_delete().execute(pa.table({"k": [2, 3, 77]})) == {
        "num_inserted_rows": 0, "num_updated_rows": 0, "num_deleted_rows": 2,
    }  # fmt: skip
    with pytest.raises(ValueError, match=r"found matching row.*k = 4"):
        ds.merge_insert("k").when_matched_fail().when_not_matched_insert_all().execute(pa.table({"k": [4, 50], "n": [1, 2]}))
    assert ds.version == 2 and sorted(ds.to_table()["k"].to_pylist()) == [0, 1, 4, 5, 6, 7, 8, 9]
    plan = ds.merge_insert("k").when_matched_update_all("source.n > target.n").when_not_matched_insert_all()
    assert "on=[k]" in plan.explain_plan() and "InsertAll" in plan.explain_plan()
    assert "num_inserted_rows=1" in plan.analyze_plan(pa.table({"k": [4, 50], "n": [1, 2]}))
    assert ds.version == 2 and len(files_of(ds.uri)) == len(files_of(tmp_path))


def test_primary_key_is_the_default(tmp_path):
    field = pa.field("k", pa.int64(), False, {"lance-schema:unenforced-primary-key": "true"})
    ds = glaive.lance.write_dataset(pa.table([pa.array([1, 2]), pa.array([1, 2])], schema=pa.schema([field, ("n", pa.int64())])), tmp_path / "d.lance")
    done = ds.merge_insert().when_matched_update_all().when_not_matched_insert_all().execute(pa.table({"k": [2, 3], "n": [20, 30]}, schema=ds.schema))
    assert done == {"num_inserted_rows": 1, "num_updated_rows": 1, "num_deleted_rows": 0}
    plain = glaive.lance.write_dataset(pa.table({"k": [1]}), tmp_path / "p.lance")
    with pytest.raises(ValueError, match="join keys"):
        plain.merge_insert()


UPSERT = lambda t, on, rows: t.merge_insert(on).when_matched_update_all().when_not_matched_insert_all().execute(rows)


@pytest.mark.parametrize(
    "call, error",
    [
        (lambda t: t.merge_insert("k").execute([{"k": 1}]), "not configured"),
        (lambda t: UPSERT(t, "nope", [{"k": 1}]), "nope"),
        (lambda t: UPSERT(t, [], [{"k": 1}]), "join keys"),
        (lambda t: UPSERT(t, "k", [{"s": "x"}]), "k"),
        (lambda t: UPSERT(t, "k", [{"k": 1, "zz": "x"}]), "zz"),
        (lambda t: UPSERT(t, "k", [{"k": "text", "s": "x"}]), "k"),
        (lambda t: t.merge_insert("k").when_matched_update_all(where="target.zz = 1").execute([{"k": 1}]), "zz"),
        (lambda t: t.merge_insert("k").when_matched_update_all(where="s = 'x'").execute([{"k": 1}]), "target"),
        (lambda t: t.merge_insert("k").when_matched_update_all(where="target.s =").execute([{"k": 1}]), "target"),
        (lambda t: t.merge_insert("k").when_matched_update_all(where=" "), "empty"),
        (lambda t: t.merge_insert("k").when_not_matched_by_source_delete("zz = 1").execute([{"k": 1}]), "zz"),
        (lambda t: t.merge_insert("k").when_matched_update_all().execute([{"k": 1}], timeout=dt.timedelta(0)), "merge insert timed out"),
        (lambda t: t.merge_insert(5), "key"),
        (lambda t: t.merge_insert(None), "key"),
        (lambda t: t.merge_insert([1]), "names"),
    ],
)
def test_refused(table, call, error):
    before = files_of(table.uri)
    with pytest.raises((ValueError, RuntimeError, TypeError), match=error):
        call(table)
    assert table.version == 1 and files_of(table.uri) == before and table.count_rows() == 100


def test_blobs_and_ids_of_partial_upserts_stay(tmp_path):
    schema = pa.schema([("k", pa.int64()), pa.field("b", pa.large_binary(), metadata={"lance-encoding:blob": "true"}), ("n", pa.int64())])
    blobs = [b"x" * 50000, b"", b"y" * 100, b"z"]
    data = pa.table([pa.array(range(4)), pa.array(blobs, pa.large_binary()), pa.array([0] * 4)], schema=schema)
    ds = glaive.lance.write_dataset(data, tmp_path / "d.lance", enable_stable_row_ids=True)
    ids = {r["k"]: r["_rowid"] for r in ds.to_table(columns=["k"], with_row_id=True).to_pylist()}
    ds.merge_insert("k").when_matched_update_all().when_not_matched_insert_all().execute(pa.table({"n": [7, 8, 9], "k": [2, 0, 99]}))
    after = ds.to_table(columns=["k", "n"], with_row_id=True).to_pylist()
    assert {r["k"]: r["_rowid"] for r in after if r["k"] != 99} == ids
    assert {r["k"]: r["n"] for r in after} == {0: 8, 1: 0, 2: 7, 3: 0, 99: 9}
    places = [i for i, r in enumerate(after) if r["k"] != 99]
    found = {after[i]["k"]: f.readall() for i, f in zip(places, ds.take_blobs("b", indices=places))}
    assert found == dict(enumerate(blobs))


def test_threads_that_upsert_the_same_keys(table):
    def work(n):
        for i in range(5):
            UPSERT(table, "k", [{"k": 1000 + i, "s": f"w{n}"}, {"k": n, "s": "own"}])

    threads = [threading.Thread(target=work, args=(n,)) for n in range(6)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    keys = table.to_arrow()["k"].to_pylist()
    assert sorted(keys) == [*range(100), *range(1000, 1005)]
    assert table.count_rows("s = 'own'") == 6 and table.version == 31


def test_async(tmp_path):
    async def main():
        db = await glaive.connect_async(tmp_path)
        t = await db.create_table("t", [{"k": 1, "s": "a"}, {"k": 2, "s": "b"}])
        merge = t.merge_insert("k").when_matched_update_all().when_not_matched_insert_all()
        r = await merge.execute([{"k": 2, "s": "B"}, {"k": 3, "s": "C"}])
        assert (r.num_updated_rows, r.num_inserted_rows, r.version) == (1, 1, 2)
        assert sorted((r["k"], r["s"]) for r in (await t.to_arrow()).to_pylist()) == [(1, "a"), (2, "B"), (3, "C")]

    asyncio.run(main())


@pytest.mark.parametrize("row", [{"k": 2.5, "n": 77}, {"k": 1.0, "n": 7.9}])
def test_fractions_are_not_cut_off(tmp_path, row):
    """A key of 2.5 is not the key 2; upstream refuses it as well."""
    t = glaive.connect(tmp_path).create_table("t", pa.table({"k": [1, 2, 3], "n": [1, 2, 3]}))
    for source in ([row], pa.Table.from_pylist([row])):
        with pytest.raises(ValueError, match="truncated"):
            UPSERT(t, "k", source)
    assert t.version == 1 and t.to_arrow().to_pydict() == {"k": [1, 2, 3], "n": [1, 2, 3]}
    UPSERT(t, "k", [{"k": 2.0, "n": 8.0}])
    assert sorted(t.to_arrow().to_pylist(), key=lambda r: r["k"])[1] == {"k": 2, "n": 8}


def test_vectors_with_nan_are_taken(tmp_path):
    kind = pa.list_(pa.float32(), 2)
    t = glaive.connect(tmp_path).create_table("t", pa.table({"k": [1, 2], "v": pa.array([[1, 2], [3, 4]], kind)}))
    t.merge_insert("k").when_matched_update_all().execute(pa.table({"k": [2], "v": pa.array([[float("nan"), 1]], kind)}))
    assert str({r["k"]: r["v"] for r in t.to_arrow().to_pylist()}[2]) == "[nan, 1.0]"


@pytest.mark.parametrize("on", ["`a b`", ["`a b`"], ["k", "`a b`"]])
def test_keys_in_back_quotes(tmp_path, on):
    table = glaive.connect(tmp_path).create_table("t", pa.table({"k": [1, 2], "a b": [1, 2], "v": ["x", "y"]}))
    new = pa.table({"k": [2, 3], "a b": [2, 3], "v": ["new", "more"]})
    table.merge_insert(on).when_matched_update_all().when_not_matched_insert_all().execute(new)
    assert sorted(table.to_arrow()["v"].to_pylist()) == ["more", "new", "x"]


@pytest.mark.parametrize("stream", [False, True])
def test_deletes_need_the_key_only(tmp_path, stream):
    """As pylance 14.0.2: a source of a merge that only deletes may have columns that the dataset lacks."""
    ds = glaive.lance.write_dataset(pa.table({"k": [1, 2, 3], "v": ["a", "b", "c"]}), tmp_path / "d.lance")
    source = pa.table({"k": [2, 9], "z": [0, 0]})
    done = ds.merge_insert("k").when_matched_delete().execute(source.to_reader() if stream else source)
    assert done == {"num_inserted_rows": 0, "num_updated_rows": 0, "num_deleted_rows": 1}
    assert ds.to_table()["k"].to_pylist() == [1, 3]
    with pytest.raises(ValueError, match="z"):
        ds.merge_insert("k").when_matched_update_all().execute(source)


def test_other_meta_columns_in_a_condition_are_refused(tmp_path):
    table = glaive.connect(tmp_path).create_table("t", pa.table({"id": [1, 2], "n": [1, 2]}))
    rows = pa.table({"id": [1, 2], "n": [3, 4]})
    for wrong in ("source._rowid > 0", "target.nothing > 0", "target._rowoffset = 0", "_row_created_at_version = 1"):
        with pytest.raises(ValueError, match="target.x and source.x"):
            table.merge_insert("id").when_matched_update_all(where=wrong).execute(rows)
    assert table.version == 1
