"""Few rows of a great size: batches are cut by bytes, with a filter and without, whatever the number of rows."""

import glaive.lance as lance
import pyarrow as pa
import pytest

MIB = 1 << 20


@pytest.fixture(scope="module")
def dataset(tmp_path_factory):
    rows = pa.table({"i": range(40), "body": [chr(65 + i % 26) * (2 * MIB + i) for i in range(40)]})
    return lance.write_dataset(rows, str(tmp_path_factory.mktemp("large") / "t.lance"))


@pytest.mark.parametrize("batch_size", [None, 1000])
def test_batches_are_bounded_by_bytes(dataset, batch_size):
    batches = list(dataset.to_batches(batch_size=batch_size) if batch_size else dataset.to_batches())
    assert max(batch.nbytes for batch in batches) <= 40 * MIB
    assert [len(s) for b in batches for s in b["body"].to_pylist()] == [2 * MIB + i for i in range(40)]


@pytest.mark.soak
def test_a_filter_finds_more_than_two_gibibytes(tmp_path):
    """One fragment holds more text than a column of one batch can."""
    uri = str(tmp_path / "t.lance")
    batch = lambda i: pa.record_batch({"i": [i], "body": [chr(65 + i % 26) * (50 * MIB + i)]})  # noqa: E731
    reader = pa.RecordBatchReader.from_batches(batch(0).schema, (batch(i) for i in range(45)))
    ds = lance.write_dataset(reader, uri)
    assert len(ds.get_fragments()) == 1
    for options in ({}, {"filter": "i >= 0"}, {"filter": "body > 'A'"}):
        found = {i.as_py(): len(s.as_buffer()) for b in ds.to_batches(**options) for i, s in zip(b["i"], b["body"])}
        assert found == {i: 50 * MIB + i for i in range(45)}, options
    assert ds.count_rows("body > 'A'") == 45
    ds.delete("body < 'B'")
    assert lance.dataset(uri).count_rows() == 43
