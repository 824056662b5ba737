"""Blobs of the second kind (`lance.blob.v2`, file version 2.2): written by either side, read by both."""

import os
import random

import pyarrow as pa
import pytest
from testing import SEED

WRITE = """
blob_array, blob_field = lance.blob.blob_array, lance.blob.blob_field
limits = dict(inline_size_threshold=100, dedicated_size_threshold=3000, pack_file_size_threshold=5000) if small else {}
schema = pa.schema([pa.field("i", pa.int64()), blob_field("b", **limits)])
data = pa.table([pa.array(range(len(values))), blob_array(values)], schema=schema)
lance.write_dataset(data, uri, mode="append", max_rows_per_file=rows)
"""
NESTED = """
blob_array, blob_field = lance.blob.blob_array, lance.blob.blob_field
blobs = blob_array([b"a" * 70000, None, b"", b"ccc"])
s = pa.StructArray.from_arrays([blobs, pa.array([1, 2, 3, 4])], fields=[blob_field("inner"), pa.field("n", pa.int64())],
                               mask=pa.array([False, False, False, True]))
# Below a null list or struct lies a blob that nobody sees.
l = pa.ListArray.from_arrays(pa.array([0, 2, None, 3, 4]), blob_array([b"x", None, b"y" * 70000, b"z"]))
lance.write_dataset(pa.table({"s": s, "l": l}), uri)
"""
READ = """
d = lance.dataset(uri)
blobs = d.read_blobs("b", indices=list(range(d.count_rows())))
return [b for _, b in blobs], d.to_table(filter=filter), d.count_rows("b IS NULL")
"""
SHAPE = "return [(f.name, str(f.type.storage_type if hasattr(f.type, 'storage_type') else f.type)) for f in lance.dataset(uri).schema]"


def values(rng, small):
    unit = 1 if small else 1300
    sizes = [0, 1, 100, 101, 2000, 3000, 3001] if small else [0, 5, 65536, 65537, 200000, 4194304, 4194305]
    out = [rng.randbytes(size) for size in sizes]
    out += [rng.randbytes(unit * rng.randrange(1, 80)) for _ in range(20)]
    out += [None] * 5
    rng.shuffle(out)
    return out


@pytest.mark.parametrize("small", [True, False], ids=["own limits", "default limits"])
@pytest.mark.parametrize("writer", ["ours", "theirs"])
def test_round_trip(sides, tmp_path, writer, small):
    rng = random.Random(SEED)
    uri = str(tmp_path / "t.lance")
    given = values(rng, small)
    half = len(given) // 2
    sides[writer].run(WRITE, uri=uri, values=given[:half], small=small, rows=7)
    other = "ours" if writer == "theirs" else "theirs"
    sides[other].run(WRITE, uri=uri, values=given[half:], small=small, rows=1000)
    found = {name: side.run(READ, uri=uri, filter="i % 2 = 0") for name, side in sides.items()}
    for name, (blobs, _, nulls) in found.items():
        assert blobs == given, name
        assert nulls == given.count(None)
    # The same descriptions, and the same shape of the table.
    assert found["ours"][1].to_pydict() == found["theirs"][1].to_pydict()
    assert found["ours"][1].schema.equals(found["theirs"][1].schema)
    assert sides["ours"].run(SHAPE, uri=uri) == sides["theirs"].run(SHAPE, uri=uri)


@pytest.mark.parametrize("small", [True, False])
def test_bytes_lie_where_upstream_puts_them(sides, tmp_path, small):
    """Row by row the same kinds, positions, sizes and numbers of files."""
    given = values(random.Random(SEED), small)
    read = "return lance.dataset(uri).to_table(columns=['b'])['b'].to_pylist()"
    layout = {}
    for name, side in sides.items():
        uri = str(tmp_path / name)
        side.run(WRITE, uri=uri, values=given, small=small, rows=10**6)
        layout[name] = side.run(read, uri=uri)
        files = sorted((os.path.basename(f), os.path.getsize(os.path.join(folder, f))) for folder, _, names in os.walk(f"{uri}/data") for f in names if f.endswith(".blob"))
        layout[name + " files"] = files
    assert layout["ours"] == layout["theirs"]
    assert layout["ours files"] == layout["theirs files"] and {d["kind"] for d in layout["ours"] if d} == {0, 1, 2}


@pytest.mark.parametrize("writer", ["ours", "theirs"])
def test_nested(sides, tmp_path, writer):
    uri = str(tmp_path / "t.lance")
    sides[writer].run(NESTED, uri=uri)
    found = {name: side.run("return lance.dataset(uri).to_table().to_pylist()", uri=uri) for name, side in sides.items()}
    assert found["ours"] == found["theirs"]
    rows = found["ours"]
    assert rows[3]["s"] is None and rows[1]["s"]["inner"] is None and rows[2]["s"]["inner"]["size"] == 0
    assert [d and d["size"] for d in rows[0]["l"]] == [1, None] and rows[2]["l"] is None
    assert [[d["kind"], d["size"]] for row in (rows[1], rows[3]) for d in row["l"]] == [[1, 70000], [0, 1]]
    read = "return [b for _, b in lance.dataset(uri).read_blobs('s.inner', indices=[0, 1, 2])]"
    assert sides["theirs"].run(read, uri=uri) == [b"a" * 70000, None, b""]


REFUSED = {
    "an old file version": ("blob_array([b'a'])", {"data_storage_version": "2.1"}, "2.2"),
    "both data and uri": ("pa.StructArray.from_arrays([pa.array([b'x'], pa.large_binary()), pa.array(['file:///x'])], ['data', 'uri'])", {}, "exactly one"),
    "neither": ("pa.StructArray.from_arrays([pa.array([None], pa.large_binary()), pa.array([None], pa.utf8())], ['data', 'uri'])", {}, "exactly one"),
    "vectors of blobs": ("pa.FixedSizeListArray.from_arrays(blob_array([b'a', b'b']), 2)", {}, ""),
}


@pytest.mark.parametrize("what", REFUSED)
def test_refused(sides, tmp_path, what):
    value, options, message = REFUSED[what]
    code = f"""
        blob_array, blob_field = lance.blob.blob_array, lance.blob.blob_field
        value = {value}
        field = pa.field("b", value.type, metadata=None if isinstance(value, pa.ExtensionArray) or pa.types.is_fixed_size_list(value.type)
                         else {{"ARROW:extension:name": "lance.blob.v2"}})
        try:
            lance.write_dataset(pa.table([value], schema=pa.schema([field])), uri, **options)
        except (ValueError, OSError, NotImplementedError) as error:
            return str(error)
    """
    for name, side in sides.items():
        uri = str(tmp_path / name)
        said = side.run(code, uri=uri, options=options)
        assert said is not None and message in said, (name, said)
        left = [f for _, _, files in os.walk(uri) for f in files]
        assert name == "theirs" or left == [], left


def test_uris_are_refused_by_name(ours, tmp_path):
    if ours.name != "ours":
        pytest.skip("upstream takes them where it is allowed to")
    code = """
        Blob, blob_array, blob_field = lance.blob.Blob, lance.blob.blob_array, lance.blob.blob_field
        value = blob_array([b"kept", Blob.from_uri("file:///somewhere")])
        try:
            lance.write_dataset(pa.table([value], schema=pa.schema([blob_field("b")])), uri)
        except NotImplementedError as error:
            return str(error)
    """
    assert "uri" in ours.run(code, uri=str(tmp_path / "t"))
    assert not [f for _, _, files in os.walk(tmp_path) for f in files]
