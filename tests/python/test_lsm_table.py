"""Tables with an LSM write path, through the LanceDB API: every write and every read against a dictionary."""

import asyncio
import os
import random
import shutil
import subprocess
import sys
import textwrap
import threading

import glaive
import numpy as np
import pyarrow as pa
import pytest
from glaive import LsmWriteSpec
from testing import SEED, SOAK

SCHEMA = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        pa.field("text", pa.string()),
        pa.field("n", pa.int32()),
        pa.field("vector", pa.list_(pa.float32(), 4)),
    ]
)
SPECS = {
    "unsharded": LsmWriteSpec.unsharded(),
    "bucket": LsmWriteSpec.bucket("id", 3),
    "identity": LsmWriteSpec.identity("id"),
    "bucket of another column": LsmWriteSpec.bucket("n", 3),  # rows move from shard to shard
    "small memtables": LsmWriteSpec.unsharded().with_writer_config_defaults({"max_memtable_rows": "40"}),
}


def make_table(path, spec, rows=(), name="t"):
    db = glaive.connect(path, storage_options={"lsm_upkeep": "false"})
    table = db.create_table(name, schema=SCHEMA)
    add(table, list(rows))
    table.set_unenforced_primary_key("id")
    table.set_lsm_write_spec(spec)
    return table


def row(rng, key):
    vector = None if rng.random() < 0.2 else [float(rng.randrange(-3, 4)) for _ in range(4)]
    return {
        "id": key,
        "text": rng.choice([None, "", "a", "bb", f"text {rng.randrange(9)}"]),
        "n": rng.choice([None, *range(6)]),
        "vector": vector,
    }


def add(table, rows):
    if rows:
        table.add(pa.Table.from_pylist(rows, schema=SCHEMA), on_bad_vectors="null")


def upsert(table, rows):
    merge = table.merge_insert("id").when_matched_update_all().when_not_matched_insert_all()
    return merge.execute(pa.Table.from_pylist(rows, schema=SCHEMA), on_bad_vectors="null")


def check(table, model, rng):
    want = sorted(model.values(), key=lambda r: r["id"])
    got = table.to_arrow()
    assert got.schema.equals(SCHEMA)
    assert sorted(got.to_pylist(), key=lambda r: r["id"]) == want
    assert table.count_rows() == len(want)
    # Positions are those of the scan.
    there = rng.sample(range(len(want)), min(3, len(want)))
    taken = table.take_offsets(there).to_arrow().to_pylist() if there else []
    rows = got.to_pylist()
    assert sorted(r["id"] for r in taken) == sorted(rows[p]["id"] for p in there)
    assert all(model[r["id"]] == r for r in taken)
    # Filters, of which old versions of a row must not be found.
    limit = rng.randrange(6)
    hits = [r for r in want if r["n"] is not None and r["n"] < limit]
    assert table.count_rows(f"n < {limit}") == len(hits)
    found = table.search().where(f"n < {limit}").limit(None).select(["id", "n"]).to_list()
    assert sorted(r["id"] for r in found) == [r["id"] for r in hits]
    some = rng.sample(range(30), 5)
    found = table.search().where(f"id IN ({', '.join(map(str, some))})").limit(None).to_list()
    assert sorted(r["id"] for r in found) == sorted(k for k in some if k in model)
    # Order and limit.
    ordered = table.search().order_by([{"column_name": "id", "ascending": False}]).limit(4).to_list()
    assert [r["id"] for r in ordered] == [r["id"] for r in reversed(want)][:4]
    assert table.search().limit(3).offset(1).to_arrow().num_rows == max(0, min(3, len(want) - 1))
    # Nearest vectors, for each metric that the values allow.
    query = np.array([rng.randrange(-3, 4) for _ in range(4)], dtype=np.float32)
    for metric in ("l2", "dot"):
        rows = [r for r in want if r["vector"] is not None]
        vectors = np.array([r["vector"] for r in rows], dtype=np.float32).reshape(-1, 4)
        distances = ((vectors - query) ** 2).sum(1) if metric == "l2" else 1 - vectors @ query
        nearest = table.search(query).distance_type(metric).limit(5).to_list()
        assert [r["_distance"] for r in nearest] == sorted(distances.tolist())[:5]
        by_id = dict(zip((r["id"] for r in rows), distances.tolist()))
        assert all(by_id[r["id"]] == r["_distance"] for r in nearest)
    keep = [by_id[r["id"]] for r in hits if r["id"] in by_id]
    nearest = table.search(query).distance_type("dot").where(f"n < {limit}").limit(5).to_list()
    assert [r["_distance"] for r in nearest] == sorted(keep)[:5]


def run_history(path, spec, seed, steps):
    rng = random.Random(seed)
    model = {}
    for key in rng.sample(range(30), 10):
        model[key] = row(rng, key)
    table = make_table(path, spec, model.values())
    for _ in range(steps):
        step = rng.choice(["upsert"] * 4 + ["add", "delete", "update", "update key", "flush", "compact", "checkpoint", "close", "reopen"])
        if step in ("upsert", "add"):
            rows = [row(rng, rng.randrange(30)) for _ in range(rng.randrange(1, 8))]
            keys = {r["id"] for r in rows}
            if step == "upsert":
                done = upsert(table, rows)
                assert (done.num_updated_rows, done.num_inserted_rows) == (len(keys & model.keys()), len(keys - model.keys()))
                assert done.num_rows == len(rows)
            else:
                add(table, rows)
            model.update((r["id"], r) for r in rows)
        elif step == "delete":
            limit = rng.randrange(6)
            gone = [k for k, r in model.items() if r["n"] == limit and k % 2]
            assert table.delete(f"n = {limit} AND id % 2 = 1").num_deleted_rows == len(gone)
            for key in gone:
                del model[key]
        elif step == "update":
            limit = rng.randrange(6)
            hits = [k for k, r in model.items() if r["n"] is not None and r["n"] >= limit]
            assert table.update(where=f"n >= {limit}", values_sql={"n": "n - 1", "text": "'new'"}).rows_updated == len(hits)
            for key in hits:
                model[key] = {**model[key], "n": model[key]["n"] - 1, "text": "new"}
        elif step == "update key" and model:
            old = rng.choice(list(model))
            free = next(k for k in range(31) if k not in model)
            assert table.update(where=f"id = {old}", values={"id": free}).rows_updated == 1
            model[free] = {**model.pop(old), "id": free}
        elif step == "flush":
            table.flush_lsm()
        elif step == "compact":
            table.compact_lsm()
        elif step == "checkpoint":
            done = table.checkpoint_lsm()
            assert done.converged and done.generations_remaining == 0
            # Everything is in the base now, and a second one has nothing to do.
            base = table.search().use_lsm(False).limit(None).to_list()
            assert sorted(r["id"] for r in base) == sorted(model)
            again = table.checkpoint_lsm()
            assert again.converged and again.passes == 0 and again.generations_consumed == 0
        elif step == "close":
            table.close_lsm_writers()
        else:
            table = glaive.connect(path, storage_options={"lsm_upkeep": "false"}).open_table("t")
        check(table, model, rng)
    return table, model


@pytest.mark.parametrize("kind", SPECS)
@pytest.mark.parametrize("seed", [1, 2, SEED] if not SOAK else [SEED + i for i in range(50)])
def test_histories(tmp_path, kind, seed):
    run_history(tmp_path, SPECS[kind], seed, 25 if not SOAK else 60)


def test_counters_and_duplicates(tmp_path):
    table = make_table(tmp_path, LsmWriteSpec.bucket("id", 2), [row(random.Random(0), k) for k in range(5)])
    version = table.version
    rows = [dict(row(random.Random(1), 3), text="first"), dict(row(random.Random(2), 9), text="x"), dict(row(random.Random(3), 3), text="last")]
    done = upsert(table, rows)
    assert (done.num_updated_rows, done.num_inserted_rows, done.num_deleted_rows, done.num_rows) == (1, 1, 0, 3)
    assert table.version == version  # no commit of the base
    assert {r["id"]: r["text"] for r in table.to_arrow().to_pylist()}[3] == "last"
    base = table.search().use_lsm(False).limit(None).to_list()
    assert sorted(r["id"] for r in base) == list(range(5))


def test_keys_of_several_shards_in_one_call_unless_refused(tmp_path):
    table = make_table(tmp_path, LsmWriteSpec.bucket("id", 4))
    rows = [row(random.Random(k), k) for k in range(40)]
    assert upsert(table, rows).num_inserted_rows == 40
    assert len(table.get_lsm_stats()["buckets"]) == 4
    strict = table.merge_insert("id").when_matched_update_all().when_not_matched_insert_all().validate_single_shard(True)
    with pytest.raises(ValueError, match="multiple shards"):
        strict.execute(pa.Table.from_pylist(rows, schema=SCHEMA), on_bad_vectors="null")
    assert table.count_rows() == 40


def test_another_process_sees_rows_that_are_only_in_the_log(tmp_path):
    table = make_table(tmp_path, LsmWriteSpec.unsharded())
    upsert(table, [row(random.Random(k), k) for k in range(3)])
    program = """
        import glaive, sys
        table = glaive.connect(sys.argv[1]).open_table("t")
        print(sorted(r["id"] for r in table.to_arrow().to_pylist()), table.search().use_lsm(False).limit(None).to_arrow().num_rows)
    """

    def other():
        command = [sys.executable, "-c", textwrap.dedent(program), str(tmp_path)]
        return subprocess.run(command, capture_output=True, text=True, check=True, env=os.environ).stdout.strip()

    assert other() == "[0, 1, 2] 0"
    upsert(table, [row(random.Random(k), k) for k in range(2, 5)])
    table.delete("id = 0")
    assert other() == "[1, 2, 3, 4] 0"
    # Still the writer: it was read, not replaced.
    upsert(table, [row(random.Random(9), 9)])
    assert other() == "[1, 2, 3, 4, 9] 0"


def test_rows_by_position(tmp_path):
    table = make_table(tmp_path, LsmWriteSpec.unsharded(), [row(random.Random(k), k) for k in range(6)])
    upsert(table, [row(random.Random(k), k) for k in (2, 10, 11)])
    table.flush_lsm()
    upsert(table, [row(random.Random(k), k) for k in (3, 10)])
    ids = table.to_arrow()["id"].to_pylist()
    assert sorted(ids) == [0, 1, 2, 3, 4, 5, 10, 11]
    assert table.take_offsets(list(range(8))).select(["id"]).to_arrow()["id"].to_pylist() == ids
    assert table.take_offsets([7, 0]).select(["id"]).to_arrow().num_rows == 2
    assert table.take_offsets([8, 1]).select(["id"]).to_arrow()["id"].to_pylist() == [ids[1]]  # behind the end: left out
    assert table.head(3)["id"].to_pylist() == ids[:3]
    # Row ids are those of base rows that nothing fresher replaces.
    found = table.search().with_row_id(True).select(["id"]).limit(None).to_arrow()
    known = {r["_rowid"]: r["id"] for r in found.to_pylist() if r["_rowid"] is not None}
    assert sorted(known.values()) == [0, 1, 4, 5]
    assert sorted(table.take_row_ids(list(known)).select(["id"]).to_arrow()["id"].to_pylist()) == [0, 1, 4, 5]


def test_a_row_moves_between_shards(tmp_path):
    """The column that decides the shard is no part of the key: a key is shown once, wherever its versions are and in
    whatever order shards are merged."""
    table = make_table(tmp_path, LsmWriteSpec.identity("text"), [{**row(random.Random(k), k), "text": "a"} for k in range(3)])
    put = lambda key, text, n: upsert(table, [{"id": key, "text": text, "n": n, "vector": None}])
    seen = lambda: {r["id"]: (r["text"], r["n"]) for r in table.search().limit(None).to_list()}
    put(1, "b", 10)  # from the base
    assert seen()[1] == ("b", 10) and len(seen()) == 3
    put(1, "c", 11)  # from a memtable
    put(1, "b", 12)  # and back
    assert seen()[1] == ("b", 12) and len(seen()) == 3
    table.delete("id = 1")
    put(1, "a", 13)  # what was deleted elsewhere
    table.flush_lsm()
    table.update(where="id = 1", values={"text": "d", "n": 14})  # from a generation
    table.update(where="id = 0", values={"text": "d"})
    assert seen()[1] == ("d", 14) and seen()[0][0] == "d" and len(seen()) == 3
    upsert(table, [{"id": 2, "text": t, "n": n, "vector": None} for n, t in enumerate("xyx")])  # within one call
    assert seen()[2] == ("x", 2) and len(seen()) == 3
    want = seen()
    assert table.checkpoint_lsm().converged and seen() == want
    base = table.search().use_lsm(False).limit(None).to_list()
    assert {r["id"]: (r["text"], r["n"]) for r in base} == want and len(base) == 3


def test_a_reader_beside_moving_rows_sees_each_once(tmp_path):
    table = make_table(tmp_path, LsmWriteSpec.bucket("n", 4), [{**row(random.Random(k), k), "n": 0} for k in range(8)])
    wrong, done = [], threading.Event()

    def read():
        other = glaive.connect(tmp_path, storage_options={"lsm_upkeep": "false"}).open_table("t")
        while not done.is_set():
            ids = sorted(r["id"] for r in other.search().select(["id"]).limit(None).to_list())
            if ids != list(range(8)):
                wrong.append(ids)

    reader = threading.Thread(target=read)
    reader.start()
    try:
        for n in range(12 if not SOAK else 300):
            upsert(table, [{**row(random.Random(n), k), "n": (n + k) % 5} for k in range(8)])
            table.update(where=f"id = {n % 8}", values={"n": n % 7})
    finally:
        done.set()
        reader.join()
    assert not wrong


def test_a_table_that_another_process_dropped_does_not_come_back(tmp_path):
    table = make_table(tmp_path, LsmWriteSpec.unsharded())
    upsert(table, [row(random.Random(1), 1)])
    shutil.rmtree(tmp_path / "t.lance")
    with pytest.raises(ValueError, match="dropped"):
        table.close_lsm_writers()
    with pytest.raises(ValueError, match="not found"):
        upsert(table, [row(random.Random(2), 2)])
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


def test_specs(tmp_path):
    table = make_table(tmp_path, LsmWriteSpec.bucket("id", 4).with_writer_config_defaults({"max_memtable_rows": "7"}))
    spec = table.get_lsm_write_spec()
    assert (spec.spec_type, spec.column, spec.num_buckets) == ("bucket", "id", 4)
    assert spec.maintained_indexes == [] and spec.writer_config_defaults == {"max_memtable_rows": "7"}
    assert repr(LsmWriteSpec.bucket("id", 4)) == (
        'LsmWriteSpec.bucket(column="id", num_buckets=4, maintained_indexes=None, writer_config_defaults={})'
    )
    with pytest.raises(ValueError, match="already set"):
        table.set_lsm_write_spec(LsmWriteSpec.unsharded())
    upsert(table, [row(random.Random(1), 1)])
    table.unset_lsm_write_spec()
    assert table.get_lsm_write_spec() is None and table.get_lsm_stats() is None
    assert table.count_rows() == 0  # what was not merged is no longer seen
    with pytest.raises(ValueError, match="no LSM write spec"):
        table.unset_lsm_write_spec()
    table.set_lsm_write_spec(LsmWriteSpec.bucket("id", 4))
    assert table.count_rows() == 1


def test_what_is_refused(tmp_path):
    db = glaive.connect(tmp_path)
    plain = db.create_table("plain", pa.table({"id": [1], "text": ["a"]}))
    for call in (plain.flush_lsm, plain.compact_lsm, plain.checkpoint_lsm, plain.unset_lsm_write_spec):
        with pytest.raises(ValueError):
            call()
    assert plain.get_lsm_stats() is None and plain.get_lsm_write_spec() is None
    plain.close_lsm_writers()
    with pytest.raises(ValueError, match="use_lsm"):
        plain.search().use_lsm(True).to_list()
    with pytest.raises(ValueError, match="use_lsm"):
        plain.merge_insert("id").when_matched_update_all().when_not_matched_insert_all().use_lsm(True).execute(plain.to_arrow())

    table = make_table(tmp_path, LsmWriteSpec.unsharded(), [row(random.Random(k), k) for k in range(3)])
    before = table.to_arrow().to_pylist()
    data = pa.Table.from_pylist([row(random.Random(7), 7)], schema=SCHEMA)
    with pytest.raises(ValueError, match="upsert"):
        table.merge_insert("id").when_not_matched_insert_all().execute(data, on_bad_vectors="null")
    with pytest.raises(ValueError, match="primary key"):
        table.merge_insert("text").when_matched_update_all().when_not_matched_insert_all().execute(data, on_bad_vectors="null")
    with pytest.raises(ValueError):
        upsert(table, [{"id": None, "text": "x"}])
    with pytest.raises(ValueError):
        table.add(pa.table({"id": [1], "no such column": [2]}))
    with pytest.raises(ValueError):
        table.delete("no_such_column = 1")
    with pytest.raises(ValueError):
        table.update(values={"no_such_column": 1})
    with pytest.raises(ValueError, match="bucket_sharding"):
        fresh = db.create_table("fresh", schema=SCHEMA)
        fresh.set_unenforced_primary_key("id")
        fresh.set_lsm_write_spec(LsmWriteSpec.bucket("nothing", 2))
    assert table.to_arrow().to_pylist() == before
    table.checkout(table.version)
    with pytest.raises(ValueError):
        table.search().use_lsm(True).to_list()
    with pytest.raises(ValueError):
        upsert(table, [row(random.Random(7), 7)])


def test_stats(tmp_path):
    table = make_table(tmp_path, LsmWriteSpec.unsharded())
    upsert(table, [row(random.Random(k), k) for k in range(6)])
    (bucket,) = table.get_lsm_stats()["buckets"]
    assert bucket["shard_id"] == "aa48498d-ac91-59e2-8452-69f46010ace2" and bucket["status"] == "Active"
    assert bucket["writer_epoch"] == 1 and bucket["durability"] == "fsync" and bucket["log_entries"] == 1
    assert [m["rows"] for m in bucket["memtables"]][-1] == 6
    assert bucket["generations"] == []
    table.flush_lsm()
    (bucket,) = table.get_lsm_stats(include_generation_rows=True)["buckets"]
    assert [g["rows"] for g in bucket["generations"]] == [6]
    (bucket,) = table.get_lsm_stats()["buckets"]
    assert "rows" not in bucket["generations"][0] and bucket["generations"][0]["bytes"] > 0


def test_durability_level_is_named(tmp_path):
    spec = LsmWriteSpec.unsharded().with_writer_config_defaults({"durability": "os"})
    table = make_table(tmp_path, spec)
    upsert(table, [row(random.Random(k), k) for k in range(6)])
    assert table.get_lsm_stats()["buckets"][0]["durability"] == "os"


def test_overwrite_and_drop_end_the_path(tmp_path):
    table = make_table(tmp_path, LsmWriteSpec.unsharded())
    upsert(table, [row(random.Random(k), k) for k in range(6)])
    table.add(pa.Table.from_pylist([row(random.Random(1), 100)], schema=SCHEMA), mode="overwrite", on_bad_vectors="null")
    assert [r["id"] for r in table.to_arrow().to_pylist()] == [100]
    assert table.get_lsm_write_spec() is None
    db = glaive.connect(tmp_path)
    other = make_table(tmp_path, LsmWriteSpec.unsharded(), name="other")
    upsert(other, [row(random.Random(k), k) for k in range(6)])
    db.drop_table("other")
    again = make_table(tmp_path, LsmWriteSpec.unsharded(), name="other")
    assert again.count_rows() == 0
    upsert(again, [row(random.Random(k), k) for k in range(2)])
    assert again.count_rows() == 2


def test_async(tmp_path):
    async def run():
        db = await glaive.connect_async(tmp_path, storage_options={"lsm_upkeep": "false"})
        table = await db.create_table("t", schema=SCHEMA)
        await table.set_unenforced_primary_key("id")
        await table.set_lsm_write_spec(LsmWriteSpec.bucket("id", 2))
        rows = pa.Table.from_pylist([row(random.Random(k), k) for k in range(20)], schema=SCHEMA)
        merge = table.merge_insert("id").when_matched_update_all().when_not_matched_insert_all()
        assert (await merge.execute(rows, on_bad_vectors="null")).num_inserted_rows == 20
        assert await table.count_rows() == 20
        assert len(await table.query().where("id < 5").to_list()) == 5
        assert len(await table.query().where("id < 5").use_lsm(False).to_list()) == 0
        await table.flush_lsm()
        await table.compact_lsm()
        assert (await table.checkpoint_lsm()).converged
        assert len(await table.query().use_lsm(False).to_list()) == 20
        stats = await table.get_lsm_stats(include_generation_rows=True)
        assert all(b["generations"] == [] for b in stats["buckets"])
        await table.close_lsm_writers()
        await table.unset_lsm_write_spec()
        assert await table.get_lsm_write_spec() is None

    asyncio.run(run())


def test_schema_changes_meanwhile(tmp_path):
    table = make_table(tmp_path, LsmWriteSpec.unsharded(), [dict(row(random.Random(k), k), n=k) for k in range(3)])
    upsert(table, [dict(row(random.Random(k), k), n=k) for k in range(2, 5)])
    table.add_columns(pa.field("extra", pa.int64()))
    table.alter_columns({"path": "n", "rename": "number"})
    rows = sorted(table.to_arrow().to_pylist(), key=lambda r: r["id"])
    assert [(r["number"], r["extra"]) for r in rows] == [(k, None) for k in range(5)]
    upsert_rows = pa.table({"id": pa.array([9], pa.int64()), "number": pa.array([9], pa.int32()), "extra": pa.array([90], pa.int64())})
    table.add(upsert_rows)
    table.checkpoint_lsm()
    rows = sorted(table.search().use_lsm(False).limit(None).to_list(), key=lambda r: r["id"])
    assert [(r["number"], r["extra"]) for r in rows] == [*((k, None) for k in range(5)), (9, 90)]
