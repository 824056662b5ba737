"""What lies below null structs: its own validity is silent about them, and the schema may even forbid nulls."""

import pyarrow as pa
import pytest
from test_types import Reads
from upstream import SideError

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


def null_fixed_lists(leaf, dim, rows, inside, nulls):
    """A column of fixed-size lists of structs with one member that is never null, itself null in some rows or inside null
    structs; values lie below the nulls too."""
    entry = pa.struct([pa.field("f0", leaf, nullable=False)])
    kind = pa.list_(pa.field("item", entry), dim)
    count = rows * dim
    items = {
        "all": [i % 100 for i in range(count)],
        "some": [i % 100 for i in range(count)],
        "some, one value": [7] * count,
    }[nulls]
    values = pa.array(items).cast(pa.int8()).cast(leaf)
    structs = pa.Array.from_buffers(entry, count, [None], children=[values])
    valid = pa.array([nulls != "all" and i % 3 > 0 for i in range(rows)]).buffers()[1]
    if not inside:
        return pa.Array.from_buffers(kind, rows, [valid], children=[structs])
    lists = pa.Array.from_buffers(kind, rows, [None], children=[structs])
    return pa.Array.from_buffers(pa.struct([pa.field("f0", kind, nullable=False)]), rows, [valid], children=[lists])


@pytest.mark.parametrize("version", ["2.1", "2.2"])
@pytest.mark.parametrize("nulls", ["all", "some", "some, one value"])
@pytest.mark.parametrize("leaf", [pa.int8(), pa.bool_(), pa.utf8(), pa.float64()], ids=str)
def test_fixed_lists_of_structs(nulls, leaf, version, ours, theirs, tmp_path):
    """A random schema found that the real reader takes pages without values for "unmasked nulls" here."""
    for number, (dim, rows, inside) in enumerate([(1, 2, True), (3, 2, False), (1, 1100, False), (3, 1100, True)]):
        data = pa.table({"c": null_fixed_lists(leaf, dim, rows, inside, nulls)})
        uris = {side: str(tmp_path / f"{number}{side.name}") for side in (theirs, ours)}
        try:
            theirs.run(WRITE, data=data, uri=uris[theirs], version=version)
        except SideError:
            continue  # not in files of 2.1
        ours.run(WRITE, data=data, uri=uris[ours], version=version)
        Reads({"ours": ours, "theirs": theirs}, {"ours": uris[ours], "theirs": uris[theirs]}).check(data, "read", READ)
