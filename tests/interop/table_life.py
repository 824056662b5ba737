"""One table's life: every kind of change, made in turn by two sides, against a model of plain lists.

A history is a list of steps `(side, action, number)`. A step draws all its choices from a random generator
seeded with its number, and looks at nothing but the model, so that any part of a history is a history too:
a failing one is shrunk by leaving out steps.
"""

import collections
import datetime
import random
import time

import pyarrow as pa
from same import assert_same
from upstream import SideError

OPEN = "t = lancedb.connect(db).open_table('t')\n"
CREATE = "return lancedb.connect(db, storage_options=options).create_table('t', data, mode='overwrite').version"
ADD = OPEN + "return t.add(data, mode=mode).version"
DELETE = OPEN + "r = t.delete(where)\nreturn r.num_deleted_rows, r.version"
UPDATE = OPEN + "r = t.update(where, values, values_sql=values_sql)\nreturn r.rows_updated, r.version"
MERGE = OPEN + """b = t.merge_insert(on)
if 'update' in clauses: b = b.when_matched_update_all(where=clauses['update'])
if 'insert' in clauses: b = b.when_not_matched_insert_all()
if 'delete' in clauses: b = b.when_not_matched_by_source_delete(clauses['delete'])
r = b.execute(data)
return (r.num_updated_rows, r.num_inserted_rows, r.num_deleted_rows), r.version"""
ADD_COLUMNS = OPEN + "return t.add_columns(columns).version"
ALTER = OPEN + "return t.alter_columns(change).version"
DROP = OPEN + "return t.drop_columns([name]).version"
OPTIMIZE = OPEN + """if age is None: t.optimize()
else: t.optimize(cleanup_older_than=age, delete_unverified=everything)
t.checkout_latest()
return t.version"""
CLEANUP = """d = lance.dataset(db + '/t.lance')
d.cleanup_old_versions(age, delete_unverified=everything, error_if_tagged_old_versions=False)
return d.version"""
RESTORE = OPEN + "t.restore(version)\nreturn t.version"
TAG = OPEN + "t.tags.create(tag, version)"
READ = "return lance.dataset(db + '/t.lance').to_table(with_row_id=ids)"
READ_PAST = """d = lance.dataset(db + '/t.lance')
return [d.checkout_version(v).to_table() for v in versions]"""
COUNT = OPEN + "return t.count_rows(where)"

BASE = {"id": pa.int64(), "uid": pa.int64(), "name": pa.utf8(), "n": pa.int32(), "x": pa.float64(),
        "vector": pa.list_(pa.float32(), 2), "s": pa.struct([("a", pa.int64()), ("b", pa.utf8())])}  # fmt: skip

ACTIONS = (
    ["append"] * 4 + ["delete"] * 3 + ["update"] * 4 + ["merge"] * 6 + ["add_column"] * 2
    + ["alter", "drop", "compact", "compact", "cleanup", "restore", "tag", "overwrite"]
)  # fmt: skip


class Failure(Exception):
    pass


def plus(value, number):
    return None if value is None else value + number


class Life:
    """One run of a history. `columns`: name -> type, in table order; `rows`: dicts."""

    def __init__(self, sides, db, number):
        self.sides, self.db, self.log = sides, db, []
        rng = random.Random(number)
        self.stable = rng.random() < 0.5
        self.options = {
            "new_table_data_storage_version": rng.choice(["2.0", "2.1", "2.2"]),
            "new_table_enable_stable_row_ids": str(self.stable).lower(),
        }
        self.columns, self.rows, self.versions, self.tags, self.next_uid = {}, [], {}, {}, 0
        self.row_ids = {}

    # What the steps share.

    def run(self, side, code, **args):
        shown = {k: v for k, v in args.items() if k != "data"}
        if "data" in args:
            shown["rows"] = args["data"].to_pylist()[:8]
        self.log.append((side, code.removeprefix(OPEN).split("\n")[0], shown))
        return self.sides[side].run(code, db=self.db, **args)

    def schema(self, names=None):
        return pa.schema([(c, self.columns[c]) for c in (names or self.columns)])

    def table(self, rows, names=None):
        schema = self.schema(names)
        return pa.table([pa.array([r[f.name] for r in rows], f.type) for f in schema], schema)

    def value(self, rng, name):
        kind = self.columns[name]
        if name == "uid":
            self.next_uid += 1
            return self.next_uid
        if pa.types.is_fixed_size_list(kind):
            return [float(rng.randrange(9)), 0.5]
        if pa.types.is_boolean(kind):  # made by IS NULL: not nullable
            return rng.random() < 0.5
        if rng.random() < 0.15:
            return None
        if pa.types.is_struct(kind):
            return {"a": rng.choice([None, rng.randrange(9)]), "b": rng.choice([None, "b"])}
        if pa.types.is_string(kind) or pa.types.is_large_string(kind):
            return rng.choice(["", "abc", "it's", "zoë"])
        return float(rng.randrange(99)) if pa.types.is_floating(kind) else rng.randrange(99)

    def fresh(self, rng, ids, names=None):
        return [{c: i if c == "id" else self.value(rng, c) for c in (names or self.columns)} for i in ids]

    def some_ids(self, rng, distinct=True):
        """Keys of rows to come: old ones and new ones, now and then none."""
        count = rng.choice([1, 2, 5, 30])
        ids = [rng.randrange(120) for _ in range(count)]
        if distinct:
            ids = list(dict.fromkeys(ids))
        return [None if rng.random() < 0.05 else i for i in ids]

    def needed(self, name):
        return name in ("id", "uid") or self.columns[name] == pa.bool_()

    def predicate(self, rng):
        """SQL, and the same in Python: True, False or None."""
        column = rng.choice([c for c in ("id", "n", "x") if c in self.columns])
        low, high = sorted(rng.randrange(99) for _ in range(2))

        def compare(test):
            return lambda r: None if r[column] is None else test(r[column])

        kind = rng.randrange(5)
        if kind == 0:
            return f"{column} IS NULL", lambda r: r[column] is None
        if kind == 1:
            return f"{column} = {low}", compare(lambda v: v == low)
        if kind == 2:
            return f"{column} BETWEEN {low} AND {high}", compare(lambda v: low <= v <= high)
        if kind == 3:
            return f"NOT ({column} < {high})", compare(lambda v: not v < high)
        return f"{column} IN ({low}, {high}, 7)", compare(lambda v: v in (low, high, 7))

    def committed(self, version, rows, columns=None):
        """A step that makes exactly one version."""
        expected = max(self.versions, default=0) + 1
        if version != expected:
            raise Failure(f"version {version} instead of {expected}")
        self.arrived(version, rows, columns)

    def arrived(self, version, rows, columns=None):
        self.rows = rows
        self.columns = dict(self.columns if columns is None else columns)
        self.versions[version] = (self.rows, self.columns)

    # The steps.

    def step(self, side, action, number):
        rng = random.Random(number)
        if not self.versions:
            self.columns = dict(BASE)
            if self.options["new_table_data_storage_version"] == "2.0":
                del self.columns["s"]  # files of 2.0 cannot say that a struct is null
            rows = self.fresh(rng, self.some_ids(rng, False))
            options = self.options
            self.arrived(self.run(side, CREATE, data=self.table(rows), options=options), rows)
        else:
            getattr(self, action)(side, rng)

    def append(self, side, rng):
        names = [c for c in self.columns if self.needed(c) or rng.random() < 0.9]
        rng.shuffle(names)
        new = self.fresh(rng, self.some_ids(rng, False), names)
        version = self.run(side, ADD, data=self.table(new, names), mode="append")
        self.committed(version, self.rows + [{c: r.get(c) for c in self.columns} for r in new])

    def overwrite(self, side, rng):
        rows = self.fresh(rng, self.some_ids(rng, False))
        self.committed(self.run(side, ADD, data=self.table(rows), mode="overwrite"), rows)
        self.row_ids = {}

    def delete(self, side, rng):
        sql, test = self.predicate(rng)
        count, version = self.run(side, DELETE, where=sql)
        kept = [r for r in self.rows if test(r) is not True]
        self.count("deleted", count, len(self.rows) - len(kept))
        self.committed(version, kept)

    def update(self, side, rng):
        sql, test = self.predicate(rng)
        if rng.random() < 0.1:
            sql, test = None, lambda r: True
        changes = {
            "n": ("n + 1", lambda r: plus(r["n"], 1)),
            "x": ("x * 2.0", lambda r: None if r["x"] is None else r["x"] * 2.0),
            "name": ("name || '!'", lambda r: plus(r["name"], "!")),
        }
        choices = [c for c in changes if c in self.columns]
        chosen = rng.sample(choices, rng.randint(1, len(choices))) if choices else []
        by_sql = chosen and rng.random() < 0.5
        if by_sql:
            args = {"values": None, "values_sql": {c: changes[c][0] for c in chosen}}
            new = {c: changes[c][1] for c in chosen}
        else:
            chosen = chosen or ["uid"]
            values = {c: self.value(rng, c) for c in chosen}
            args = {"values": values, "values_sql": None}
            new = {c: (lambda r, v=v: v) for c, v in values.items()}
        count, version = self.run(side, UPDATE, where=sql, **args)
        hit = [r for r in self.rows if test(r) is True]
        rest = [r for r in self.rows if test(r) is not True]
        self.count("updated", count, len(hit))
        if not hit and version in self.versions:
            return  # nothing to do makes no version
        self.committed(version, rest + [{**r, **{c: f(r) for c, f in new.items()}} for r in hit])

    def merge(self, side, rng):
        on = ["id"] if rng.random() < 0.8 or "n" not in self.columns else ["id", "n"]
        partial = rng.random() < 0.25
        names = [c for c in self.columns if c in on or self.needed(c) or not partial or rng.random() < 0.5]
        source = self.fresh(rng, self.some_ids(rng), names)
        clauses = {}
        kind = rng.randrange(6)
        if kind != 1:
            clauses["update"] = None
        if kind != 2:
            clauses["insert"] = True
        where = lambda target, new: True  # noqa: E731
        if kind == 3 and "n" in names:
            clauses["update"] = "target.n < source.n"
            where = lambda t, s: None not in (t["n"], s["n"]) and t["n"] < s["n"]  # noqa: E731
        gone = lambda r: False  # noqa: E731
        if kind == 4 and not partial:
            clauses["delete"], gone = self.predicate(rng)
        # A row of the target that two rows match, or two of the target that one matches, are not drawn.
        keys = {}
        for row in source:
            key = tuple(row[c] for c in on)
            if None not in key:
                keys[key] = row
        if len({tuple(r[c] for c in on) for r in source}) != len(source) and any(None in k for k in keys):
            return
        matched = {}
        for row in self.rows:
            key = tuple(row[c] for c in on)
            if key in keys:
                matched.setdefault(key, []).append(row)
        data = self.table(source, names)
        counts, version = self.run(side, MERGE, on=on, clauses=clauses, data=data)
        rows, updated, deleted = [], [], 0
        for row in self.rows:
            key = tuple(row[c] for c in on)
            new = keys.get(key)
            if new is not None:
                if "update" in clauses and where(row, new):
                    updated.append({**row, **new})
                else:
                    rows.append(row)
            elif gone(row) is True:
                deleted += 1
            else:
                rows.append(row)
        inserted = []
        if "insert" in clauses:
            for row in source:
                key = tuple(row[c] for c in on)
                if key not in matched:
                    inserted.append({c: row.get(c) for c in self.columns})
        self.count("updated, inserted, deleted", counts, (len(updated), len(inserted), deleted))
        if version in self.versions and not (updated or inserted or deleted):
            return
        self.committed(version, rows + updated + inserted)

    def count(self, what, found, expected):
        if found != expected:
            raise Failure(f"{what}: {found} instead of {expected}")

    def add_column(self, side, rng):
        name = f"c{rng.randrange(6)}"
        if name in self.columns or "n" not in self.columns:
            return
        columns = dict(self.columns)
        kind = rng.randrange(3)
        if kind == 0:
            version = self.run(side, ADD_COLUMNS, columns=pa.schema([(name, pa.utf8())]))
            columns[name] = pa.utf8()
            rows = [{**r, name: None} for r in self.rows]
        elif kind == 1:
            version = self.run(side, ADD_COLUMNS, columns={name: "id + 5"})
            columns[name] = pa.int64()
            rows = [{**r, name: plus(r["id"], 5)} for r in self.rows]
        else:
            version = self.run(side, ADD_COLUMNS, columns={name: "n IS NULL"})
            columns[name] = pa.bool_()
            rows = [{**r, name: r["n"] is None} for r in self.rows]
        self.committed(version, rows, columns)

    def alter(self, side, rng):
        columns = dict(self.columns)
        if rng.random() < 0.5:
            old = rng.choice([c for c in columns if c not in ("id", "uid", "n", "x", "name")] or [None])
            if old is None:
                return
            new = f"r{rng.randrange(1000)}"
            if new in columns:
                return
            version = self.run(side, ALTER, change={"path": old, "rename": new})
            columns = {new if c == old else c: t for c, t in columns.items()}
            rows = [{new if c == old else c: v for c, v in r.items()} for r in self.rows]
            self.committed(version, rows, columns)
        else:
            if columns.get("n") != pa.int32():
                return
            version = self.run(side, ALTER, change={"path": "n", "data_type": pa.int64()})
            columns["n"] = pa.int64()
            self.committed(version, self.rows, columns)

    def drop(self, side, rng):
        name = rng.choice([c for c in self.columns if c not in ("id", "uid", "n")] or [None])
        if name is None:
            return
        version = self.run(side, DROP, name=name)
        columns = {c: t for c, t in self.columns.items() if c != name}
        self.committed(version, [{c: v for c, v in r.items() if c != name} for r in self.rows], columns)

    def compact(self, side, rng):
        version = self.run(side, OPTIMIZE, age=None, everything=False)
        self.arrived(version, self.rows)

    def cleanup(self, side, rng):
        # Optimizing refuses to prune past a tag, in both.
        code = CLEANUP if self.tags else OPTIMIZE
        version = self.run(side, code, age=datetime.timedelta(0), everything=rng.random() < 0.5)
        self.arrived(version, self.rows)
        self.versions = {v: r for v, r in self.versions.items() if v == version or v in self.tags.values()}

    def restore(self, side, rng):
        target = rng.choice(list(self.versions))
        rows, columns = self.versions[target]
        self.committed(self.run(side, RESTORE, version=target), rows, columns)
        self.row_ids = {}

    def tag(self, side, rng):
        name, target = f"tag{len(self.log)}", rng.choice(list(self.versions))
        self.run(side, TAG, tag=name, version=target)
        self.tags[name] = target

    # What must hold.

    def same_rows(self, found, rows, columns, what):
        if found.schema.names != list(columns):
            raise Failure(f"{what}: columns {found.schema.names} instead of {list(columns)}")
        types = dict(zip(found.schema.names, found.schema.types))
        if types != columns:
            raise Failure(f"{what}: types {types} instead of {columns}")
        left = sorted(repr(r) for r in found.to_pylist())
        right = sorted(repr({c: r[c] for c in columns}) for r in rows)
        if left != right:
            extra = [r for r in left if r not in right][:3]
            missing = [r for r in right if r not in left][:3]
            raise Failure(f"{what}: {len(left)} rows, expected {len(right)}; not expected {extra}; missing {missing}")

    def check(self, maker):
        """What one side made, the other reads; we read it always."""
        found = {}
        for name, side in self.sides.items():
            if name != maker or name == "ours":
                found[name] = side.run(READ, db=self.db, ids=self.stable)
        (name, first), *others = found.items()
        for _, other in others:
            assert_same(first, other, "both sides")
        if self.stable:
            self.check_row_ids(first)
            first = first.drop_columns(["_rowid"])
        self.same_rows(first, self.rows, self.columns, f"{name} read the newest")

    def check_row_ids(self, found):
        """A stable row id stays with its row as long as the row lives; none occurs twice."""
        ids, uids = found["_rowid"].to_pylist(), found["uid"].to_pylist()
        if len(set(ids)) != len(ids):
            raise Failure("a row id occurs twice")
        twice = {u for u, count in collections.Counter(uids).items() if count > 1}
        new = {u: i for u, i in zip(uids, ids) if u not in twice}
        for uid, row_id in new.items():
            if self.row_ids.get(uid, row_id) != row_id:
                raise Failure(f"the row of uid {uid} had row id {self.row_ids[uid]} and has {row_id}")
        self.row_ids = new

    def check_all(self):
        for name, side in self.sides.items():
            past = side.run(READ_PAST, db=self.db, versions=list(self.versions))
            for (version, (rows, columns)), found in zip(self.versions.items(), past):
                self.same_rows(found, rows, columns, f"{name} read version {version}")
            if "n" in self.columns:
                nulls = sum(r["n"] is None for r in self.rows)
                self.count("nulls", side.run(COUNT, db=self.db, where="n IS NULL"), nulls)


def draw(rng, sides, length):
    return [(rng.choice(sides), rng.choice(ACTIONS), rng.getrandbits(48)) for _ in range(length)]


def play(sides, history, db, number):
    """None, or what went wrong and the steps that were run."""
    life = Life(sides, db, number)
    try:
        for step in history:
            made = len(life.log)
            life.step(*step)
            if len(life.log) > made:  # some steps find nothing to do
                life.check(step[0])
        life.check_all()
    except (Failure, AssertionError, SideError) as error:
        steps = "\n".join(f"  {name}: {code} {args}" for name, code, args in life.log)
        return f"{type(error).__name__}: {error}\noptions {life.options}\n{steps}"
    return None


def shrink(sides, history, number, fresh_db, seconds=60):
    """Leaves out whatever is not needed for a failure; returns the shortest history and its story."""
    end = time.monotonic() + seconds
    story = play(sides, history, fresh_db(), number)
    size = max(1, len(history) // 2)
    while size >= 1 and time.monotonic() < end:
        start = 0
        while start < len(history) and time.monotonic() < end:
            shorter = history[:start] + history[start + size :]
            failure = play(sides, shorter, fresh_db(), number) if shorter else None
            if failure is not None:
                history, story = shorter, failure
            else:
                start += size
        size //= 2
    return history, story
