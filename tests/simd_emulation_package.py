"""A program for emulated CPUs: the package imports, uses the expected kernels, and answers right.

Writes tables with every vector type, reads them back, and searches them by each distance, on several
threads; the right neighbours come from numpy.
"""

import os
import sys
import tempfile

import numpy as np
import pyarrow as pa

import glaive
import glaive.lance

ROWS = 300
DIM = 37  # no multiple of any register


def distances(vectors, query, metric):
    v = vectors.astype(np.float64)
    q = query.astype(np.float64)
    if metric == "l2":
        return ((v - q) ** 2).sum(axis=1)
    dots = v @ q
    if metric == "dot":
        return 1 - dots
    return 1 - dots / (np.linalg.norm(v, axis=1) * np.linalg.norm(q))


def check_search(db, name, dtype, arrow_type, tolerance):
    random = np.random.default_rng(7)
    vectors = random.standard_normal((ROWS, DIM)).astype(dtype)
    column = pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel(), arrow_type), DIM)
    ids = pa.array(range(ROWS), pa.int64())
    texts = pa.array([f"row {i}" if i % 7 else None for i in range(ROWS)])
    data = pa.table({"id": ids, "text": texts, "vector": column})
    table = db.create_table(name, data=data)
    if table.to_arrow() != data:
        raise AssertionError(f"{name}: the table reads back differently")
    query = random.standard_normal(DIM).astype(np.float32)
    for metric in ("l2", "dot", "cosine"):
        expected = distances(vectors, query.astype(dtype), metric)
        found = table.search(query).distance_type(metric).limit(10).to_arrow()
        got = np.array(found["_distance"].to_pylist())
        np.testing.assert_allclose(got, np.sort(expected)[:10], atol=tolerance, rtol=tolerance)
        rows = np.array(found["id"].to_pylist())
        np.testing.assert_allclose(got, expected[rows], atol=tolerance, rtol=tolerance)


def check_hamming(db):
    random = np.random.default_rng(8)
    vectors = random.integers(0, 256, (ROWS, DIM), dtype=np.uint8)
    column = pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel(), pa.uint8()), DIM)
    data = pa.table({"id": pa.array(range(ROWS), pa.int64()), "vector": column})
    table = db.create_table("bits", data=data)
    query = random.integers(0, 256, DIM, dtype=np.uint8)
    expected = np.unpackbits(vectors ^ query, axis=1).sum(axis=1)
    found = table.search(query).distance_type("hamming").limit(10).to_arrow()
    got = found["_distance"].to_pylist()
    assert got == np.sort(expected)[:10].tolist(), (got, np.sort(expected)[:10])


def main():
    info = glaive.lance.simd_info()
    wanted = os.environ.get("GLAIVE_EXPECTED_TIER")
    if wanted is not None and info["tier"] != wanted:
        sys.exit(f"the tier is {info['tier']}, expected {wanted}")
    with tempfile.TemporaryDirectory() as directory:
        db = glaive.connect(directory)
        check_search(db, "f32", np.float32, pa.float32(), 1e-5)
        check_search(db, "f64", np.float64, pa.float64(), 1e-5)
        check_search(db, "f16", np.float16, pa.float16(), 2e-3)
        check_hamming(db)
        table = db.open_table("f32")
        table.delete("id < 100")
        assert table.count_rows("text IS NOT NULL AND id >= 200") == sum(
            1 for i in range(200, ROWS) if i % 7
        )
    print(f"package: {info['tier']}, ok")


if __name__ == "__main__":
    main()
