"""The calls that change columns and metadata, on both sides: the same results, the same kinds of errors."""

import pyarrow as pa
import pytest
from same import assert_same
from upstream import SideError

SCHEMA = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        pa.field("b", pa.utf8()),
        pa.field("s", pa.struct([pa.field("x", pa.int64()), pa.field("y", pa.utf8())])),
        pa.field("vector", pa.list_(pa.float32(), 2)),
        pa.field("d", pa.decimal128(8, 2)),
        pa.field("big", pa.int64()),
    ]
)
ROWS = [
    {"id": 1, "b": "x", "s": {"x": 1, "y": "q"}, "vector": [1.0, 2.0], "d": "1.25", "big": 300},
    {"id": 2, "b": None, "s": {"x": 2, "y": None}, "vector": [3.0, 4.0], "d": "2.55", "big": 1},
    {"id": 3, "b": "z", "s": None, "vector": [5.0, 6.0], "d": None, "big": 2},
    {"id": 4, "b": "w", "s": {"x": 4, "y": "r"}, "vector": None, "d": "-2.55", "big": 3},
]


def data():
    import decimal

    rows = [dict(row, d=None if row["d"] is None else decimal.Decimal(row["d"])) for row in ROWS]
    return pa.Table.from_pylist(rows, SCHEMA)


# Two fragments; the second row is deleted.
LANCE = """
ds = lance.write_dataset(data, uri, max_rows_per_file=2)
ds.delete('id = 2')
"""
LANCEDB = """
db = lancedb.connect(uri)
t = db.create_table('t', data, on_bad_vectors='null')
"""

GOOD = {
    "sql": "ds.add_columns({'c': 'id * 2', 'e': \"b || 'k'\", 'one': '1', 'f': 'cast(id as float)'})",
    "sql of one name": "ds.add_columns({'copy': 'b', 'st': 's', 'm': 's.x'})",
    "sql in batches": "ds.add_columns({'c': 'id + big'}, batch_size=1)",
    "field": "ds.add_columns(pa.field('n', pa.int32(), metadata={'k': 'v'}))",
    "fields": "ds.add_columns([pa.field('n', pa.int32()), pa.field('o', pa.list_(pa.utf8()))])",
    "schema with metadata": "ds.add_columns(pa.schema([pa.field('n', pa.int8())], metadata={'m': '1'}))",
    "member": "ds.add_columns(pa.schema([pa.field('s', pa.struct([pa.field('z', pa.int8())]))]))",
    "nothing": "ds.add_columns({})",
    "table": "ds.add_columns(pa.table({'r': [10, 30, None], 'q': ['a', None, 'c']}))",
    "reader": "ds.add_columns(pa.table({'r': [10, 30, 40]}).to_reader(max_chunksize=1))",
    "iterator": "ds.add_columns(iter(pa.table({'r': [1, 2, 3]}).to_batches()), reader_schema=pa.schema({'r': pa.int64()}))",
    "member by data": "ds.add_columns(pa.table({'s': [{'k': 1}, None, {'k': 3}]}))",
    "function": "ds.add_columns(lambda b: pa.record_batch([pa.array([v * 2 for v in b['id'].to_pylist()])], names=['d2']))",
    "function over row ids": """
@lance.batch_udf(output_schema=pa.schema([('r', pa.uint64())]))
def f(b):
    assert b.schema.names == ['_rowid', '_rowaddr'], b.schema.names
    return pa.record_batch([b['_rowaddr']], names=['r'])
ds.add_columns(f, read_columns=['_rowid', '_rowaddr'])
""",
    "merge": "ds.merge(pa.table({'id': [1, 4, 9], 'm': ['u', 'v', 'w']}), 'id')",
    "merge with other name, twice the key": "ds.merge(pa.table({'k': [3, 3, None], 'm': [1, 2, 3]}), 'id', 'k')",
    "merge on text with nulls": "ds.merge(pa.table({'b': ['x', None], 'm': [[1], [2]], 'n': [{'q': 1}, None]}), 'b')",
    "merge on row ids": "ds.merge(pa.table({'k': pa.array([0, 1 << 32], pa.uint64()), 'm': [1, 2]}), '_rowid', 'k')",
    "rename": "ds.alter_columns({'path': 'b', 'name': 'bb'}, {'path': 's.x', 'name': 'xx'})",
    "swap": "ds.alter_columns({'path': 'b', 'name': 'big'}, {'path': 'big', 'name': 'b'})",
    "nullable": "ds.alter_columns({'path': 'id', 'nullable': True})",
    "not nullable": "ds.alter_columns({'path': 'b', 'nullable': False})",
    "cast": "ds.alter_columns({'path': 'id', 'data_type': pa.int8()}, {'path': 'b', 'data_type': pa.large_string()})",
    "cast and rename": "ds.alter_columns({'path': 'id', 'name': 'k', 'data_type': pa.uint16()})",
    "cast of a member": "ds.alter_columns({'path': 's.x', 'data_type': pa.int32()})",
    "cast of vectors": "ds.alter_columns({'path': 'vector', 'data_type': pa.list_(pa.float16(), 2)})",
    "cast of vectors to lists": "ds.alter_columns({'path': 'vector', 'data_type': pa.list_(pa.float32())})",
    "cast of decimals": "ds.alter_columns({'path': 'd', 'data_type': pa.decimal128(10, 1)})",
    "cast to 256 bits": "ds.alter_columns({'path': 'd', 'data_type': pa.decimal256(30, 4)})",
    "cast to a dictionary": "ds.alter_columns({'path': 'b', 'data_type': pa.dictionary(pa.int8(), pa.utf8())})",
    "drop": "ds.drop_columns(['b', 's.y', 'd'])",
    "drop the last member": "ds.drop_columns(['s.x']); ds.drop_columns(['s.y'])",
    "drop twice": "ds.drop_columns(['b', 'b', 's', 's.x'])",
    "drop nothing": "ds.drop_columns([])",
    "quoted": "ds.alter_columns({'path': '`s`.`x`', 'name': 'a b'}); ds.drop_columns(['`s`.`a b`'])",
    "field metadata": "ds.update_field_metadata({'b': {'k': 'v', 'l': 'w'}, 's.x': {'n': '1'}}); ds.update_field_metadata({'b': {'k': None}})",
    "field metadata replaced": "ds.update_field_metadata({'b': {'k': 'v'}}); ds.update_field_metadata({'b': {'l': 'w'}}, replace=True)",
    "schema metadata": "ds.update_schema_metadata({'k': 'v', 'l': 'w'}); ds.update_schema_metadata({'k': None, 'm': 'x'})",
    "schema metadata replaced": "ds.update_schema_metadata({'k': 'v'}); ds.replace_schema_metadata({'l': 'w'})",
    "primary key": "ds.update_field_metadata({'id': {'lance-schema:unenforced-primary-key': 'true'}})",
    "primary key renamed": """
ds.update_field_metadata({'id': {'lance-schema:unenforced-primary-key': 'true'}})
ds.alter_columns({'path': 'id', 'name': 'key'})
""",
    "primary key dropped": """
ds.update_field_metadata({'id': {'lance-schema:unenforced-primary-key': 'true'}})
ds.drop_columns(['id'])
""",
    "rows without the new columns": """
ds.add_columns({'c': 'id * 2'})
ds.add_columns(pa.field('n', pa.int32()))
lance.write_dataset(pa.table({'id': [9], 'c': [1]}, pa.schema([pa.field('id', pa.int64(), False), pa.field('c', pa.int64(), False)])), ds, mode='append')
""",
}  # fmt: skip


def on_both(sides, tmp_path, setup, code, ends):
    found = {}
    for name, side in sides.items():
        uri = str(tmp_path / name)
        try:
            found[name] = side.run(setup + code + "\n" + ends, uri=uri, data=data())
        except SideError as error:
            found[name] = error
    return found


@pytest.mark.parametrize("name", GOOD)
def test_dataset_calls(name, sides, tmp_path):
    ends = "d = lance.dataset(uri)\nreturn d.to_table(), d.version, ds.version"
    found = on_both(sides, tmp_path, LANCE, GOOD[name], ends)
    for result in found.values():
        if isinstance(result, SideError):
            raise result
    (ours, *our_versions), (theirs, *their_versions) = found["ours"], found["theirs"]
    assert_same(ours, theirs, name, metadata=True)
    assert (ours.schema.metadata or {}) == (theirs.schema.metadata or {})
    assert our_versions == their_versions
    # And each reads what the other wrote.
    read = "return lance.dataset(uri).to_table()"
    assert_same(sides["ours"].run(read, uri=str(tmp_path / "theirs")), theirs, f"{name}, written by theirs", metadata=True)
    assert_same(sides["theirs"].run(read, uri=str(tmp_path / "ours")), ours, f"{name}, written by ours", metadata=True)


# Call -> part of the message, in both (None: messages differ).
BAD = {
    "ds.add_columns({'id': '1'})": "Column id already exists in the dataset",
    "ds.add_columns({'z': 'nope + 1'})": "nope",
    "ds.add_columns({'z': 'id +'})": None,
    "ds.add_columns({'z': 'c + 1', 'c': 'id'})": None,
    "ds.add_columns({'s.k': '1'})": "Top level field s.k cannot contain `.`",
    "ds.add_columns({'': '1'})": None,
    "ds.add_columns({1: 'id'})": "Column names must be a string",
    "ds.add_columns({'q': 1})": "Column expressions must be a string",
    "ds.add_columns(5)": "transforms must be a BatchUDF, dict",
    "ds.add_columns(None)": "transforms must be a BatchUDF, dict",
    "ds.add_columns([])": None,
    "ds.add_columns(pa.field('n', pa.int32(), nullable=False))": "All-null columns must be nullable, but field 'n' is not.",
    "ds.add_columns(pa.field('id', pa.int32()))": "Type conflicts between id(",
    "ds.add_columns(pa.table({'r': [1, 2]}))": "Stream ended before producing values for all rows in dataset",
    "ds.add_columns(pa.table({'r': [1, 2, 3, 4]}))": "Stream produced more values than expected for dataset",
    "ds.add_columns(pa.table({'b': [1, 2, 3]}))": None,
    "ds.add_columns(iter(pa.table({'r': [1]}).to_batches()))": "Must provide schema",
    "ds.add_columns(lambda b: 1 / 0)": "division by zero",
    "ds.add_columns(lambda b: pa.record_batch({'sh': [1]}))": None,
    "ds.add_columns(lambda b: {'t': [1]})": "gave an error when called with a batch of data",
    "ds.merge(pa.table({'id': [1], 'b': ['u']}), 'id')": "Column b exists in both sides of the dataset",
    "ds.merge(pa.table({'k': [1], 'm': ['u']}), 'nope', 'k')": "Column nope does not exist in the left side dataset",
    "ds.merge(pa.table({'k': [1], 'm': ['u']}), 'id', 'nope')": "Column nope does not exist in the right side dataset",
    "ds.merge(pa.table({'id': ['1'], 'm': ['u']}), 'id')": "Index column type mismatch: expected",
    "ds.merge(pa.table({'id': [1], 'm': [2]}, pa.schema([('id', pa.int64()), pa.field('m', pa.int64(), False)])), 'id')": None,
    "ds.alter_columns({'path': 'nope', 'name': 'x'})": 'Column "nope" does not exist in the dataset',
    "ds.alter_columns({'path': 'ID', 'name': 'x'})": 'Column "ID" does not exist in the dataset',
    "ds.alter_columns({'path': 'b', 'name': 'id'})": 'Duplicate field name "id" in schema',
    "ds.alter_columns({'path': 'b', 'name': 'q.r'})": "Top level field q.r cannot contain `.`",
    "ds.alter_columns({'path': 'b'})": "At least one of name, nullable, or data_type must be specified",
    "ds.alter_columns({'name': 'b'})": "path is required",
    "ds.alter_columns({'path': 'b', 'rename': 'k'})": "Unknown key: rename",
    "ds.alter_columns({'path': 's.y', 'nullable': False})": 'Column "s.y" contains NULL values and cannot be made non-nullable',
    "ds.alter_columns({'path': 's.x', 'nullable': False})": 'Column "s.x" contains NULL values and cannot be made non-nullable',
    "ds.alter_columns({'path': 'big', 'data_type': pa.int8()})": "Cast error",
    "ds.alter_columns({'path': 'id', 'data_type': pa.utf8()})": 'Cannot cast column "id" from',
    "ds.alter_columns({'path': 's', 'data_type': pa.int32()})": 'Cannot cast column "s" from',
    "ds.alter_columns({'path': 'vector', 'data_type': pa.list_(pa.float32(), 3)})": 'Cannot cast column "vector" from',
    "ds.alter_columns({'path': 'd', 'data_type': pa.decimal128(2, 2)})": None,
    "ds.alter_columns({'path': 'id', 'data_type': 'int32'})": None,
    "ds.drop_columns(['nope'])": "Column nope does not exist in the dataset",
    "ds.drop_columns(['b', 'nope'])": "Column nope does not exist in the dataset",
    "ds.drop_columns(['B'])": "Column B does not exist in the dataset",
    "ds.drop_columns(['id', 'b', 's', 'vector', 'd', 'big'])": "Cannot drop all columns from a dataset",
    "ds.drop_columns('id')": None,
    "ds.update_field_metadata({'nope': {'k': 'v'}})": "Field 'nope' not found.",
    "ds.update_field_metadata({0: {'k': 'v'}})": None,
    "ds.update_field_metadata({'b': {'k': 5}})": None,
    "ds.update_config({'k': 5})": None,
    "ds.update_config(None)": None,
    "ds.update_field_metadata({'b': {'lance-schema:unenforced-primary-key': 'true'}})": "must not be nullable",
}  # fmt: skip


@pytest.mark.parametrize("call", BAD)
def test_dataset_errors(call, sides, tmp_path):
    found = on_both(sides, tmp_path, LANCE, call, "return None")
    assert isinstance(found["theirs"], SideError), f"the real package does it: {call}"
    assert isinstance(found["ours"], SideError), f"no error: {call}"
    kind = found["theirs"].kind
    assert kind in found["ours"].bases, f"{found['ours'].kind} is no {kind}"
    if BAD[call]:
        assert BAD[call] in found["theirs"].message, found["theirs"].message[:300]
        assert BAD[call] in found["ours"].message, found["ours"].message[:300]
    # Nothing changed, nothing was left behind, and a fresh query works.
    table, version = sides["ours"].run(
        "d = lance.dataset(uri)\nreturn d.to_table(), d.version", uri=str(tmp_path / "ours")
    )
    assert version == 2
    assert_same(table, data().filter(pa.array([True, False, True, True])), call)
    assert len(list((tmp_path / "ours" / "data").iterdir())) == 2


TABLE_GOOD = {
    "add sql": "r = t.add_columns({'c': 'id * 2'})",
    "add field": "r = t.add_columns(pa.field('f', pa.int32()))",
    "add schema": "r = t.add_columns(pa.schema([pa.field('f', pa.int32()), pa.field('g', pa.utf8())]))",
    "add nothing": "r = t.add_columns({})",
    "rename": "r = t.alter_columns({'path': 'b', 'rename': 'bb'})",
    "legacy name": "r = t.alter_columns({'path': 'b', 'name': 'bb'})",
    "all at once": "r = t.alter_columns({'path': 's.x', 'rename': 'xx', 'nullable': True, 'data_type': pa.int32()})",
    "no change": "r = t.alter_columns({'path': 'b'})",
    "drop": "r = t.drop_columns(('b', 's.y'))",
    "metadata": "r = t.update_field_metadata({'path': 'b', 'metadata': {'k': 'v'}}, {'path': 's.x', 'metadata': {'q': '1'}, 'replace': True})",
    "metadata replaced": "t.replace_field_metadata('b', {'k': 'v'}); r = None",
    "primary key": "t.set_unenforced_primary_key('id'); r = None",
    "merge": "t.merge(pa.table({'id': [1, 3], 'm': ['u', 'v']}), 'id'); r = None",
    "merge of a list": "t.merge([{'k': 1, 'm': 'u'}], 'id', 'k'); r = None",
    "merge of a table": "t.merge(db.create_table('o', pa.table({'id': [1, 3], 'm': ['u', 'v']})), 'id'); r = None",
    "cast, then add": "r = t.alter_columns({'path': 'id', 'data_type': pa.int8()}); t.add([{'id': 100}])",
}  # fmt: skip


@pytest.mark.filterwarnings("ignore:replace_field_metadata is deprecated")
@pytest.mark.parametrize("name", TABLE_GOOD)
def test_table_calls(name, sides, tmp_path):
    ends = "return t.to_arrow(), t.version, repr(r)"
    found = on_both(sides, tmp_path, LANCEDB, TABLE_GOOD[name], ends)
    for result in found.values():
        if isinstance(result, SideError):
            raise result
    (ours, *our_facts), (theirs, *their_facts) = found["ours"], found["theirs"]
    assert_same(ours, theirs, name, metadata=True)
    assert our_facts == their_facts


TABLE_BAD = {
    "t.add_columns()": "add_columns requires transforms or computed columns",
    "t.add_columns({'u': '1'}, computed={'v': 'id'})": "add_columns cannot take both transforms and computed columns",
    "t.add_columns({'id': '1'})": "Column id already exists in the dataset",
    "t.add_columns(pa.field('n', pa.int32(), nullable=False))": "All-null columns must be nullable",
    "t.alter_columns({'rename': 'x'})": "Missing path",
    "t.alter_columns({'path': 'nope', 'rename': 'x'})": 'Column "nope" does not exist in the dataset',
    "t.alter_columns({'path': 'b', 'rename': 'id'})": "Duplicate field name",
    "t.alter_columns({'path': 'b', 'nullable': False})": "contains NULL values and cannot be made non-nullable",
    "t.alter_columns({'path': 'b', 'data_type': pa.int32()})": 'Cannot cast column "b" from',
    "t.alter_columns({'path': 'b', 'data_type': 'int32'})": None,
    "t.alter_columns({'path': 'b', 'rename': 5})": None,
    "t.alter_columns({'path': 'b', 'nullable': 'yes'})": None,
    "t.alter_columns('b')": None,
    "t.drop_columns(['nope'])": "Column nope does not exist in the dataset",
    "t.drop_columns('b')": None,
    "t.drop_columns(t.schema.names)": "Cannot drop all columns from a dataset",
    "t.update_field_metadata({'metadata': {}})": "Missing path",
    "t.update_field_metadata({'path': 'nope', 'metadata': {}})": "Field 'nope' not found.",
    "t.update_field_metadata({'path': 'b', 'metadata': {'k': 1}})": None,
    "t.set_unenforced_primary_key('nope')": "column 'nope' not found on table",
    "t.set_unenforced_primary_key([])": "a column is required",
    "t.set_unenforced_primary_key(['id', 'b'])": "compound primary keys are not supported, got 2 columns",
    "t.set_unenforced_primary_key('vector')": "is not supported as a primary key",
    "t.set_unenforced_primary_key('b')": "must not be nullable",
    "t.set_unenforced_primary_key('id'); t.set_unenforced_primary_key('id')": "an unenforced primary key is already set",
    "t.checkout(1); t.add_columns({'q': '1'})": "table cannot be modified when a specific version is checked out",
    "t.checkout(1); t.alter_columns({'path': 'b', 'rename': 'q'})": "table cannot be modified when a specific version is checked out",
    "t.checkout(1); t.drop_columns(['b'])": "table cannot be modified when a specific version is checked out",
    "t.merge(pa.table({'id': [1], 'b': ['u']}), 'id')": "Column b exists in both sides of the dataset",
}  # fmt: skip


@pytest.mark.parametrize("call", TABLE_BAD)
def test_table_errors(call, sides, tmp_path):
    found = on_both(sides, tmp_path, LANCEDB, call, "return None")
    assert isinstance(found["theirs"], SideError), f"the real package does it: {call}"
    assert isinstance(found["ours"], SideError), f"no error: {call}"
    kind = found["theirs"].kind
    assert kind in found["ours"].bases, f"{found['ours'].kind} is no {kind}"
    if TABLE_BAD[call]:
        assert TABLE_BAD[call] in found["theirs"].message, found["theirs"].message[:300]
        assert TABLE_BAD[call] in found["ours"].message, found["ours"].message[:300]


CONFIG = """
r = [ds.update_config({'a': '1', 'b': '2'}), ds.update_config({'a': None, 'c': '3'}), ds.update_config({'q': None, 'r': '2'}, replace=True)]
ds.delete_config_keys(['r', 'nope'])
r += [ds.config(), ds.update_metadata({'d': 'x'}), ds.update_metadata({'e': 'y'}, replace=True), ds.metadata, ds.version]
"""


def test_config_and_table_metadata(sides, tmp_path):
    found = on_both(sides, tmp_path, LANCE, CONFIG, "return r")
    # What our engine notes for itself is none of the user's settings.
    assert found["ours"] == found["theirs"]


def test_checkpoint_file(ours, tmp_path):
    """A function that fails goes on where it ended; the results of before are not computed again."""
    code = """
calls = []
ds = lance.write_dataset(pa.table({'x': list(range(20))}), uri, max_rows_per_file=7)

@lance.batch_udf(output_schema=pa.schema([('y', pa.int64())]), checkpoint_file=cache)
def f(batch):
    calls.append(batch.num_rows)
    if len(calls) == 4:
        raise ValueError('not today')
    return pa.record_batch([pa.array([v * 2 for v in batch['x'].to_pylist()])], names=['y'])

try:
    ds.add_columns(f, batch_size=4)
except OSError as error:
    message = str(error)
first = len(calls)
import os
kept, version = os.path.exists(cache), ds.version
ds.add_columns(f, batch_size=4)
return message, first, kept, version, len(calls), os.path.exists(cache), ds.to_table()['y'].to_pylist()
"""
    message, first, kept, version, calls, left, values = ours.run(code, uri=str(tmp_path / "t"), cache=str(tmp_path / "c"))
    assert "not today" in message
    assert (first, kept, version) == (4, True, 1)
    assert calls == 4 + 3 and not left  # 6 batches, of which 3 were there
    assert values == [2 * i for i in range(20)]
