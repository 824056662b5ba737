"""Branches and shallow clones: what one side makes, the other reads and writes."""

import pyarrow as pa
import pytest
from upstream import SideError

CREATE = "lance.write_dataset(data, uri); ds = lance.write_dataset(more, uri, mode='append'); ds.delete('a = 2')"
BRANCH = """
ds = lance.dataset(uri)
branch = ds.create_branch(name, reference)
return branch.version, sorted(branch.to_table()['a'].to_pylist())
"""
APPEND = """
ds = lance.dataset(uri).checkout_version((name, None))
ds = lance.write_dataset(pa.table({'a': [value]}), ds, mode='append')
ds.delete('a = 1')
return ds.version
"""
READ = "return sorted(lance.dataset(uri).checkout_version(reference).to_table()['a'].to_pylist())"
LIST = """
keys = ('parent_branch', 'parent_version', 'branch_identifier', 'create_at', 'manifest_size', 'metadata')
return {name: {key: info[key] for key in keys} for name, info in lance.dataset(uri).branches.list().items()}
"""
DATA = pa.table({"a": [1, 2, 3]})
MORE = pa.table({"a": [4]})


@pytest.mark.parametrize("maker,other", [("ours", "theirs"), ("theirs", "ours")])
def test_branches_of_one_side_on_the_other(maker, other, sides, tmp_path):
    uri = str(tmp_path / "t.lance")
    make, use = sides[maker], sides[other]
    make.run(CREATE, data=DATA, more=MORE, uri=uri)
    assert make.run(BRANCH, uri=uri, name="dev/x", reference=None) == (3, [1, 3, 4])
    assert use.run(READ, uri=uri, reference=("dev/x", None)) == [1, 3, 4]
    # Both write, in turns.
    assert use.run(APPEND, uri=uri, name="dev/x", value=9) == 5
    assert make.run(READ, uri=uri, reference=("dev/x", None)) == [3, 4, 9]
    assert make.run(APPEND, uri=uri, name="dev/x", value=10) == 7
    for side in (make, use):
        assert side.run(READ, uri=uri, reference=("dev/x", None)) == [3, 4, 9, 10]
        assert side.run(READ, uri=uri, reference=("dev/x", 4)) == [1, 3, 4, 9]
        assert side.run(READ, uri=uri, reference=("main", None)) == [1, 3, 4]
        assert side.run(READ, uri=f"{uri}/tree/dev/x", reference=7) == [3, 4, 9, 10]
    # A branch of the branch, by the other side; a tag on it.
    assert use.run(BRANCH, uri=uri, name="second", reference=("dev/x", 5)) == (5, [3, 4, 9])
    use.run("lance.dataset(uri).tags.create('t', ('second', 5))", uri=uri)
    assert make.run(READ, uri=uri, reference="t") == [3, 4, 9]
    assert make.run(LIST, uri=uri) == use.run(LIST, uri=uri)
    listed = make.run(LIST, uri=uri)
    assert [(n, b["parent_branch"], b["parent_version"]) for n, b in sorted(listed.items())] == [
        ("dev/x", None, 3),
        ("second", "dev/x", 5),
    ]
    for side in (make, use):
        for name, kind in (("dev/x", "OSError"), ("second", "OSError"), ("nope", "ValueError")):
            with pytest.raises(SideError) as error:
                side.run("lance.dataset(uri).branches.delete(name)", uri=uri, name=name)
            assert kind in error.value.bases
    make.run("lance.dataset(uri).tags.delete('t')", uri=uri)
    make.run("lance.dataset(uri).branches.delete('second')", uri=uri)
    use.run("lance.dataset(uri).branches.delete('dev/x')", uri=uri)
    assert make.run(LIST, uri=uri) == {}
    assert not [p for p in (tmp_path / "t.lance" / "tree").rglob("*") if p.is_file()]


@pytest.mark.parametrize("maker,other", [("ours", "theirs"), ("theirs", "ours")])
def test_shallow_clones_of_one_side_on_the_other(maker, other, sides, tmp_path):
    uri, clone = str(tmp_path / "t.lance"), str(tmp_path / "c.lance")
    make, use = sides[maker], sides[other]
    make.run(CREATE, data=DATA, more=MORE, uri=uri)
    code = "return lance.dataset(uri).shallow_clone(clone, reference).version"
    assert make.run(code, uri=uri, clone=clone, reference=3) == 3
    read = "return sorted(lance.dataset(uri).to_table()['a'].to_pylist())"
    change = "lance.write_dataset(pa.table({'a': [7]}), uri, mode='append').delete('a = 3')"
    assert use.run(read, uri=clone) == [1, 3, 4]
    use.run(change, uri=clone)
    assert make.run(read, uri=clone) == [1, 4, 7]
    assert make.run(read, uri=uri) == [1, 3, 4]
    make.run("lance.dataset(uri).restore()", uri=clone)
    assert use.run(read, uri=clone) == [1, 4, 7]
    for side in (make, use):
        with pytest.raises(SideError, match="already exists"):
            side.run(code, uri=uri, clone=clone, reference=3)


@pytest.mark.parametrize("maker,other", [("ours", "theirs"), ("theirs", "ours")])
def test_branches_of_tables(maker, other, sides, tmp_path):
    uri = str(tmp_path)
    make, use = sides[maker], sides[other]
    created = make.run(
        """
        t = lancedb.connect(uri).create_table('t', pa.table({'a': [1, 2]}))
        t.add(pa.table({'a': [3]}))
        dev = t.branches.create('dev')
        dev.add(pa.table({'a': [4]}))
        old = t.branches.create('old', from_version=1)
        return dev.name, dev.version, dev.count_rows(), t.count_rows(), old.count_rows(), dev.current_branch(), t.current_branch()
        """,
        uri=uri,
    )
    assert created == ("t", 3, 4, 3, 2, "dev", None)
    seen = use.run(
        """
        db = lancedb.connect(uri)
        dev = db.open_table('t', branch='dev')
        dev.delete('a = 1')
        pinned = dev.branches.checkout('dev', 3)
        try:
            pinned.add(pa.table({'a': [1]}))
            failed = None
        except ValueError as error:
            failed = 'checked out' in str(error)
        clone = db.clone_table('c', uri + '/t.lance')
        return (dev.count_rows(), pinned.count_rows(), failed, dev.branches.checkout('main').count_rows(),
                sorted(dev.branches.list()), clone.count_rows(), db.open_table('t', branch='dev', version=2).count_rows())
        """,
        uri=uri,
    )
    assert seen == (3, 4, True, 3, ["dev", "old"], 3, 3)
    for side in (make, use):
        listed = side.run("return lancedb.connect(uri).open_table('t').branches.list()['old']", uri=uri)
        assert (listed["parent_branch"], listed["parent_version"]) == (None, 1)
        for call in ("checkout('zz')", "create('main')", "create('x y')", "delete('zz')", "create('q', 'zz')", "create('dev')"):
            with pytest.raises(SideError) as error:
                side.run(f"lancedb.connect(uri).open_table('t').branches.{call}", uri=uri)
            assert "RuntimeError" in error.value.bases, (side.name, call, error.value)
        for call in ("checkout('')", "create('')", "delete('')"):
            with pytest.raises(SideError, match="non-empty") as error:
                side.run(f"lancedb.connect(uri).open_table('t').branches.{call}", uri=uri)
            assert "ValueError" in error.value.bases, (side.name, call, error.value)
        code = "db = lancedb.connect(uri)\nreturn [db.open_table('t', branch=b).to_lance().count_rows() for b in ('dev', None)]"
        assert side.run(code, uri=uri) == [3, 3], side.name
    make.run("lancedb.connect(uri).open_table('t').branches.delete('dev')", uri=uri)
    assert use.run("return sorted(lancedb.connect(uri).open_table('t').branches.list())", uri=uri) == ["old"]


TAKE_BLOBS = """
ds = lance.dataset(uri).checkout_version(('b', None))
return [blob and blob.read() for blob in ds.take_blobs(column, indices=[0, 1, 2])]
"""


@pytest.mark.parametrize("maker", ["ours", "theirs"])
@pytest.mark.parametrize("version", ["2.1", "2.2"])
def test_blobs_of_a_branch_lie_in_its_parent(maker, version, sides, tmp_path):
    uri = str(tmp_path / "t.lance")
    values = [b"x" * 70_000, b"", b"yy"]
    blob = pa.field("blob", pa.large_binary(), metadata={"lance-encoding:blob": "true"})
    data = pa.table({"a": [1, 2, 3]}).append_column(blob, pa.array(values, pa.large_binary()))
    make = sides[maker]
    make.run("lance.write_dataset(data, uri, data_storage_version=version).create_branch('b')", data=data, uri=uri, version=version)
    # Upstream looks for them under the branch's own root, but where it wrote them as blobs of the second kind.
    readers = ("ours", "theirs") if (maker, version) == ("theirs", "2.2") else ("ours",)
    for reader in readers:
        assert sides[reader].run(TAKE_BLOBS, uri=uri, column="blob") == values
    change = "ds = lance.dataset(uri).checkout_version(('b', None)); ds.add_columns({'c': 'a * 2'}); "
    change += "ds.alter_columns({'path': 'blob', 'name': 'renamed'})"
    sides["ours"].run(change, uri=uri)
    for reader in readers:
        assert sides[reader].run(TAKE_BLOBS, uri=uri, column="renamed") == values


def test_async_branches(ours, tmp_path):
    seen = ours.run(
        """
        import asyncio
        async def main():
            db = await lancedb.connect_async(uri)
            t = await db.create_table('t', pa.table({'a': [1]}))
            dev = await t.branches.create('dev')
            await dev.add(pa.table({'a': [2]}))
            again = await t.branches.checkout('dev')
            clone = await db.clone_table('c', uri + '/t.lance')
            rows = await again.count_rows(), await t.count_rows(), await clone.count_rows()
            listed = sorted(await t.branches.list())
            await t.branches.delete('dev')
            return rows, listed, again.current_branch(), await t.branches.list()
        return asyncio.run(main())
        """,
        uri=str(tmp_path),
    )
    assert seen == ((2, 1, 1), ["dev"], "dev", {})
