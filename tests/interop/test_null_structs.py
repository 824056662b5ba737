"""What lies below null structs: its own validity is silent about them, and the schema may even forbid nulls."""

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


LEAF = pa.field("f0", pa.int8(), nullable=False)
MIDDLE = pa.field("f0", pa.struct([LEAF]), nullable=False)
LISTS = pa.field("f0", pa.list_(LEAF), nullable=False)
ENTRY = pa.struct([LISTS])


@pytest.mark.parametrize("version", ["2.1", "2.2"])
@pytest.mark.parametrize(
    "name, values, kind",
    [
        # The real reader found "unmasked nulls" in the first two.
        ("all null", [None], pa.struct([MIDDLE])),
        ("constant", [None, {"f0": {"f0": 1}}], pa.struct([MIDDLE])),
        ("values", [{"f0": {"f0": i % 100}} if i % 3 else None for i in range(2000)], pa.struct([MIDDLE])),
        ("lists", [{"f0": [i % 100] * (i % 4)} if i % 3 else None for i in range(500)], ENTRY),
        ("lists in lists", [[{"f0": [7] * (i % 3)}, None] if i % 3 else [] for i in range(500)], pa.list_(ENTRY)),
        ("all null lists", [[None, None], []], pa.list_(ENTRY)),
    ],
    ids=lambda part: part if isinstance(part, str) else "",
)
def test_members_that_are_never_null(name, values, kind, version, ours, theirs, tmp_path):
    data = pa.table({"c": pa.array(values, kind)})
    uri = str(tmp_path / "t.lance")
    ours.run(WRITE, data=data, uri=uri, version=version)
    for side in theirs, ours:
        assert side.run(READ, uri=uri)["c"].to_pylist() == values
