"""Arguments of changes that must not be taken: reserved names, empty batches."""

import glaive.lance as lance
import pyarrow as pa
import pytest


@pytest.fixture
def dataset(tmp_path):
    return lance.write_dataset(pa.table({"id": range(8)}), str(tmp_path / "t.lance"), max_rows_per_file=4)


@pytest.mark.parametrize("name", ["_rowid", "_rowaddr", "_rowoffset", "_row_created_at_version", "_row_last_updated_at_version"])
def test_names_of_meta_columns_are_reserved(dataset, name):
    for change in (
        lambda: dataset.add_columns({name: "id * 10"}),
        lambda: dataset.add_columns(pa.schema([(name, pa.int64())])),
        lambda: dataset.alter_columns({"path": "id", "name": name}),
    ):
        with pytest.raises((ValueError, OSError), match=name):
            change()
    assert dataset.schema.names == ["id"] and lance.dataset(dataset.uri).version == 1


def test_batches_of_no_rows_are_refused(dataset):
    with pytest.raises(OSError, match="batch_size"):
        dataset.optimize.compact_files(batch_size=0)
    with pytest.raises(OSError, match="batch_size"):
        dataset.add_columns(pa.table({"n": range(8)}).to_reader(), batch_size=0)
    assert lance.dataset(dataset.uri).version == 1
