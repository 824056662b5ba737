"""Random histories of one table, continued in turn by ours and by the real packages.

A plain model (a list of rows per version) says what every version holds. After each step both sides must
see the newest version, and at the end every old version and every tag.
"""

import random
import zlib

import pyarrow as pa
import pytest
from same import assert_same
from testing import SOAK
from upstream import SideError

APPEND = "lance.write_dataset(data, uri, mode=mode, **options)\nreturn lance.dataset(uri).version"
DELETE = "d = lance.dataset(uri)\nd.delete(predicate)\nreturn lance.dataset(uri).version"
RESTORE = "lance.dataset(uri, version=version).restore()\nreturn lance.dataset(uri).version"
TAG = "lance.dataset(uri).tags.create(tag, version)"
MOVE_TAG = "lance.dataset(uri).tags.update(tag, version)"
DROP_TAG = "lance.dataset(uri).tags.delete(tag)"
TAGS = "return {name: tag['version'] for name, tag in lance.dataset(uri).tags.list().items()}"
VERSIONS = "return [v['version'] for v in lance.dataset(uri).versions()]"
READ = "return lance.dataset(uri, version=version).to_table()"
COUNT = "return lance.dataset(uri, version=version).count_rows(filter)"
TAKE = "return lance.dataset(uri).take(rows)"
ROW_IDS = "return lance.dataset(uri).to_table(columns=['id'], with_row_id=True)"
TAKE_IDS = "return lance.dataset(uri)._take_rows(ids)"

SCHEMA = pa.schema([("id", pa.int64()), ("name", pa.utf8()), ("vector", pa.list_(pa.float32(), 4))])


class History:
    def __init__(self, rng, sides, uri, log):
        self.rng, self.sides, self.uri, self.log = rng, sides, uri, log
        self.next_id = 0
        self.options = {
            "data_storage_version": rng.choice(["2.0", "2.1", "2.2"]),
            "enable_stable_row_ids": rng.random() < 0.4,
            "enable_v2_manifest_paths": rng.random() < 0.8,
        }
        self.versions = {}  # version -> rows
        self.tags = {}
        self.current = None

    @property
    def rows(self):
        return self.versions[self.current]

    def run(self, code, **args):
        name = self.rng.choice(list(self.sides))
        self.log.append((name, code.splitlines()[0], {k: v for k, v in args.items() if k != "data"}))
        return self.sides[name].run(code, uri=self.uri, **args)

    def fresh(self):
        rows = []
        for _ in range(self.rng.choice([1, 3, 40, 700])):
            i = self.next_id
            self.next_id += 1
            name = None if i % 7 == 0 else f"name {i % 50}"
            rows.append((i, name, [float(i), i / 2, -1.0, 0.0]))
        return rows

    def table(self, rows):
        columns = [list(c) for c in zip(*rows)] if rows else [[], [], []]
        return pa.table([pa.array(c, f.type) for c, f in zip(columns, SCHEMA)], SCHEMA)

    def committed(self, version, rows):
        expected = 1 if self.current is None else max(self.versions) + 1
        assert version == expected, f"version {version} instead of {expected}"
        self.current = version
        self.versions[version] = rows

    def step(self):
        if self.current is None:
            return self.write("create")
        action = self.rng.choice(
            ["append"] * 4 + ["delete"] * 4 + ["restore", "tag", "overwrite", "move tag", "drop tag"]
        )
        getattr(self, action.replace(" ", "_"))()

    def write(self, mode):
        rows = self.fresh()
        options = self.options if mode == "create" else {}
        if self.rng.random() < 0.2:
            options = dict(options, max_rows_per_file=100)
        version = self.run(APPEND, data=self.table(rows), mode=mode, options=options)
        self.committed(version, (self.rows if mode == "append" else []) + rows)

    def append(self):
        self.write("append")

    def overwrite(self):
        self.write("overwrite")

    def delete(self):
        rng, rows = self.rng, self.rows
        kind = rng.random()
        if kind < 0.5 and rows:
            ids = sorted(rng.sample([r[0] for r in rows], min(len(rows), rng.choice([1, 2, 10]))))
            predicate, gone = f"id IN ({', '.join(map(str, ids))})", set(ids)
        elif kind < 0.8:
            low = rng.randrange(self.next_id + 1)
            high = low + rng.choice([0, 5, 100, 900])
            predicate, gone = f"id >= {low} AND id < {high}", set(range(low, high))
        elif kind < 0.9:
            predicate, gone = "name IS NULL", {r[0] for r in rows if r[1] is None}
        else:
            word = f"name {rng.randrange(50)}"
            predicate, gone = f"name = '{word}'", {r[0] for r in rows if r[1] == word}
        version = self.run(DELETE, predicate=predicate)
        self.committed(version, [r for r in rows if r[0] not in gone])

    def restore(self):
        target = self.rng.choice(list(self.versions))
        self.committed(self.run(RESTORE, version=target), self.versions[target])

    def tag(self):
        name, target = f"tag{len(self.log)}", self.rng.choice(list(self.versions))
        self.run(TAG, tag=name, version=target)
        self.tags[name] = target

    def move_tag(self):
        if self.tags:
            name, target = self.rng.choice(list(self.tags)), self.rng.choice(list(self.versions))
            self.run(MOVE_TAG, tag=name, version=target)
            self.tags[name] = target

    def drop_tag(self):
        if self.tags:
            name = self.rng.choice(list(self.tags))
            self.run(DROP_TAG, tag=name)
            del self.tags[name]

    def check_newest(self):
        expected = self.table(self.rows)
        for name, side in self.sides.items():
            assert_same(side.run(READ, uri=self.uri, version=None), expected, f"{name} read the newest")
            if self.rows:
                picks = [self.rng.randrange(len(self.rows)) for _ in range(4)]
                assert_same(side.run(TAKE, uri=self.uri, rows=picks), expected.take(pa.array(picks)), f"{name} took")

    def check_row_ids(self):
        """Both sides give the same row ids, and both find the rows by them."""
        found = {name: side.run(ROW_IDS, uri=self.uri) for name, side in self.sides.items()}
        assert_same(found["ours"], found["theirs"], "row ids")
        if self.rows:
            ids = found["theirs"]["_rowid"].to_pylist()
            assert len(set(ids)) == len(ids)
            picks = [self.rng.randrange(len(ids)) for _ in range(5)]
            expected = self.table([self.rows[i] for i in picks])
            for name, side in self.sides.items():
                taken = side.run(TAKE_IDS, uri=self.uri, ids=[ids[i] for i in picks])
                assert_same(taken, expected, f"{name} took by row id")

    def check_past(self):
        for name, side in self.sides.items():
            assert side.run(VERSIONS, uri=self.uri) == sorted(self.versions), f"{name} listed versions"
            assert side.run(TAGS, uri=self.uri) == self.tags, f"{name} listed tags"
            past = list(self.versions.items()) + [(tag, self.versions[v]) for tag, v in self.tags.items()]
            for version, rows in past:
                found = side.run(READ, uri=self.uri, version=version)
                assert_same(found, self.table(rows), f"{name} read version {version}")
            nulls = sum(r[1] is None for r in self.rows)
            assert side.run(COUNT, uri=self.uri, version=None, filter="name IS NULL") == nulls


@pytest.mark.parametrize("number", range(400 if SOAK else 20))
def test_history(number, sides, seed, tmp_path):
    rng = random.Random(zlib.crc32(repr((seed, "history", number)).encode()))
    log = []
    history = History(rng, sides, str(tmp_path / "t.lance"), log)
    try:
        for _ in range(rng.randrange(10, 40) if SOAK else 8):
            history.step()
            history.check_newest()
        history.check_row_ids()
        history.check_past()
    except (AssertionError, SideError) as error:
        steps = "\n".join(f"  {name}: {code} {args}" for name, code, args in log)
        raise AssertionError(f"{error}\noptions {history.options}\nsteps:\n{steps}") from error
