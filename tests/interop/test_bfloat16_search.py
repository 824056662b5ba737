"""Search over bfloat16 vectors, which upstream stores but does not search: distances against numpy."""

import numpy as np
import pyarrow as pa
import pytest
from testing import SEED

WRITE = """
from lance.arrow import bfloat16_array
items = bfloat16_array([float(x) for x in numbers])
vectors = pa.FixedSizeListArray.from_arrays(items, dim)
lance.write_dataset(pa.table({"id": range(len(vectors)), "vector": vectors}), uri, data_storage_version=version)
"""
SEARCH = """
nearest = {"column": "vector", "q": query, "k": k, "metric": metric}
return lance.dataset(uri).to_table(columns=["id"], nearest=nearest, filter=filter, prefilter=True).to_pydict()
"""


def shortened(values):
    """To bfloat16 and back, ties to even."""
    bits = np.asarray(values, np.float32).view(np.uint32)
    bits = (bits + 0x7FFF + ((bits >> 16) & 1)) & np.uint32(0xFFFF0000)
    return bits.view(np.float32)


@pytest.mark.parametrize("version", ["2.0", "2.2"])
@pytest.mark.parametrize("dim", [1, 19, 64])
def test_against_numpy(theirs, ours, tmp_path, version, dim):
    if ours.name != "ours":
        pytest.skip("upstream does not search bfloat16 vectors")
    rng = np.random.default_rng(SEED)
    numbers = rng.normal(size=(500, dim)).astype(np.float32)
    uri = str(tmp_path / "t.lance")
    theirs.run(WRITE, numbers=numbers.ravel().tolist(), dim=dim, uri=uri, version=version)
    stored = shortened(numbers).astype(np.float64)
    query = rng.normal(size=dim).astype(np.float32)
    q = shortened(query).astype(np.float64)
    right = {
        "l2": ((stored - q) ** 2).sum(axis=1),
        "dot": 1 - stored @ q,
        "cosine": 1 - stored @ q / (np.linalg.norm(stored, axis=1) * np.linalg.norm(q)),
    }
    for metric, distances in right.items():
        for filter, kept in ((None, slice(None)), ("id % 3 = 1", slice(1, None, 3))):
            found = ours.run(SEARCH, uri=uri, query=query, k=20, metric=metric, filter=filter)
            ids = np.arange(500)[kept]
            assert len(set(found["id"])) == 20 and set(found["id"]) <= set(ids)
            np.testing.assert_allclose(found["_distance"], distances[found["id"]], rtol=2e-5, atol=2e-5)
            # Nothing nearer was left out.
            nearest = np.sort(distances[ids])[:20]
            np.testing.assert_allclose(found["_distance"], nearest, rtol=2e-5, atol=2e-5)
