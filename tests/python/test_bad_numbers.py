"""Numbers that fit nowhere: errors of the library, which name the argument, with upstream's exception types."""

import glaive
import glaive.lance as lance
import pyarrow as pa
import pytest

HUGE = [2**63, 2**64, 2**100]


@pytest.fixture(scope="module")
def uri(tmp_path_factory):
    folder = tmp_path_factory.mktemp("db")
    vectors = pa.FixedSizeListArray.from_arrays(pa.array([0.0, 1.0, 2.0, 3.0], pa.float32()), 2)
    glaive.connect(folder).create_table("t", pa.table({"id": [1, 2], "vector": vectors}))
    return folder / "t.lance"


def nearest(k):
    return {"column": "vector", "q": [0.0, 0.0], "k": k}


CALLS = {
    "version": [lambda d, n: d.checkout_version(n), lambda d, n: lance.dataset(d.uri, version=n), lambda d, n: lance.LanceDataset(d.uri, n),
                lambda d, n: d.checkout_version(("main", n))],
    "limit": [lambda d, n: d.to_table(limit=n), lambda d, n: d.scanner(limit=n)],
    "offset": [lambda d, n: d.to_table(offset=n)],
    "batch_size": [lambda d, n: d.to_table(batch_size=n)],
    "batch_size_bytes": [lambda d, n: d.to_batches(batch_size_bytes=n)],
    "k": [lambda d, n: d.to_table(nearest=nearest(n))],
    "fragment_id": [lambda d, n: d.get_fragment(n)],
}  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
def test_dataset(uri, name):
    dataset = lance.dataset(uri)
    for call in CALLS[name]:
        for number in HUGE:
            with pytest.raises(OverflowError, match=rf"{name}.*{number}"):
                call(dataset, number)
        with pytest.raises(TypeError, match=rf"{name}.*1\.5"):
            call(dataset, 1.5)


def test_table_versions(uri):
    table = glaive.connect(uri.parent).open_table("t")
    for call in (table.checkout, table.restore):
        with pytest.raises(ValueError, match="Version 9223372036854775808 no longer exists"):
            call(2**63)
        with pytest.raises(OverflowError, match="version"):
            call(2**64)
        with pytest.raises(TypeError, match="1.5"):
            call(1.5)
    assert table.count_rows() == 2


def test_positions_and_sizes(uri, tmp_path):
    dataset, table = lance.dataset(uri), glaive.connect(uri.parent).open_table("t")
    fragment = dataset.get_fragments()[0]
    assert table.take_offsets([2**63]).to_list() == []
    assert [row["id"] for row in table.take_offsets([1, 2**63]).to_list()] == [2]
    for take in (dataset.take, fragment.take):
        with pytest.raises(TypeError, match="indices must be a sequence of integers"):
            take(None)
    for call in (dataset.tags.create, dataset.tags.update):
        with pytest.raises(OverflowError, match=r"version.*18446744073709551616"):
            call("x", 2**64)
    with pytest.raises(TypeError, match=r"max_bytes_per_file.*1\.5"):
        lance.write_dataset(pa.table({"a": [1]}), tmp_path / "w", max_bytes_per_file=1.5)
    assert not (tmp_path / "w").exists()


def test_fragment_merge_names_the_missing_column(uri):
    fragment = lance.dataset(uri).get_fragments()[0]
    with pytest.raises(ValueError, match="given data has no column 'nope'"):
        fragment.merge(pa.table({"id": [1]}), "id", "nope")
    with pytest.raises(ValueError, match="fragment 0 has no column 'key'"):
        fragment.merge(pa.table({"key": [1], "x": [1]}), "key")
