"""Fragments of other datasets and of other versions."""

import glaive.lance as lance
import pyarrow as pa
import pytest


def two(tmp_path):
    one = lance.write_dataset(pa.table({"x": list(range(10))}), tmp_path / "a.lance", max_rows_per_file=5)
    other = lance.write_dataset(pa.table({"x": list(range(100, 120))}), tmp_path / "b.lance", max_rows_per_file=5)
    return one, other


def xs(ds, fragments, **options):
    return ds.scanner(fragments=fragments, **options).to_table()["x"].to_pylist()


def test_fragments_of_another_dataset_are_refused(tmp_path):
    one, other = two(tmp_path)
    for fragments in (other.get_fragments()[:1], other.get_fragments()[3:], [one.get_fragments()[0], other.get_fragments()[1]]):
        for use in (xs, lambda ds, f: ds.scanner(fragments=f).count_rows(), lambda ds, f: list(ds.to_batches(fragments=f))):
            with pytest.raises(ValueError, match="belongs to .*b.lance"):
                use(one, fragments)


def test_fragments_are_those_of_their_version(tmp_path):
    one, _ = two(tmp_path)
    old = lance.dataset(one.uri)
    first = old.get_fragments()
    one.delete("x < 2")
    assert xs(one, first[:1]) == [0, 1, 2, 3, 4] and xs(one, first[1:]) == [5, 6, 7, 8, 9]  # as upstream
    assert xs(old, one.get_fragments()[:1]) == [2, 3, 4]
    assert xs(old, one.get_fragments(), columns=["x"], filter="x < 6") == [2, 3, 4, 5]
    own = one.get_fragments()[0]
    one.optimize.compact_files()  # the fragments are gone from the newest version
    assert xs(one, first[::-1]) == [5, 6, 7, 8, 9, 0, 1, 2, 3, 4]
    assert own.to_table()["x"].to_pylist() == [2, 3, 4] and own.count_rows("x > 3") == 1 and own.head(1)["x"].to_pylist() == [2]
    assert own.take([0, 2])["x"].to_pylist() == [2, 4]
    with pytest.raises(ValueError, match="several versions"):
        xs(one, [first[0], own, one.get_fragments()[0]])
    one.add_columns({"y": "x + 1"})
    with pytest.raises(ValueError, match="other columns"):
        xs(one, first)


def test_rows_deleted_in_one_fragment(tmp_path):
    ds, _ = two(tmp_path)
    ds.delete("x = 1")
    version = ds.version
    first, second = ds.get_fragments()
    left = first.delete("x >= 1 AND x < 4")
    assert (left.id, left.num_deletions, left.physical_rows) == (0, 3, 5) and left.files == first.metadata.files
    assert second.delete("x > 4") is None and second.delete("x > 100") == second.metadata
    with pytest.raises(OSError, match="nosuch"):
        first.delete("nosuch = 1")
    assert lance.dataset(ds.uri).version == version and ds.count_rows() == 9  # nothing is committed
    operation = lance.LanceOperation.Delete(updated_fragments=[left], deleted_fragment_ids=[1], predicate="x")
    ds = lance.LanceDataset.commit(ds.uri, operation, read_version=version)
    assert ds.to_table()["x"].to_pylist() == [0, 4]
    ds.validate()


def test_a_fragment_of_a_file_that_is_there(tmp_path):
    from glaive.lance.file import LanceFileWriter

    s = pa.array([{"p": 1, "q": ["a"]}, None, {"p": 3, "q": []}])
    data = pa.table({"x": [1, 2, 3], "s": s, "t": ["a", None, "c"]})
    ds = lance.write_dataset(data, tmp_path / "t.lance")
    ds.drop_columns(["x"])
    ds.add_columns(pa.field("x", pa.int64()))  # with another id than the file's
    new = pa.table({"x": [7, 8], "t": ["y", "z"]})
    with LanceFileWriter(f"{ds.uri}/data/new.lance", new.schema) as writer:
        writer.write_batch(new)
    made = lance.LanceFragment.create_from_file("new.lance", ds, 0)
    assert made.physical_rows == 2 and [f.path for f in made.files] == ["new.lance"]
    ds = lance.LanceDataset.commit(ds.uri, lance.LanceOperation.Append([made]), read_version=ds.version)
    assert ds.to_table(columns=["x", "t"]).to_pydict() == {"x": [None, None, None, 7, 8], "t": ["a", None, "c", "y", "z"]}
    assert ds.to_table()["s"].to_pylist() == [*s.to_pylist(), None, None]
    ds.validate()
    with LanceFileWriter(f"{ds.uri}/data/other.lance", pa.schema({"x": pa.int32()})) as writer:
        writer.write_batch(pa.table({"x": pa.array([1], pa.int32())}))
    with pytest.raises(ValueError, match="'x'"):
        lance.LanceFragment.create_from_file("other.lance", ds, 0)
    with LanceFileWriter(f"{ds.uri}/data/more.lance", pa.schema({"z": pa.int64()})) as writer:
        writer.write_batch(pa.table({"z": [1]}))
    with pytest.raises(ValueError, match="'z'"):
        lance.LanceFragment.create_from_file("more.lance", ds, 0)
    for name in ("nothing.lance", "../../b.lance"):
        with pytest.raises(OSError):
            lance.LanceFragment.create_from_file(name, ds, 0)
