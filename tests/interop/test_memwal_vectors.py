"""Maintained vector indices: generations that we write are searched by the planner of real pylance through an exact
index of their own, and both find the same as a look at every row."""

import math
import random
import zlib

import pytest
from testing import SOAK

SHARD = "aa48498d-ac91-59e2-8452-69f46010ace2"
DIM = 6

CREATE = """
key = {"lance-schema:unenforced-primary-key": "true"}
schema = pa.schema([pa.field("id", pa.int64(), False, key), pa.field("v", pa.list_(pa.float32(), dim))])
ds = lance.write_dataset(pa.Table.from_pylist(rows, schema=schema), path, data_storage_version=storage)
ds.create_index("v", kind, num_partitions=1, metric=metric, name="near", **options)
ds.initialize_mem_wal(unsharded=True, maintained_indexes=maintained)
"""

# Opens a writer, runs the calls, each of which becomes a generation, and closes it.
WRITE = """
for kind, value in calls:
    ds = lance.dataset(path)
    writer = ds.mem_wal_writer(shard, max_wal_flush_interval_ms=5)
    if kind == "put":
        writer.put(pa.Table.from_pylist(value, schema=ds.schema))
    else:
        writer.delete(pa.table({"id": pa.array(value, pa.int64())}, schema=pa.schema([ds.schema.field("id")])))
    writer.close()
"""

SEARCH = """
import os, re
import importlib
mem_wal = importlib.import_module(lance.__name__ + ".mem_wal")
found = {}
root = f"{path}/_mem_wal/{shard}"
snapshot = mem_wal.ShardSnapshot(shard)
for name in sorted(os.listdir(root), key=lambda n: int(n.rsplit("_gen_", 1)[1]) if "_gen_" in n else 0):
    if "_gen_" in name:
        snapshot = snapshot.with_sstable(int(name.rsplit("_gen_", 1)[1]), name)
planner = mem_wal.LsmVectorSearchPlanner(lance.dataset(path), [snapshot], "v", distance_type=metric)
rows = planner.plan_search(pa.array(query, pa.float32()), k=k, columns=["id"], **more).to_table()
return [(r["id"], r["_distance"]) for r in rows.to_pylist()]
"""

INDICES = """
import glob
out = []
for path in sorted(glob.glob(f"{path}/_mem_wal/{shard}/*_gen_*"), key=lambda p: int(p.rsplit("_", 1)[1])):
    out.append([(i["name"], i["type"]) for i in lance.dataset(path).list_indices()])
return out
"""


def distance(metric, a, b):
    if metric == "l2":
        return sum((x - y) ** 2 for x, y in zip(a, b))
    dot = sum(x * y for x, y in zip(a, b))
    if metric == "dot":
        return 1 - dot
    return 1 - dot / math.sqrt(sum(x * x for x in a) * sum(y * y for y in b))


def draw(rng, key, nulls):
    return {"id": key, "v": None if rng.random() < nulls else [rng.uniform(-1, 1) for _ in range(DIM)]}


def check(got, model, metric, query, k):
    """Ids and distances of a dictionary, where float32 leaves no doubt about the order."""
    want = sorted((distance(metric, row["v"], query), row["id"]) for row in model.values() if row["v"] is not None)[:k]
    assert [i for i, _ in got] == [i for _, i in want]
    assert [d for _, d in got] == pytest.approx([d for d, _ in want], abs=2e-5)


@pytest.mark.parametrize("metric", ["l2", "cosine", "dot"])
@pytest.mark.parametrize("maintained", [["near"], None])
def test_generations_of_ours_are_found_by_theirs(sides, seed, tmp_path, metric, maintained):
    rng = random.Random(zlib.crc32(repr((seed, metric, maintained)).encode()))
    path = str(tmp_path / "t.lance")
    rows = [draw(rng, key, 0.1) for key in range(300)]
    storage = rng.choice(["2.0", "2.1", "2.2"])
    theirs, ours = sides["theirs"], sides["ours"]
    theirs.run(CREATE, path=path, rows=rows, storage=storage, kind="IVF_FLAT", metric=metric, options={}, maintained=maintained, dim=DIM)
    model = {row["id"]: row for row in rows}
    calls = []
    for _ in range(20 if SOAK else 4):
        keys = [rng.randrange(400) for _ in range(rng.randrange(1, 60))]
        if rng.random() < 0.7:
            value = [draw(rng, key, 0.2) for key in keys]
            calls.append(("put", value))
            model.update((row["id"], row) for row in value)
        else:
            calls.append(("delete", keys))
            for key in keys:
                model.pop(key, None)
    calls.append(("put", [{"id": 1000, "v": None}]))  # a generation without a vector has no index
    model[1000] = {"id": 1000, "v": None}
    ours.run(WRITE, path=path, shard=SHARD, calls=calls)
    indices = theirs.run(INDICES, path=path, shard=SHARD)
    assert len(indices) == len(calls) and indices[-1] == []
    for (kind, value), found in zip(calls[:-1], indices):
        vectors = kind == "put" and any(row["v"] is not None for row in value)
        assert found == ([("near", "IVF_FLAT")] if vectors else [])
    for _ in range(4):
        query = [rng.uniform(-1, 1) for _ in range(DIM)]
        for side, more in ((ours, {}), (theirs, {"overfetch_factor": 20.0})):
            got = side.run(SEARCH, path=path, shard=SHARD, metric=metric, query=query, k=7, more=more)
            check(got, model, metric, query, 7)


@pytest.mark.parametrize("kind, options", [("IVF_FLAT", {}), ("IVF_PQ", {"num_sub_vectors": 2}), ("IVF_HNSW_SQ", {})])
def test_tables_and_generations_of_theirs_are_searched_exactly(sides, seed, tmp_path, kind, options):
    rng = random.Random(zlib.crc32(repr((seed, kind)).encode()))
    path = str(tmp_path / "t.lance")
    rows = [draw(rng, key, 0.1) for key in range(300)]
    theirs, ours = sides["theirs"], sides["ours"]
    theirs.run(CREATE, path=path, rows=rows, storage="2.2", kind=kind, metric="l2", options=options, maintained=["near"], dim=DIM)
    model = {row["id"]: row for row in rows}
    for turn in range(4):
        value = [draw(rng, rng.randrange(400), 0.2) for _ in range(30)]
        model.update((row["id"], row) for row in value)
        gone = [rng.randrange(400) for _ in range(5)]
        for key in gone:
            model.pop(key, None)
        # One of us replays nothing here: each closes what it wrote.
        [theirs, ours][turn % 2].run(WRITE, path=path, shard=SHARD, calls=[("put", value), ("delete", gone)])
        query = [rng.uniform(-1, 1) for _ in range(DIM)]
        got = ours.run(SEARCH, path=path, shard=SHARD, metric="l2", query=query, k=9, more={})
        check(got, model, "l2", query, 9)


def test_a_search_without_a_metric_takes_that_of_the_index(sides, seed, tmp_path):
    rng = random.Random(seed)
    path = str(tmp_path / "t.lance")
    rows = [draw(rng, key, 0) for key in range(300)]
    model = {row["id"]: row for row in rows}
    sides["theirs"].run(CREATE, path=path, rows=rows, storage="2.2", kind="IVF_FLAT", metric="cosine", options={}, maintained=["near"], dim=DIM)
    query = [rng.uniform(-1, 1) for _ in range(DIM)]
    search = """
    near = lambda **more: lance.dataset(path).to_table(nearest=dict(column="v", q=query, k=5, **more), columns=["id", "_distance"])
    return [[(r["id"], r["_distance"]) for r in near(**more).to_pylist()] for more in ({}, {"use_index": False}, {"metric": "dot"})]
    """
    for side in ("ours", "theirs"):
        found = sides[side].run(search, path=path, query=query)
        for got, metric in zip(found, ("cosine", "l2", "dot") if side == "ours" else ("cosine", "l2")):
            check(got, model, metric, query, 5)
    # Through LanceDB's API, beside fresh rows.
    row = draw(rng, 1000, 0)
    row["v"] = query
    model[1000] = row
    sides["ours"].run(WRITE, path=path, shard=SHARD, calls=[("put", [row])])
    found = sides["ours"].run(
        """
        table = lancedb.connect(path.rsplit("/", 1)[0]).open_table("t")
        near = lambda q: [(r["id"], r["_distance"]) for r in q.limit(5).select(["id", "_distance"]).to_list()]
        return near(table.search(query)), near(table.search(query).bypass_vector_index()), near(table.search(query).distance_type("dot"))
        """,
        path=path, query=query,
    )  # fmt: skip
    for got, metric in zip(found, ("cosine", "l2", "dot")):
        check(got, model, metric, query, 5)


def test_what_cannot_be_maintained_is_named(sides, tmp_path):
    """As upstream: a column that is no list of float32 is refused when it is named, and left out otherwise."""
    create = CREATE.replace("pa.float32()", "pa.float64()")
    path = str(tmp_path / "t.lance")
    rows = [{"id": i, "v": [float(i + d * d % 7) for d in range(DIM)]} for i in range(300)]
    with pytest.raises(Exception, match="FixedSizeList<Float32>"):
        sides["theirs"].run(
            create + "lance.dataset(path).mem_wal_writer(shard)",
            path=path, rows=rows, storage="2.2", kind="IVF_FLAT", metric="l2", options={}, maintained=["near"], dim=DIM, shard=SHARD,
        )  # fmt: skip
    with pytest.raises(Exception, match="FixedSizeList<Float32>.*maintained_indexes"):
        sides["ours"].run("lance.dataset(path).initialize_mem_wal(unsharded=True, maintained_indexes=['near'])", path=path)
    other = str(tmp_path / "u.lance")
    sides["theirs"].run(create, path=other, rows=rows, storage="2.2", kind="IVF_FLAT", metric="l2", options={}, maintained=None, dim=DIM)
    sides["ours"].run(WRITE, path=other, shard=SHARD, calls=[("put", [{"id": 1, "v": [0.0] * DIM}])])
    assert sides["theirs"].run(INDICES, path=other, shard=SHARD) == [[]]
