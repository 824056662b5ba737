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


CHANGE = {
    "update": "t.update(where='i % 3 = 1', values_sql={'n': 'n + 100'})",
    "update all": "t.update(values={'n': 5})",
    "partial merge": """t.merge_insert('i').when_matched_update_all().execute(
        pa.table({'i': pa.array(range(0, 200, 2), pa.int64()), 'n': pa.array(range(1000, 1100), pa.int64())}))""",
    "compact": "t.optimize()",
}  # fmt: skip


@pytest.mark.parametrize("change", CHANGE)
@pytest.mark.parametrize("writer", ["ours", "theirs"])
def test_rows_that_are_written_anew_keep_their_blobs(sides, ours, theirs, tmp_path, writer, change):
    """Of every kind; in fragments with deleted rows, without blobs, and of which the column is younger."""
    rng = random.Random(SEED)
    given = values(rng, small=True) + [rng.randbytes(4000) for _ in range(3)]
    make = """
    blob_array, blob_field = lance.blob.blob_array, lance.blob.blob_field
    limits = dict(inline_size_threshold=100, dedicated_size_threshold=3000, pack_file_size_threshold=5000)
    schema = pa.schema([pa.field("i", pa.int64()), pa.field("n", pa.int64()), blob_field("b", **limits)])
    rows = len(values)
    data = pa.table([pa.array(range(rows), pa.int64()), pa.array(range(rows), pa.int64()), blob_array(values)], schema=schema)
    lance.write_dataset(data, db + '/t.lance', max_rows_per_file=9)
    lance.dataset(db + '/t.lance').delete("i IN (3, 4, 20)")
    """
    sides[writer].run(make, db=str(tmp_path), values=given)
    side = ours if ours.name == "ours" else theirs
    side.run("t = lancedb.connect(db).open_table('t')\n" + CHANGE[change], db=str(tmp_path))
    if change == "update":  # once more, over what was written anew
        side.run("t = lancedb.connect(db).open_table('t')\nt.optimize()", db=str(tmp_path))
    side.run(
        "import datetime\nlance.dataset(db + '/t.lance').cleanup_old_versions(datetime.timedelta(0), delete_unverified=True)",
        db=str(tmp_path),
    )
    read = """
    d = lance.dataset(db + '/t.lance')
    t = d.to_table(columns=['i', 'n'])
    blobs = [b for _, b in d.read_blobs('b', indices=list(range(t.num_rows)))]
    kinds = d.to_table(columns=['b'])['b'].to_pylist()
    return t['i'].to_pylist(), t['n'].to_pylist(), blobs, [k and k['kind'] for k in kinds]
    """
    kept = {i: b for i, b in enumerate(given) if i not in (3, 4, 20)}
    for name, reader in sides.items():
        ids, numbers, blobs, kinds = reader.run(read, db=str(tmp_path))
        assert dict(zip(ids, blobs)) == kept and sorted(ids) == sorted(kept), name
        assert {k for k in kinds if k is not None} == {0, 1, 2}
        want = {
            "update": lambda i: i + 100 if i % 3 == 1 else i,
            "update all": lambda i: 5,
            "partial merge": lambda i: 1000 + i // 2 if i % 2 == 0 else i,
            "compact": lambda i: i,
        }[change]
        assert dict(zip(ids, numbers)) == {i: want(i) for i in kept}, name
    # Files of what is gone are gone.
    verified = ours.run("import glaive.maintenance\nr = glaive.maintenance.verify(uri, decode=True)\nreturn r.sound, [p.path for p in r.problems]", uri=str(tmp_path / "t.lance"))
    assert verified == (True, [])


def test_nested_blobs_in_compaction_and_updates(sides, ours, theirs, tmp_path):
    uri = str(tmp_path / "t.lance")
    theirs.run(NESTED.replace('{"s": s, "l": l}', '{"s": s, "l": l, "n": pa.array([1, 2, 3, 4])}'), uri=uri)
    theirs.run(NESTED.replace('{"s": s, "l": l}', '{"s": s, "l": l, "n": pa.array([1, 2, 3, 4])}').replace("uri)", "uri, mode='append')"), uri=uri)
    shape = "return lance.dataset(uri).to_table(columns=['n', 's', 'l']).to_pylist()"
    sizes = lambda rows: sorted(str((r["n"], r["s"] and (r["s"]["n"], r["s"]["inner"] and r["s"]["inner"]["size"]), r["l"] and [d and d["size"] for d in r["l"]])) for r in rows)  # noqa: E731
    before = sizes(ours.run(shape, uri=uri))
    ours.run("d = lance.dataset(uri)\nd.optimize.compact_files()\nd.update({'n': 'n'}, where='n > 1')", uri=uri)
    for side in sides.values():
        assert sizes(side.run(shape, uri=uri)) == before
        read = "d = lance.dataset(uri)\nreturn [(n, b) for n, (_, b) in zip(d.to_table(columns=['n'])['n'].to_pylist(), d.read_blobs('s.inner', indices=list(range(8))))]"
        found = [pair for pair in side.run(read, uri=uri) if pair[0] < 4]
        assert sorted(found, key=lambda p: (p[0], p[1] or b"")) == [(1, b"a" * 70000)] * 2 + [(2, None)] * 2 + [(3, b"")] * 2


@pytest.mark.parametrize("change", CHANGE)
def test_blobs_outside_of_the_table_stay_where_they_are(ours, theirs, tmp_path, change):
    """Rows that are written anew keep the uris of such blobs, as upstream has it, and which part of the file they are."""
    outside = tmp_path / "outside.bin"
    outside.write_bytes(b"z" * 300 + b"y" * 200)
    make = """
    blob_array, blob_field, Blob = lance.blob.blob_array, lance.blob.blob_field, lance.blob.Blob
    for k in (0, 1):
        column = blob_array([b"in", Blob.from_uri(uri), None, b"b" * 70000, Blob.from_uri(uri)])
        data = pa.table([pa.array(range(5 * k, 5 * k + 5), pa.int64()), pa.array(range(5 * k, 5 * k + 5), pa.int64()), column],
                        schema=pa.schema([pa.field("i", pa.int64()), pa.field("n", pa.int64()), blob_field("b")]))
        lance.write_dataset(data, db + '/t.lance', mode='append', allow_external_blob_outside_bases=True)
    """
    read = """
    d = lance.dataset(db + '/t.lance')
    ids = d.to_table(columns=['i'])['i'].to_pylist()
    told = d.to_table(columns=['b'])['b'].to_pylist()
    return {i: t and (t['kind'], t['size'], t['blob_uri']) for i, t in zip(ids, told)}
    """
    contents = """
    d = lance.dataset(db + '/t.lance')
    ids = d.to_table(columns=['i'])['i'].to_pylist()
    return {i: b for i, (_, b) in zip(ids, d.read_blobs('b', indices=list(range(len(ids)))))}
    """
    theirs.run(make, db=str(tmp_path), uri=outside.as_uri())
    before, values = theirs.run(read, db=str(tmp_path)), theirs.run(contents, db=str(tmp_path))
    assert before[1] == (3, 0, outside.as_uri()) and values[1] == outside.read_bytes()
    ours.run("t = lancedb.connect(db).open_table('t')\n" + CHANGE[change].replace("200, 2", "10, 2").replace("1100", "1005"), db=str(tmp_path))
    assert theirs.run(read, db=str(tmp_path)) == ours.run(read, db=str(tmp_path)) == before
    assert theirs.run(contents, db=str(tmp_path)) == values
    # And what upstream makes of rows that were moved.
    theirs.run("d = lance.dataset(db + '/t.lance')\nd.update({'n': 'n + 1'}, where='i < 7')\nd.optimize.compact_files()", db=str(tmp_path))
    assert theirs.run(contents, db=str(tmp_path)) == values
