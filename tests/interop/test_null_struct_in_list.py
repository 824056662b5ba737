"""Lists below structs that are null inside a list, whose own validity is silent about it."""

import pyarrow as pa
import pytest

WRITE = "lance.write_dataset(data, uri, data_storage_version=version)"
READ = "return lance.dataset(uri).to_table()"


@pytest.mark.parametrize("version", ["2.1", "2.2"])
def test_upstream_reads_what_we_wrote(ours, theirs, tmp_path, version):
    """The real reader stopped with "Structural validity has 11 entries for an array with 9 values"."""
    values = pa.array([33, 7, 78, None, 71, 127, -115, 48, 47], pa.int8())
    # The lists of the null structs are empty, not null: only the structs say that nothing is there.
    lists = pa.ListArray.from_arrays(pa.array([0, 0, 2, 2, 7, 9], pa.int32()), values)
    structs = pa.StructArray.from_arrays([lists], ["f0"], mask=pa.array([True, False, True, False, False]))
    column = pa.LargeListArray.from_arrays(pa.array([0, 5], pa.int64()), structs)
    data = pa.table({"c": column})
    uri = str(tmp_path / "t.lance")
    ours.run(WRITE, data=data, uri=uri, version=version)
    assert theirs.run(READ, uri=uri)["c"].to_pylist() == data["c"].to_pylist()
    assert ours.run(READ, uri=uri)["c"].to_pylist() == data["c"].to_pylist()
