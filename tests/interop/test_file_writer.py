"""Single files written by `glaive encode`, read by the real package and by `glaive cat`.

Tables are tested elsewhere; here are the shapes that only single files show: many pages, pages that
end anywhere, batches of one row, slices with offsets, files without rows, and what is refused.
"""

import os
import pathlib
import random
import subprocess
import zlib

import arrays
import corpus
import pyarrow as pa
import pytest
from same import assert_same

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
CLI = os.environ.get("GLAIVE_CLI", str(ROOT / "build" / "release" / "tools" / "glaive"))

READ = """
from lance.file import LanceFileReader
return LanceFileReader(path).read_all(batch_size=batch).to_table()
"""
TAKE = """
from lance.file import LanceFileReader
return LanceFileReader(path).take_rows(rows).to_table()
"""
SHAPES = {
    "one batch": (700, []),
    "small pages": (900, ["--batch-rows", "97", "--page-bytes", "3000"]),
    "single rows": (60, ["--batch-rows", "1"]),
    "slices": (700, ["--page-bytes", "2000"]),
    "no rows": (0, []),
}
COLUMNS = [c for c in corpus.DEFAULTS + corpus.FORCED if not c.metadata.get("lance-encoding:blob")]
CASES = [(c, v) for c in COLUMNS for v in c.versions]


def run(*args):
    return subprocess.run([CLI, *map(str, args)], capture_output=True, text=True, timeout=120)


def encode(path, batches, schema, *options):
    source = path / "in.arrow"
    with pa.OSFile(str(source), "wb") as sink, pa.ipc.new_file(sink, schema) as writer:
        for batch in batches:
            writer.write_batch(batch)
    target = path / "out.lance"
    return target, run("encode", source, target, *options)


def cat(path, *options):
    target = path.with_suffix(".arrow")
    done = run("cat", path, target, *options)
    assert done.returncode == 0, done.stderr
    with pa.memory_map(str(target)) as source:
        return pa.ipc.open_stream(source).read_all()


@pytest.mark.parametrize("shape", SHAPES)
def test_shapes(shape, theirs, seed, soak, tmp_path):
    rows, options = SHAPES[shape]
    chosen = random.Random(seed).sample(CASES, len(CASES) if soak else 40)
    for column, version in chosen:
        what = f"{column.name} {version} {shape}"
        rng = random.Random(zlib.crc32(repr((seed, what)).encode()))
        count = min(rows, column.rows)
        # Some generators cannot make an empty array of their own.
        table = column.table(rng, count) if count else column.table(rng, 3).slice(0, 0)
        table = table.combine_chunks()
        if shape == "slices":
            cuts = sorted(rng.sample(range(count), min(5, count)))
            batches = [b for i, j in zip(cuts, cuts[1:]) for b in table.slice(i, j - i).to_batches()]
        else:
            batches = table.to_batches()
        expected = pa.Table.from_batches(batches, table.schema)
        path, done = encode(tmp_path, batches, table.schema, "--version", version, *options)
        assert done.returncode == 0, f"{what}: {done.stderr}"
        found = theirs.run(READ, path=str(path), batch=rng.choice([1024, 100, 7]))
        assert_same(found, expected, f"upstream read {what}")
        assert_same(cat(path), expected, f"we read {what}")
        if len(expected) > 1:
            picks = sorted(rng.sample(range(len(expected)), min(9, len(expected))))
            found = theirs.run(TAKE, path=str(path), rows=picks)
            assert_same(found, expected.take(pa.array(picks)), f"upstream took {picks} of {what}")


def random_type(rng, depth=0):
    kind = rng.random()
    if depth >= 3 or kind < 0.4:
        return rng.choice([pa.int8(), pa.int32(), pa.int64(), pa.float32(), pa.bool_(), pa.utf8(),
                           pa.large_binary(), pa.list_(pa.float32(), 3), pa.list_(pa.float32(), 70),
                           pa.dictionary(pa.int16(), pa.utf8()), pa.timestamp("us"), pa.null()])  # fmt: skip
    if kind < 0.7:
        return rng.choice([pa.list_, pa.large_list])(random_type(rng, depth + 1))
    names = "abc"[: rng.randint(1, 3)]
    return pa.struct([pa.field(n, random_type(rng, depth + 1)) for n in names])


@pytest.mark.parametrize("version", ["2.1", "2.2"])
def test_random_nesting(version, theirs, seed, soak, tmp_path):
    for number in range(400 if soak else 25):
        rng = random.Random(zlib.crc32(repr((seed, version, number)).encode()))
        t = random_type(rng)
        nulls, inner = rng.choice(list(arrays.NULLS)), rng.choice(["none", "some", "all"])
        array = arrays.random_array(rng, t, rng.choice([1, 30, 700]), nulls, inner)
        table = pa.table({"c": array})
        options = ["--version", version]
        if rng.random() < 0.5:
            options += ["--batch-rows", str(rng.randint(1, 200)), "--page-bytes", str(rng.randint(1, 4000))]
        path, done = encode(tmp_path, table.to_batches(), table.schema, *options)
        what = f"case {number}: {t}, nulls {nulls}/{inner}, {len(array)} rows, {options}"
        assert done.returncode == 0, f"{what}: {done.stderr}"
        assert_same(theirs.run(READ, path=str(path), batch=64), table, f"upstream read {what}")
        assert_same(cat(path, "--batch", "50"), table, f"we read {what}")


def test_many_empty_lists_split_the_page(theirs, tmp_path):
    lists = [[i] if i % 1000 == 0 else None if i % 3 == 0 else [] for i in range(150000)]
    wide = [[[]] * 70000, [[1]], [[], [2]], None, [[]] * 50000 + [[7, None]]]
    for name, array in ("narrow", pa.array(lists, pa.list_(pa.int32()))), ("wide", pa.array(wide, pa.list_(pa.list_(pa.int32())))):
        table = pa.table({"c": array})
        for version in "2.1", "2.2":
            path, done = encode(tmp_path, table.to_batches(), table.schema, "--version", version)
            assert done.returncode == 0, done.stderr
            assert_same(theirs.run(READ, path=str(path), batch=len(table)), table, f"upstream read {name} {version}")
            assert_same(cat(path), table, f"we read {name} {version}")


def test_pages_are_bounded_in_2_0(theirs, tmp_path):
    table = pa.table({"i": pa.array(range(200000), pa.int64()), "s": [str(i) for i in range(200000)]})
    path, done = encode(tmp_path, table.to_batches(), table.schema, "--version", "2.0", "--max-page-bytes", "100000")
    assert done.returncode == 0, done.stderr
    pages = theirs.run("from lance.file import LanceFileReader\nreturn [len(c.pages) for c in LanceFileReader(path).metadata().columns]", path=str(path))
    assert pages[0] == 16 and pages[1] > 10
    assert_same(theirs.run(READ, path=str(path), batch=4096), table)
    assert_same(cat(path), table)


REFUSED = [
    (pa.array([None, {"x": 1}], pa.struct([("x", pa.int32())])), "2.0", "does not encode struct validity"),
    (pa.array([[("a", 1)]], pa.map_(pa.utf8(), pa.int32())), "2.0", "use version 2.2"),
    (pa.array([[("a", 1)]], pa.map_(pa.utf8(), pa.int32())), "2.1", "use version 2.2"),
    (pa.array([[[{"x": 1}]]], pa.list_(pa.list_(pa.struct([("x", pa.int32())]), 1))), "2.2", "lists of fixed-size lists of structs"),
    (pa.array([{}, None], pa.struct([])), "2.2", "without members"),
    (pa.array([1, 2], pa.decimal64(5, 0)), "2.2", "decimal64"),
    (pa.array([["a"]], pa.list_(pa.utf8(), 1)), "2.2", "cannot be stored"),
]


@pytest.mark.parametrize("array, version, part", REFUSED, ids=[f"{a.type}-{v}" for a, v, _ in REFUSED])
def test_refusals_name_the_column(array, version, part, tmp_path):
    schema = pa.schema([pa.field("some_column", array.type)])
    path, done = encode(tmp_path, [pa.record_batch([array], schema)], schema, "--version", version)
    assert done.returncode == 1
    assert "some_column" in done.stderr and part in done.stderr
    assert not path.exists()
