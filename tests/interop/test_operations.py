"""Writes in two steps, files and then the commit, with either package in each part."""

import pyarrow as pa
import pytest
from upstream import SideError

WRITE = """
import json
from importlib import import_module
fragments = import_module(lance.__name__ + '.fragment').write_fragments(data, uri, mode=mode, max_rows_per_file=2)
return [json.dumps(f.to_json()) for f in fragments]
"""
COMMIT = """
from importlib import import_module
metadata = import_module(lance.__name__ + '.fragment').FragmentMetadata
fragments = [metadata.from_json(f) for f in written]
operation = lance.LanceOperation.Overwrite(data.schema, fragments) if mode == 'overwrite' else lance.LanceOperation.Append(fragments)
return lance.LanceDataset.commit(uri, operation, read_version=read_version).version
"""
READ = "return lance.dataset(uri).to_table()"
ROWS = pa.table({"a": [1, 2, 3], "s": ["x", None, "z"], "v": pa.array([[1.0, 2.0], None, [3.0, 4.0]], pa.list_(pa.float32(), 2))})
MORE = pa.table({"a": [4], "s": ["w"], "v": pa.array([[5.0, 6.0]], pa.list_(pa.float32(), 2))})


@pytest.mark.parametrize("writer", ["ours", "theirs"])
@pytest.mark.parametrize("committer", ["ours", "theirs"])
def test_overwrite_then_append(sides, tmp_path, writer, committer):
    uri = str(tmp_path / "t.lance")
    written = sides[writer].run(WRITE, data=ROWS, uri=uri, mode="overwrite")
    assert len(written) == 2
    assert sides[committer].run(COMMIT, data=ROWS, uri=uri, written=written, mode="overwrite", read_version=None) == 1
    for side in sides.values():
        assert side.run(READ, uri=uri).equals(ROWS)
    # Two writers on the same version, committed one after the other.
    first = sides["ours"].run(WRITE, data=MORE, uri=uri, mode="append")
    second = sides["theirs"].run(WRITE, data=MORE.slice(0, 1), uri=uri, mode="append")
    assert sides[committer].run(COMMIT, data=MORE, uri=uri, written=first, mode="append", read_version=1) == 2
    assert sides[writer].run(COMMIT, data=MORE, uri=uri, written=second, mode="append", read_version=1) == 3
    for side in sides.values():
        assert side.run(READ, uri=uri).equals(pa.concat_tables([ROWS, MORE, MORE]))


DELETE = """
ds = lance.dataset(uri)
fragments = [f.metadata for f in ds.get_fragments()]
operation = lance.LanceOperation.Delete([], [fragments[0].id], "a < 3")
ds = lance.LanceDataset.commit(ds, operation, read_version=ds.version)
return ds.version, ds.to_table()
"""
RESTORE = """
ds = lance.LanceDataset.commit(uri, lance.LanceOperation.Restore(1))
return ds.version, ds.to_table()
"""
TRANSACTION = """
from importlib import import_module
made = import_module(lance.__name__ + '.fragment').write_fragments(data, uri, mode='append', return_transaction=True)
ds = lance.LanceDataset.commit(uri, made)
return type(made.operation).__name__, made.read_version, ds.version
"""


@pytest.mark.parametrize("side", ["ours", "theirs"])
def test_other_operations(sides, tmp_path, side):
    uri = str(tmp_path / "t.lance")
    sides["theirs" if side == "ours" else "ours"].run("lance.write_dataset(data, uri, max_rows_per_file=2)", data=ROWS, uri=uri)
    version, rows = sides[side].run(DELETE, uri=uri)
    assert version == 2 and rows.equals(ROWS.slice(2))
    assert sides[side].run(TRANSACTION, data=MORE, uri=uri) == ("Append", 2, 3)
    version, rows = sides[side].run(RESTORE, uri=uri)
    assert version == 4 and rows.equals(ROWS)
    for other in sides.values():
        assert other.run(READ, uri=uri).equals(ROWS)


def test_what_does_not_fit_is_refused(sides, tmp_path):
    uri = str(tmp_path / "t.lance")
    sides["ours"].run("lance.write_dataset(data, uri)", data=ROWS, uri=uri)
    for side in sides.values():
        for code, error in {
            "lance.LanceDataset.commit(uri, lance.LanceOperation.Append([]))": "ValueError",
            "lance.LanceDataset.commit(uri, 5)": "TypeError",
            "lance.LanceDataset.commit(5, lance.LanceOperation.Append([]), read_version=1)": "TypeError",
            "lance.LanceOperation.Append([5])": "TypeError",
            "lance.LanceOperation.Append(())": "TypeError",
        }.items():
            with pytest.raises(SideError) as caught:
                side.run(code, uri=uri)
            assert error == caught.value.kind or error in caught.value.bases, (code, caught.value)
        assert side.run(READ, uri=uri).equals(ROWS)


NEW_COLUMN = """
import json
ds = lance.dataset(uri)
out = []
for fragment in ds.get_fragments():
    metadata, _ = fragment.merge_columns(lambda b: pa.RecordBatch.from_pydict({'c': [v.as_py() * 10 for v in b['a']]}), columns=['a'])
    out.append(json.dumps(metadata.to_json()))
return out
"""
OPERATIONS = """
from glaive.lance.fragment import FragmentMetadata, write_fragments
O = lance.LanceOperation
ds = lance.dataset(uri)
commit = lambda ds, operation: lance.LanceDataset.commit(ds, operation, read_version=ds.version)
ds = commit(ds, O.Merge([FragmentMetadata.from_json(f) for f in written], pa.schema([*ds.schema, pa.field('c', pa.int64())])))
ds = commit(ds, O.Project(pa.schema([ds.schema.field('c'), ds.schema.field('a')])))
old = [f.metadata for f in ds.get_fragments()]
ds = commit(ds, O.Update(removed_fragment_ids=[old[0].id], new_fragments=write_fragments(pa.table({'c': [7], 'a': [8]}), ds)))
old = [f.metadata for f in ds.get_fragments()]
ds = commit(ds, O.Rewrite([O.RewriteGroup(old, write_fragments(ds.to_table(), ds))], []))
ds.validate()
return len(ds.get_fragments())
"""


def test_columns_projections_updates_and_rewrites(sides, tmp_path):
    uri = str(tmp_path / "t.lance")
    sides["theirs"].run("lance.write_dataset(data, uri, max_rows_per_file=2)", data=ROWS, uri=uri)
    written = sides["theirs"].run(NEW_COLUMN, uri=uri)
    assert sides["ours"].run(OPERATIONS, uri=uri, written=written) == 1
    tens = pa.array([10, 20, 30])
    states = {
        1: ROWS,
        2: ROWS.append_column("c", tens),
        3: pa.table({"c": tens, "a": [1, 2, 3]}),
        4: pa.table({"c": [30, 7], "a": [3, 8]}),
        5: pa.table({"c": [30, 7], "a": [3, 8]}),
    }
    for side in sides.values():
        for version, rows in states.items():
            assert side.run("return lance.dataset(uri, version=version).to_table()", uri=uri, version=version).equals(rows)
