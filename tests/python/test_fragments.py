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
