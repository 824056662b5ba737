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
from test_types import READ, READ_EACH, Reads, attempt, stored
from upstream import SideError

# Arrow itself cannot take from views.
VIEWS = [pa.string_view(), pa.binary_view()]
LEAVES = [t for t in arrays.TYPES.values() if t.num_fields == 0 and t not in VIEWS] + [
    pa.list_(pa.float32(), 4), pa.list_(pa.float32(), 70), pa.list_(pa.bool_(), 5),
]  # fmt: skip


def fields(children):
    """One field in four may not be null."""
    return st.builds(lambda t, n: pa.field("item", t, nullable=n > 0 or t == pa.null()), children, st.integers(0, 3))


def struct(members):
    return pa.struct([m.with_name(f"f{i}") for i, m in enumerate(members)])


def lists(children):
    structs = st.lists(fields(children), min_size=1, max_size=3).map(struct)
    return st.one_of(
        fields(children).map(pa.list_),
        fields(children).map(pa.large_list),
        structs,
        st.builds(lambda f: pa.map_(pa.utf8(), f.with_name("value")), fields(children)),
        st.builds(pa.list_, structs, st.integers(1, 3)),
    )


TYPES = st.recursive(st.sampled_from(LEAVES), lists, max_leaves=6)
NULLS = st.sampled_from(sorted(arrays.NULLS))
COLUMNS = st.lists(st.tuples(fields(TYPES), NULLS, NULLS), min_size=1, max_size=4)
ROWS = st.one_of(st.integers(0, 40), st.sampled_from([64, 1023, 1024, 1025, 4097]))

WRITE = """
reader = pa.RecordBatchReader.from_batches(data.schema, data.to_batches())
lance.write_dataset(reader, uri, schema=data.schema, data_storage_version=version, max_rows_per_file=per_file)
"""
TAKE = "return lance.dataset(uri).take(rows)"


TAKE_SOME = "return lance.dataset(uri).take(rows, columns=columns)"
SCAN_SOME = "return lance.dataset(uri).to_table(columns=columns)"


def members(prefix, t):
    """Paths of everything that is reached through structs alone."""
    if not pa.types.is_struct(t):
        return []
    below = [(f"{prefix}.{f.name}", f.type) for f in t]
    return [path for path, _ in below] + [path for name, kind in below for path in members(name, kind)]


def check_member(rng, sides, uris, schema, picks):
    """Some members of structs, and columns: what the real package reads from its own file, all of us read."""
    paths = [path for f in schema for path in members(f.name, f.type)]
    if not paths:
        return
    columns = rng.sample(paths, min(len(paths), rng.randint(1, 3))) + rng.sample(schema.names, rng.randint(0, 1))
    for code, args in (TAKE_SOME, {"rows": picks}), (SCAN_SOME, {}):
        expected, refused = attempt(sides["theirs"], code, uri=uris["theirs"], columns=columns, **args)
        if refused is not None:
            continue
        for writer, uri in uris.items():
            for name, side in sides.items():
                found = side.run(code, uri=uri, columns=columns, **args)
                assert_same(found, expected, f"{writer} wrote, {name} read {columns}")


def random_table(rng, columns, rows):
    schema, values = [], []
    for number, (kind, nulls, inner) in enumerate(columns):
        schema.append(kind.with_name(f"c{number}"))
        values.append(arrays.random_array(rng, kind.type, rows, nulls if kind.nullable else "none", inner))
    return pa.table(values, schema=pa.schema(schema))


@hypothesis.settings(
    max_examples=2000 if SOAK else 60,
    deadline=None,
    database=None,
    phases=[hypothesis.Phase.generate, hypothesis.Phase.shrink],
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
    data = random_table(rng, columns, rows)
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
            if accepted:
                _, unreadable = attempt(theirs, READ_EACH, uri=uris["theirs"])
                assert unreadable is not None, "upstream writes and reads it, we refuse it"
            return
        if not accepted:
            assert_same(ours.run(READ, uri=uris["ours"]), expected, "ours alone")
            return
        reads = Reads(sides, uris)
        reads.check(expected, "read", READ)
        if rows:
            picks = [rng.randrange(rows) for _ in range(5)]
            reads.check(expected.take(pa.array(picks)), f"took {picks}", TAKE, rows=picks)
            check_member(rng, sides, uris, expected.schema, picks)
    finally:
        shutil.rmtree(folder)
