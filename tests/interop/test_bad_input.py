"""Bad input: each is a typed error on both sides, of a class that upstream's users catch, and the table
stays as it was."""

import pyarrow as pa
import pytest
from upstream import SideError

SETUP = """
db = lancedb.connect(uri)
data = pa.table({"id": pa.array([1, 2, 3], pa.int64()), "name": ["a", "b", None],
                 "vector": pa.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], pa.list_(pa.float32(), 2))})
db.create_table("t", data)
"""
HEAD = """
import math
db = lancedb.connect(uri)
t = db.open_table("t")
"""
STATE = "t = lancedb.connect(uri).open_table('t')\nreturn t.version, t.to_arrow().to_pylist()"

# name -> (snippet, a word the message must hold)
CASES = {
    "add: wrong type": ("t.add(pa.table({'id': ['x', 'y']}))", ""),
    "add: unknown column": ("t.add(pa.table({'id': [1], 'nonsense': [1]}))", "nonsense"),
    "add: vector of another length": ("t.add([{'id': 9, 'name': 'z', 'vector': [1.0, 2.0, 3.0]}])", ""),
    "add: NaN vector": ("t.add([{'id': 9, 'name': 'z', 'vector': [1.0, math.nan]}])", "NaN"),
    "add: unknown mode": ("t.add([{'id': 9}], mode='nonsense')", ""),
    "add: unknown on_bad_vectors": ("t.add([{'id': 9, 'vector': [1.0, 2.0]}], on_bad_vectors='nonsense')", ""),
    "search: another dimension": ("t.search([1.0, 2.0, 3.0]).to_list()", ""),
    "search: empty query": ("t.search([]).to_list()", ""),
    "search: unknown metric": ("t.search([1.0, 2.0]).distance_type('nonsense').to_list()", ""),
    "search: limit 0": ("t.search([1.0, 2.0]).limit(0).to_list()", "Limit"),
    "search: limit -1": ("t.search([1.0, 2.0]).limit(-1).to_list()", "Limit"),
    "search: negative offset": ("t.search([1.0, 2.0]).offset(-1).to_list()", ""),
    "search: unknown vector column": ("t.search([1.0, 2.0], vector_column_name='nonsense').to_list()", "nonsense"),
    "search: not a vector column": ("t.search([1.0, 2.0], vector_column_name='id').to_list()", "id"),
    "search: unknown column": ("t.search([1.0, 2.0]).select(['nonsense']).to_list()", "nonsense"),
    "where: does not parse": ("t.search().where('id >').to_list()", ""),
    "where: unknown column": ("t.search().where('nonsense = 1').to_list()", "nonsense"),
    "where: unclosed string": ("t.search().where(\"name = 'a\").to_list()", ""),
    "where: not a condition": ("t.search().where('id').to_list()", ""),
    "count: does not parse": ("t.count_rows('id = = 1')", ""),
    "delete: does not parse": ("t.delete('id = = 1')", ""),
    "delete: unknown column": ("t.delete('nonsense = 1')", "nonsense"),
    "checkout: unknown version": ("t.checkout(99)", "99"),
    "checkout: unknown tag": ("t.checkout('nonsense')", "nonsense"),
    "restore: unknown version": ("t.restore(99)", "99"),
    "restore without a checkout": ("t.restore()", "restore"),
    "write on a checkout": ("t.checkout(1)\nt.add([{'id': 9}])", "checked out"),
    "tags: unknown version": ("t.tags.create('new', 99)", "99"),
    "tags: unknown tag": ("t.tags.delete('nonsense')", "nonsense"),
    "create: table exists": ("db.create_table('t', [{'id': 1}])", "already exists"),
    "create: neither data nor schema": ("db.create_table('u')", ""),
    "create: empty list": ("db.create_table('u', [])", ""),
    "create: unknown mode": ("db.create_table('u', [{'id': 1}], mode='nonsense')", ""),
    "create: a single dict": ("db.create_table('u', {'id': 1})", ""),
    "create: unknown data": ("db.create_table('u', 3)", ""),
    "create: parent folder": ("db.create_table('../u', [{'id': 1}])", ""),
    "create: slash": ("db.create_table('a/b', [{'id': 1}])", ""),
    "create: empty name": ("db.create_table('', [{'id': 1}])", ""),
    "create: blank in the name": ("db.create_table('a b', [{'id': 1}])", ""),
    "create: over-long name": ("db.create_table('x' * 300, [{'id': 1}])", ""),
    "create: vectors of differing lengths": ("db.create_table('u', [{'vector': [1.0]}, {'vector': [1.0, 2.0]}])", "vector"),
    "create: NaN vector": ("db.create_table('u', [{'vector': [1.0, math.nan]}])", "NaN"),
    "open: unknown table": ("db.open_table('nonsense')", "nonsense"),
    "open: slash": ("db.open_table('a/b')", ""),
    "drop: unknown table": ("db.drop_table('nonsense')", "nonsense"),
    "connect: nothing": ("lancedb.connect(None)", ""),
    "connect: unknown argument": ("lancedb.connect(uri, nonsense=1)", "nonsense"),
    "take: out of range": ("lance.dataset(uri + '/t.lance').take([99])", ""),
    "dataset: no table": ("lance.dataset(uri + '/nothing-here.lance')", ""),
    "dataset: unknown version": ("lance.dataset(uri + '/t.lance', version=99)", "99"),
    "scan: unknown column": ("lance.dataset(uri + '/t.lance').to_table(columns=['nonsense'])", "nonsense"),
    "scan: negative limit": ("lance.dataset(uri + '/t.lance').to_table(limit=-1)", ""),
    "scan: negative offset": ("lance.dataset(uri + '/t.lance').to_table(offset=-1)", ""),
    "write_dataset: exists": ("lance.write_dataset(pa.table({'id': [1]}), uri + '/t.lance')", "exist"),
    "write_dataset: unknown mode": ("lance.write_dataset(pa.table({'id': [1]}), uri + '/t.lance', mode='nonsense')", ""),
    "write_dataset: another schema": ("lance.write_dataset(pa.table({'x': [1]}), uri + '/t.lance', mode='append')", ""),
    "write_dataset: unknown file version": ("lance.write_dataset(pa.table({'x': [1]}), uri + '/v.lance', data_storage_version='9.9')", ""),
    "zero-length vectors": ("db.create_table('u', schema=pa.schema([pa.field('v', pa.list_(pa.float32(), 0))]), data=pa.table({'v': pa.array([[], []], pa.list_(pa.float32(), 0))}))", ""),
}

# The classes by which callers catch.
CATCHABLE = ("ValueError", "TypeError", "NotImplementedError", "RuntimeError", "OSError", "KeyError", "IndexError")


def raised(side, code, uri):
    try:
        side.run(HEAD + code, uri=uri)
    except SideError as error:
        return error
    return None


@pytest.mark.parametrize("name", CASES)
def test_bad_input(name, ours, theirs, tmp_path):
    code, word = CASES[name]
    errors = {}
    for side in (theirs, ours):
        label = "theirs" if side is theirs else "ours"
        uri = str(tmp_path / label)
        side.run(SETUP, uri=uri)
        before = side.run(STATE, uri=uri)
        errors[label] = raised(side, code, uri)
        if side.name == "ours":
            assert side.run(STATE, uri=uri) == before, "the table changed"
    error = errors["ours"]
    if ours.name == "theirs":
        return
    assert error is not None, f"accepted; upstream: {errors['theirs']}"
    caught_as = [base for base in error.bases if base in CATCHABLE]
    assert caught_as, f"not an error that callers catch: {error}"
    assert "Error" in error.kind and error.message.strip(), f"no message: {error.kind}"
    assert word.lower() in error.message.lower(), f"the message does not hold {word!r}: {error}"
    upstream = errors["theirs"]
    if upstream is not None and upstream.kind != "PanicException":
        known = [base for base in upstream.bases if base in CATCHABLE]
        if set(known) <= {"RuntimeError", "IndexError"}:
            known.append("ValueError")  # upstream's error is a stray one there
        assert set(known) & set(error.bases), f"upstream raises {upstream}; ours {error}"


def test_message_shows_the_place(ours, tmp_path):
    if ours.name == "theirs":
        pytest.skip("ours only")
    uri = str(tmp_path / "db")
    ours.run(SETUP, uri=uri)
    error = raised(ours, "t.count_rows('id = 1 AND AND name')", uri)
    assert error is not None and ("position" in error.message or "^" in error.message), error.message


@pytest.mark.parametrize("content", ["empty folder", "a file", "foreign files", "empty manifest", "no permission"])
def test_unreadable_or_foreign_directories(content, ours, theirs, tmp_path):
    path = tmp_path / "t.lance"
    if content == "a file":
        path.write_text("hello")
    else:
        path.mkdir()
        if content == "foreign files":
            (path / "hello.txt").write_text("hello")
            (path / "_versions").mkdir()
            (path / "_versions" / "readme.txt").write_text("hello")
        elif content == "empty manifest":
            (path / "_versions").mkdir()
            (path / "_versions" / "1.manifest").write_bytes(b"")
    for side in (theirs, ours):
        with pytest.raises(SideError) as caught:
            side.run("lance.dataset(uri).to_table()", uri=str(path))
        assert any(base in CATCHABLE for base in caught.value.bases), caught.value
