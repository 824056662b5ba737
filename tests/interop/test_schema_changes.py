"""Columns added, altered and dropped in turn by ours and by the real packages, compared with a table in memory."""

import decimal
import random
import zlib

import pyarrow as pa
import pytest
from same import assert_same
from testing import SOAK
from upstream import SideError

WRITE = "lance.write_dataset(data, uri, mode=mode, **options)"
DELETE = "lance.dataset(uri).delete(predicate)"
ADD = "lance.dataset(uri).add_columns(transforms)"
ADD_UDF = """
def add(batch):
    return pa.record_batch([pa.array([None if v is None else v + 1 for v in batch['id'].to_pylist()], pa.int64())], names=[name])
lance.dataset(uri).add_columns(add, read_columns=['id'], batch_size=5)
"""
MERGE = "lance.dataset(uri).merge(data, 'id', 'key')"
ALTER = "lance.dataset(uri).alter_columns(*alterations)"
DROP = "lance.dataset(uri).drop_columns(columns)"
READ = "return lance.dataset(uri).to_table()"
FIELD_METADATA = "lance.dataset(uri).update_field_metadata({path: values})"
LIVE = "return lance.dataset(uri).to_table(columns={'n': 'id', 'm': sql})['m'].to_pylist()"

STRUCT = pa.struct([("x", pa.int32()), ("y", pa.utf8())])
LIST = pa.list_(pa.struct([("p", pa.int16()), ("q", pa.utf8())]))
WIDER = {
    pa.int16(): [pa.int32(), pa.int64()],
    pa.int32(): [pa.int64(), pa.int16()],
    pa.int64(): [pa.int32(), pa.int16(), pa.uint32()],
    pa.uint32(): [pa.int64()],
    pa.float32(): [pa.float64()],
    pa.float64(): [pa.float32()],
    pa.utf8(): [pa.large_utf8()],
    pa.large_utf8(): [pa.utf8()],
    pa.list_(pa.int32()): [pa.list_(pa.int64()), pa.large_list(pa.int32())],
    pa.list_(pa.int64()): [pa.list_(pa.int32())],
    pa.large_list(pa.int32()): [pa.list_(pa.int32())],
    pa.date32(): [pa.timestamp("us")],
    pa.decimal128(9, 2): [pa.decimal128(12, 3)],
}


def member(type_, name):
    """The field of this name below a struct or list type."""
    return next(f for f in map(type_.field, range(type_.num_fields)) if f.name == name)


def values_at(value, path):
    """All values below `value` at `path`, through structs and lists of structs."""
    if not path or value is None:
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from values_at(item, path[1:] if path[0] == "item" else path)
    else:
        yield from values_at(value[path[0]], path[1:])


def fits(value, type_, wanted):
    """Whether a value survives the cast from one type to another."""
    try:
        pa.scalar(value, type_).cast(wanted)
    except pa.ArrowInvalid:
        return False
    return True


def changed(type_, path, change):
    """The type with the field below it at `path` replaced by `change(field)` (None: left out)."""
    if not path:
        return type_
    fields = []
    for i in range(type_.num_fields):
        field = type_.field(i)
        if field.name != path[0]:
            fields.append(field)
        elif len(path) == 1:
            fields.append(change(field))
        else:
            fields.append(field.with_type(changed(field.type, path[1:], change)))
    fields = [f for f in fields if f is not None]
    return pa.list_(fields[0]) if pa.types.is_list(type_) else pa.struct(fields)


def rebuilt(value, old, new, path, rename=None):
    """A Python value of the old type as one of the new type (a member renamed or dropped)."""
    if value is None:
        return None
    if pa.types.is_list(old):
        if len(path) == 1:
            return value  # the items got another name
        return [rebuilt(v, old.value_type, new.value_type, path[1:], rename) for v in value]
    out = {}
    for name, inner in value.items():
        if name != path[0]:
            out[name] = inner
        elif len(path) > 1:
            out[name] = rebuilt(inner, old.field(name).type, new.field(name).type, path[1:], rename)
        elif rename is not None:
            out[rename] = inner
    return out


class Table:
    """What the table holds: a schema and rows as dicts."""

    def __init__(self, schema):
        self.schema, self.rows = schema, []

    def arrow(self):
        columns = [pa.array([row[f.name] for row in self.rows], f.type) for f in self.schema]
        return pa.Table.from_arrays(columns, schema=self.schema)

    def has_null(self, name):
        return any(row[name] is None for row in self.rows)


class Sequence:
    def __init__(self, rng, sides, uri, version, log):
        self.rng, self.sides, self.uri, self.log = rng, sides, uri, log
        self.version = version
        self.v2_0 = version == "2.0"
        self.next_id = self.next_name = 0
        self.stable = rng.random() < 0.4
        self.table = Table(
            pa.schema(
                [("id", pa.int64()), ("name", pa.utf8()), ("s", STRUCT), ("l", LIST), ("v", pa.list_(pa.float32(), 2))]
            )
        )

    def run(self, code, side=None, **args):
        name = side or self.rng.choice(list(self.sides))
        shown = {k: v if not isinstance(v, pa.Table) else v.schema.names for k, v in args.items()}
        self.log.append((name, code.strip().splitlines()[0], shown))
        return self.sides[name].run(code, uri=self.uri, **args)

    def fresh_name(self):
        self.next_name += 1
        return f"c{self.next_name}" if self.next_name % 4 else f"odd {self.next_name} Name"

    def value(self, type_, depth=0, null=True):
        rng = self.rng
        if null and rng.random() < 0.15:
            return None
        if pa.types.is_struct(type_):
            if self.v2_0:
                null = False
            return {type_.field(i).name: self.value(type_.field(i).type, depth + 1) for i in range(type_.num_fields)}
        if pa.types.is_fixed_size_list(type_):
            return [float(rng.randrange(8)) for _ in range(type_.list_size)]
        if pa.types.is_list(type_) or pa.types.is_large_list(type_):
            return [self.value(type_.value_type, depth + 1, False) for _ in range(rng.randrange(3))]
        if pa.types.is_integer(type_):
            return rng.randrange(1000)
        if pa.types.is_floating(type_):
            return rng.randrange(-50, 50) / 4
        if pa.types.is_date(type_):
            return pa.scalar(rng.randrange(20000), pa.date32()).as_py()
        if pa.types.is_timestamp(type_):
            return pa.scalar(rng.randrange(10**9), type_).as_py()
        if pa.types.is_decimal(type_):
            return decimal.Decimal(rng.randrange(1000)).scaleb(-2)
        if pa.types.is_boolean(type_):
            return rng.random() < 0.5
        return f"t{rng.randrange(30)}"

    def fresh_rows(self, count):
        rows = []
        for _ in range(count):
            row = {}
            for field in self.table.schema:
                null = field.nullable and not (self.v2_0 and pa.types.is_struct(field.type))
                row[field.name] = self.value(field.type, null=null)
            row["id"] = self.next_id
            self.next_id += 1
            rows.append(row)
        return rows

    # --- steps ---

    def append(self):
        rows = self.fresh_rows(self.rng.choice([1, 4, 23]))
        fields = list(self.table.schema)
        if self.rng.random() < 0.5:
            optional = [f for f in fields if f.nullable and f.name != "id" and not (self.v2_0 and pa.types.is_struct(f.type))]
            left_out = {f.name for f in optional if self.rng.random() < 0.4}
            fields = [f for f in fields if f.name not in left_out]
            for row in rows:
                row.update(dict.fromkeys(left_out))
        part = Table(pa.schema(fields))
        part.rows = rows
        options = {"max_rows_per_file": 8} if self.rng.random() < 0.5 else {}
        self.run(WRITE, data=part.arrow(), mode="append", options=options)
        self.table.rows += rows

    def delete(self):
        ids = [row["id"] for row in self.table.rows]
        gone = set(self.rng.sample(ids, min(len(ids), self.rng.choice([1, 3, 9]))))
        if gone:
            self.run(DELETE, predicate=f"{self.id_name()} IN ({', '.join(map(str, sorted(gone)))})")
            self.table.rows = [row for row in self.table.rows if row["id"] not in gone]

    def id_name(self):
        return "id"

    def add(self, field, values):
        self.table.schema = self.table.schema.append(field)
        for row, value in zip(self.table.rows, values):
            row[field.name] = value

    def add_sql(self):
        name = self.fresh_name()
        ids = [row["id"] for row in self.table.rows]
        kind = self.rng.randrange(5)
        if kind == 0:
            sql, field, values = "id * 3 - 1", pa.field(name, pa.int64()), [i * 3 - 1 for i in ids]
        elif kind == 1:
            sql, field = "cast(NULL as double)", pa.field(name, pa.float64())
            values = [None] * len(ids)
        elif kind == 2:
            sql, field, values = "'k'", pa.field(name, pa.utf8(), False), ["k"] * len(ids)
        elif kind == 3:
            sql, field, values = "id > 10", pa.field(name, pa.bool_()), [i > 10 for i in ids]
        else:
            sql, field, values = "cast(id as double) / 4", pa.field(name, pa.float64()), [i / 4 for i in ids]
        self.run(ADD, transforms={name: sql})
        self.add(field, values)

    def add_null(self):
        type_ = self.rng.choice([pa.int32(), pa.utf8(), pa.list_(pa.int32()), pa.date32(), pa.decimal128(9, 2)])
        field = pa.field(self.fresh_name(), type_)
        self.run(ADD, transforms=field)
        self.add(field, [None] * len(self.table.rows))

    def add_null_member(self):
        places = [f.name for f in self.table.schema if pa.types.is_struct(f.type)]
        if self.version != "2.2" or not places:
            return
        name, member = self.rng.choice(places), pa.field(self.fresh_name(), pa.int32())
        self.run(ADD, transforms=pa.schema([pa.field(name, pa.struct([member]))]))
        index = self.table.schema.get_field_index(name)
        old = self.table.schema.field(index)
        members = [old.type.field(i) for i in range(old.type.num_fields)] + [member]
        self.table.schema = self.table.schema.set(index, old.with_type(pa.struct(members)))
        for row in self.table.rows:
            if row[name] is not None:
                row[name][member.name] = None

    def add_data(self):
        type_ = self.rng.choice([pa.int32(), pa.utf8(), pa.list_(pa.int32()), pa.float32(), pa.date32(), pa.decimal128(9, 2)])
        field = pa.field(self.fresh_name(), type_)
        values = [self.value(type_) for _ in self.table.rows]
        self.run(ADD, transforms=pa.table([pa.array(values, type_)], pa.schema([field])))
        self.add(field, values)

    def add_udf(self):
        if not self.table.rows:
            return
        name = self.fresh_name()
        self.run(ADD_UDF, name=name)
        self.add(pa.field(name, pa.int64()), [row["id"] + 1 for row in self.table.rows])

    def merge(self):
        if not self.table.rows:
            return
        ids = [row["id"] for row in self.table.rows]
        chosen = self.rng.sample(ids, len(ids) // 2 + 1) + [10**6]
        name = self.fresh_name()
        values = [self.value(pa.utf8()) for _ in chosen]
        self.run(MERGE, data=pa.table({"key": chosen, name: pa.array(values, pa.utf8())}))
        found = dict(zip(chosen, values))
        self.add(pa.field(name, pa.utf8()), [found.get(i) for i in ids])

    def paths(self):
        """All fields that a step may touch, as (column, path below it)."""

        def below(type_, path):
            for i in range(type_.num_fields):
                field = type_.field(i)
                yield [*path, field.name], field
                yield from below(field.type, [*path, field.name])

        for field in self.table.schema:
            if field.name == "id":
                continue
            yield [field.name], field
            if pa.types.is_struct(field.type) or (pa.types.is_list(field.type) and pa.types.is_struct(field.type.value_type)):
                if not self.v2_0:
                    yield from below(field.type, [field.name])

    @staticmethod
    def text(path):
        return ".".join(path)

    def replace_field(self, path, change):
        index = self.table.schema.get_field_index(path[0])
        old = self.table.schema.field(index)
        new = change(old) if len(path) == 1 else old.with_type(changed(old.type, path[1:], change))
        self.table.schema = self.table.schema.remove(index) if new is None else self.table.schema.set(index, new)
        return old, new

    def rename(self):
        path, _ = self.rng.choice(list(self.paths()))
        name = self.fresh_name()
        self.run(ALTER, alterations=[{"path": self.text(path), "name": name}])
        old, new = self.replace_field(path, lambda f: f.with_name(name))
        for row in self.table.rows:
            if len(path) == 1:
                row[name] = row.pop(path[0])
            else:
                row[path[0]] = rebuilt(row[path[0]], old.type, new.type, path[1:], name)

    def cast(self):
        options = [(path, field) for path, field in self.paths() if field.type in WIDER]
        if not options:
            return
        path, field = self.rng.choice(options)
        type_ = self.rng.choice(WIDER[field.type])
        alterations = [{"path": self.text(path), "data_type": type_}]
        if not all(fits(value, field.type, type_) for row in self.table.rows for value in values_at(row[path[0]], path[1:])):
            # A negative number among unsigned ones: both refuse it, and the table stays as it is.
            for side in self.sides:
                with pytest.raises(SideError):
                    self.run(ALTER, side=side, alterations=alterations)
            return
        self.run(ALTER, alterations=alterations)
        # A cast makes the field anew: what it knew beside name and nullability is gone.
        self.replace_field(path, lambda f: pa.field(f.name, type_, f.nullable))
        if len(path) == 1:
            for row in self.table.rows:
                row[path[0]] = pa.scalar(row[path[0]], field.type).cast(type_).as_py()

    def nullable(self):
        field = self.rng.choice([f for f in self.table.schema if f.name != "id"])
        if pa.types.is_struct(field.type):
            return
        wanted = not field.nullable
        if not wanted and self.table.has_null(field.name):
            with pytest.raises(SideError, match="contains NULL values"):
                self.run(ALTER, alterations=[{"path": field.name, "nullable": False}])
            return
        self.run(ALTER, alterations=[{"path": field.name, "nullable": wanted}])
        self.replace_field([field.name], lambda f: f.with_nullable(wanted))

    def drop(self):
        paths = [(path, field) for path, field in self.paths() if field.name != "item"]
        path, _ = self.rng.choice(paths)
        if self.version != "2.2" and pa.types.is_list(self.table.schema.field(path[0]).type):
            path = path[:1]  # before 2.2 the real package takes the whole list away with one member of its items
        parent = self.table.schema.field(path[0]).type
        for name in path[1:-1]:
            parent = member(parent, name).type
        if len(path) > 1 and parent.num_fields == 1:
            path = path[:1]  # its last member
        stored = [parent.field(i).name for i in range(parent.num_fields)] if len(path) > 1 else []
        if len(path) > 1 and not {"x", "y", "p", "q"} & {n for n in stored if n != path[-1]}:
            path = path[:1]  # with the last member that is in the files goes what says which structs are null, in both
        self.run(DROP, columns=[self.text(path)])
        old, new = self.replace_field(path, lambda f: None)
        for row in self.table.rows:
            if len(path) == 1:
                del row[path[0]]
            else:
                row[path[0]] = rebuilt(row[path[0]], old.type, new.type, path[1:])

    def metadata(self):
        path, _ = self.rng.choice(list(self.paths()))
        self.run(FIELD_METADATA, path=self.text(path), values={"note": str(self.next_name)})

    STEPS = (
        [append, delete] * 3 + [rename, cast, drop, nullable] * 2 + [cast, add_sql, add_sql, add_null, add_null_member]
        + [add_data, add_udf, merge, metadata]
    )  # fmt: skip

    def start(self):
        self.table.rows = self.fresh_rows(self.rng.choice([3, 30]))
        options = {"data_storage_version": self.version, "max_rows_per_file": 10, "enable_stable_row_ids": self.stable}
        self.run(WRITE, data=self.table.arrow(), mode="create", options=options)

    def check(self):
        expected = self.table.arrow()
        found = {name: side.run(READ, uri=self.uri) for name, side in self.sides.items()}
        for name, table in found.items():
            assert_same(table, expected, f"read by {name}")
        assert_same(found["ours"], found["theirs"], "metadata", metadata=True)


@pytest.mark.parametrize("number", range(90 if SOAK else 3))
def test_alterations_in_turn(number, sides, seed, tmp_path):
    rng = random.Random(zlib.crc32(repr((seed, "schema", number)).encode()))
    log = []
    sequence = Sequence(rng, sides, str(tmp_path / "t.lance"), ["2.2", "2.1", "2.0"][number % 3], log)
    try:
        sequence.start()
        for _ in range(30):
            rng.choice(Sequence.STEPS)(sequence)
            sequence.check()
    except (AssertionError, SideError) as error:
        steps = "\n".join(f"  {name}: {code} {args}" for name, code, args in log)
        raise AssertionError(f"{error}\nversion {sequence.version}, stable ids {sequence.stable}\nsteps:\n{steps}") from error
