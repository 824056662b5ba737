"""Exact vector search: the same rows and distances from both sides on tables of either, and from numpy.

Vectors are small integers or quarters, so that distances are exact in every order of summation and ties
are real ones.
"""

import random
import zlib

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from testing import SOAK

# Written at dataset level: the table API takes null vectors for bad ones.
CREATE = "lance.write_dataset(data, uri + '/t.lance')"
ADD = "lance.write_dataset(data, uri + '/t.lance', mode='append')"
DELETE = "lancedb.connect(uri).open_table('t').delete(predicate)"
SEARCH = """
q = lancedb.connect(uri).open_table('t').search(query, vector_column_name="vector")
q = q.distance_type(metric).limit(limit)
if offset:
    q = q.offset(offset)
if where:
    q = q.where(where, prefilter=prefilter)
if bounds:
    q = q.distance_range(*bounds)
if columns:
    q = q.select(columns)
return q.to_arrow()
"""


def distances(metric, query, vectors):
    query, vectors = np.asarray(query, np.float64), np.asarray(vectors, np.float64)
    if metric == "l2":
        return ((vectors - query) ** 2).sum(axis=1)
    if metric == "dot":
        return 1 - vectors @ query
    if metric == "hamming":
        bits = np.bitwise_xor(vectors.astype(np.uint8), query.astype(np.uint8))
        return np.unpackbits(bits, axis=1).sum(axis=1).astype(np.float64)
    norms = np.linalg.norm(vectors, axis=1) * np.linalg.norm(query)
    with np.errstate(invalid="ignore"):
        return 1 - vectors @ query / norms  # NaN for a vector of length zero, which has no angle


def make(rng, rows, dim, item, null_share=0.1):
    numbers = np.array([[rng.randint(0, 40) for _ in range(dim)] for _ in range(rows)], np.float64)
    if pa.types.is_floating(item):
        numbers = (numbers - 20) / 4
    numbers[:, 0] += 0.25 * (not numbers.any(axis=1).all()) if pa.types.is_floating(item) else 1
    values = [None if rng.random() < null_share else list(v) for v in numbers]
    if pa.types.is_integer(item):
        values = [None if v is None else [int(x) for x in v] for v in values]
    if item == pa.float16():
        values = [None if v is None else [np.float16(x) for x in v] for v in values]
    table = pa.table(
        {
            "id": pa.array(range(rows), pa.int64()),
            "group": pa.array([rng.randrange(7) for _ in range(rows)], pa.int32()),
            "vector": pa.array(values, pa.list_(item, dim)),
        }
    )
    return table, numbers


def check(found, expected, numbers, metric, query, what):
    """`expected` are the (distance, id) pairs that qualify, nearest first, already cut to the window."""
    ids, got = found["id"].to_pylist(), found["_distance"].to_pylist()
    want = [d for d, _ in expected]
    assert len(got) == len(want), f"{what}: {len(got)} rows instead of {len(want)}"
    assert np.allclose(got, want, rtol=1e-3, atol=1e-4), f"{what}: distances {got[:5]} instead of {want[:5]}"
    assert got == sorted(got), f"{what}: not in order"
    assert len(set(ids)) == len(ids), f"{what}: a row twice"
    true = distances(metric, query, numbers[ids]) if ids else []
    assert np.allclose(got, true, rtol=1e-3, atol=1e-4), f"{what}: a distance that is not the row's"


METRICS = {
    "l2": [pa.float32(), pa.float16(), pa.float64()],
    "cosine": [pa.float32(), pa.float16(), pa.float64()],
    "dot": [pa.float32(), pa.float16(), pa.float64()],
    "hamming": [pa.uint8()],
}


@pytest.mark.parametrize("item, metric", [(i, m) for m, items in METRICS.items() for i in items], ids=str)
@pytest.mark.parametrize("dim", [3, 17, 128] if not SOAK else [1, 2, 3, 8, 17, 31, 64, 128, 200, 384])
def test_search(item, metric, dim, sides, seed, tmp_path):
    rng = random.Random(zlib.crc32(repr((seed, str(item), metric, dim)).encode()))
    rows = 300
    table, numbers = make(rng, rows, dim, item)
    uris = {name: str(tmp_path / name) for name in sides}
    order = list(sides)
    gone = sorted(rng.sample(range(rows), 20))
    for writer, uri in uris.items():
        rng.shuffle(order)
        sides[writer].run(CREATE, uri=uri, data=table.slice(0, 200))
        sides[order[0]].run(ADD, uri=uri, data=table.slice(200))
        sides[order[1]].run(DELETE, uri=uri, predicate=f"id IN ({', '.join(map(str, gone))})")
    live = [i for i in range(rows) if i not in set(gone) and table["vector"][i].is_valid]
    groups = table["group"].to_pylist()
    for _ in range(4):
        query = list(numbers[rng.randrange(rows)] + (0.25 if pa.types.is_floating(item) else 1))
        if pa.types.is_integer(item):
            query = [int(x) for x in query]
        options = {"metric": metric, "limit": rng.choice([1, 5, 50, 1000]), "offset": rng.choice([0, 0, 3]),
                   "where": rng.choice([None, "`group` < 3", "id BETWEEN 50 AND 120 OR `group` = 6"]),
                   "prefilter": rng.random() < 0.7, "columns": rng.choice([None, ["id"], ["id", "group"]]),
                   "bounds": None}  # fmt: skip
        keep = {
            None: lambda i: True,
            "`group` < 3": lambda i: groups[i] < 3,
            "id BETWEEN 50 AND 120 OR `group` = 6": lambda i: 50 <= i <= 120 or groups[i] == 6,
        }[options["where"]]
        # Vectors without an angle are never found.
        near = sorted((d, i) for d, i in zip(distances(metric, query, numbers[live]), live) if not np.isnan(d))
        if rng.random() < 0.3 and metric in ("l2", "hamming"):
            low, high = near[len(near) // 4][0], near[len(near) // 2][0]
            if low < high:
                options["bounds"] = (float(low), float(high))
                near = [(d, i) for d, i in near if low <= d < high]
        if options["prefilter"] or options["where"] is None:
            near = [(d, i) for d, i in near if keep(i)][options["offset"] : options["offset"] + options["limit"]]
        else:
            continue  # the window of a filter behind the search is tested on its own
        for writer, uri in uris.items():
            for reader, side in sides.items():
                found = side.run(SEARCH, uri=uri, query=query, **options)
                check(found, near, numbers, metric, query, f"{writer} wrote, {reader} searched {options}")
                wanted = options["columns"] or ["id", "group", "vector"]
                assert found.schema.names == wanted + ["_distance"]
                assert found.schema.field("_distance").type == pa.float32()


def test_postfilter_keeps_what_is_among_the_nearest(sides, seed, tmp_path):
    rng = random.Random(seed)
    table, numbers = make(rng, 300, 4, pa.float32(), 0)
    for writer, side in sides.items():
        uri = str(tmp_path / writer)
        side.run(CREATE, uri=uri, data=table)
        query = [0.3, -0.7, 1.1, 2.9]  # no ties with these
        near = sorted(zip(distances("l2", query, numbers), range(300)))[:20]
        groups = table["group"].to_pylist()
        near = [(d, i) for d, i in near if groups[i] < 3]
        for reader, other in sides.items():
            found = other.run(SEARCH, uri=uri, query=query, metric="l2", limit=20, offset=0, where="`group` < 3",
                              prefilter=False, bounds=None, columns=None)
            check(found, near, numbers, "l2", query, f"{writer} wrote, {reader} filtered afterwards")


def test_ties_come_by_row_id(ours, tmp_path):
    table = pa.table({"id": range(100), "vector": pa.array([[float(i % 3), 1.0] for i in range(100)], pa.list_(pa.float32(), 2))})
    uri = str(tmp_path / "db")
    ours.run(CREATE, uri=uri, data=table.slice(0, 50))
    ours.run(ADD, uri=uri, data=table.slice(50))
    found = ours.run(SEARCH, uri=uri, query=[0.0, 1.0], metric="l2", limit=50, offset=0, where=None, prefilter=True,
                     bounds=None, columns=["id"])
    if ours.name == "ours":
        assert found["id"].to_pylist()[:34] == list(range(0, 100, 3))
    assert sorted(found["id"].to_pylist()[:34]) == list(range(0, 100, 3))


BATCH = "return lancedb.connect(uri).open_table('t').search(queries, vector_column_name='vector').limit(5).to_arrow()"


def test_several_queries_at_once(sides, seed, tmp_path):
    rng = random.Random(seed)
    table, numbers = make(rng, 200, 8, pa.float32())
    live = [i for i in range(200) if table["vector"][i].is_valid]
    queries = [[rng.gauss(0, 3) for _ in range(8)] for _ in range(6)]
    for writer, side in sides.items():
        uri = str(tmp_path / writer)
        side.run(CREATE, uri=uri, data=table)
        for reader, other in sides.items():
            found = other.run(BATCH, uri=uri, queries=queries)
            assert found.schema.field("query_index").type == pa.int32()
            for number, query in enumerate(queries):
                part = found.filter(pc.equal(found["query_index"], number))
                near = sorted(zip(distances("l2", query, numbers[live]), live))[:5]
                check(part, near, numbers, "l2", query, f"{writer} wrote, {reader}, query {number}")


def test_multivector(sides, tmp_path):
    rng = random.Random(5)
    rows = [[[rng.random() for _ in range(4)] for _ in range(rng.randint(1, 3))] for _ in range(60)]
    table = pa.table({"id": range(60), "vector": pa.array(rows, pa.list_(pa.list_(pa.float32(), 4)))})
    query = [[rng.random() for _ in range(4)] for _ in range(3)]
    code = "return lancedb.connect(uri).open_table('t').search(query, vector_column_name='vector').distance_type('cosine').limit(7).to_arrow()"
    want = []
    for i, vectors in enumerate(rows):
        want.append((sum(distances("cosine", q, vectors).min() for q in query), i))
    want = sorted(want)[:7]
    for writer, side in sides.items():
        uri = str(tmp_path / writer)
        side.run(CREATE, uri=uri, data=table)
        for reader, other in sides.items():
            found = other.run(code, uri=uri, query=query)
            assert found["id"].to_pylist() == [i for _, i in want], f"{writer} wrote, {reader} searched"
            assert np.allclose(found["_distance"].to_pylist(), [d for d, _ in want], rtol=1e-3, atol=1e-4)
