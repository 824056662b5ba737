"""Random schemas with random nested data: each side reads what the other wrote.

hypothesis draws the types, the null patterns and the number of rows (and makes them small when something
fails); the values come from a seeded generator.
"""

import random
import shutil
import tempfile

import arrays
import hypothesis
import hypothesis.strategies as st
import pyarrow as pa
import pytest
from testing import SEED, SOAK
from same import assert_same
from test_types import READ, Reads, stored
from upstream import SideError

LEAVES = [
    pa.int8(), pa.int32(), pa.uint64(), pa.float16(), pa.float32(), pa.float64(), pa.bool_(), pa.utf8(), pa.large_utf8(),
    pa.binary(), pa.binary(3), pa.decimal128(20, 2), pa.date32(), pa.timestamp("us", "UTC"), pa.duration("ms"),
    pa.list_(pa.float32(), 4), pa.list_(pa.float32(), 70), pa.dictionary(pa.int8(), pa.utf8()),
]  # fmt: skip


def lists(children):
    return st.one_of(
        children.map(pa.list_),
        children.map(pa.large_list),
        st.lists(children, min_size=1, max_size=3).map(
            lambda ts: pa.struct([pa.field(f"f{i}", t) for i, t in enumerate(ts)])
        ),
        children.map(lambda t: pa.map_(pa.utf8(), t)),
    )


TYPES = st.recursive(st.sampled_from(LEAVES), lists, max_leaves=5)
NULLS = st.sampled_from(sorted(arrays.NULLS))
COLUMNS = st.lists(st.tuples(TYPES, NULLS, NULLS), min_size=1, max_size=4)
ROWS = st.one_of(st.integers(0, 40), st.sampled_from([64, 1023, 1024, 1025, 4097]))

WRITE = """
reader = pa.RecordBatchReader.from_batches(data.schema, data.to_batches())
lance.write_dataset(reader, uri, schema=data.schema, data_storage_version=version, max_rows_per_file=per_file)
"""
TAKE = "return lance.dataset(uri).take(rows)"


@hypothesis.settings(
    max_examples=2000 if SOAK else 60,
    deadline=None,
    database=None,
    suppress_health_check=list(hypothesis.HealthCheck),
)
@hypothesis.seed(SEED)
@hypothesis.given(
    columns=COLUMNS,
    rows=ROWS,
    chunks=st.integers(1, 3),
    per_file=st.sampled_from([1 << 20, 1 << 20, 500]),
    version=st.sampled_from(["2.1", "2.2", "2.2"]),
    value_seed=st.integers(0, 1 << 30),
)
def test_random_schemas(sides, ours, theirs, columns, rows, chunks, per_file, version, value_seed):
    rng = random.Random(value_seed)
    data = pa.table({f"c{i}": arrays.random_array(rng, t, rows, nulls, inner) for i, (t, nulls, inner) in enumerate(columns)})
    expected = stored(data)
    # Chunks with buffers of their own: the real writer panics on some slices of nested data.
    cuts = sorted(rng.randrange(rows + 1) for _ in range(chunks - 1))
    parts = [data.take(pa.array(range(a, b), pa.int64())) for a, b in zip([0, *cuts], [*cuts, rows])]
    data = pa.concat_tables(parts)
    folder = tempfile.mkdtemp(prefix="glaive-nested-")
    try:
        uris = {name: f"{folder}/{name}.lance" for name in sides}
        try:
            theirs.run(WRITE, data=data, uri=uris["theirs"], version=version, per_file=per_file)
            accepted = True
        except SideError:
            accepted = False
        try:
            ours.run(WRITE, data=data, uri=uris["ours"], version=version, per_file=per_file)
        except SideError:
            assert not accepted, "upstream writes it, we refuse it"
            return
        if not accepted:
            assert_same(ours.run(READ, uri=uris["ours"]), expected, "ours alone")
            return
        reads = Reads(sides, uris)
        reads.check(expected, "read", READ)
        if rows:
            picks = [rng.randrange(rows) for _ in range(5)]
            reads.check(expected.take(pa.array(picks)), f"took {picks}", TAKE, rows=picks)
    finally:
        shutil.rmtree(folder)
