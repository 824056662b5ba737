"""The same updates and merges by us and by the real package: the same rows, counts and row ids, read by both."""

import random

import pyarrow as pa
import pytest
from same import assert_same
from testing import SOAK
from upstream import SideError

SCHEMA = pa.schema(
    [
        ("k", pa.int64()),
        ("j", pa.string()),
        ("f", pa.float64()),
        ("n", pa.int32()),
        ("p", pa.struct([("x", pa.int32()), ("y", pa.string())])),
        ("v", pa.list_(pa.float32(), 2)),
    ]
)
CREATE = "return lance.write_dataset(data, uri, mode='create' if new else 'append', enable_stable_row_ids=stable, data_storage_version=version).version"
MERGE = """
b = lance.dataset(uri).merge_insert(on)
if update is not None: b = b.when_matched_update_all(update) if update else b.when_matched_update_all()
if remove: b = b.when_matched_delete()
if insert: b = b.when_not_matched_insert_all()
if delete is not None: b = b.when_not_matched_by_source_delete(delete) if delete else b.when_not_matched_by_source_delete()
return b.execute(source)
"""
UPDATE = "return lance.dataset(uri).update(values, where=where)"
READ = """
ds = lance.dataset(uri)
return ds.to_table(with_row_id=True), ds.version, sorted(f.physical_rows for f in ds.get_fragments())
"""


def row(rng):
    return {
        "k": rng.choice([None, *range(15)]),
        "j": rng.choice(["", "a", "b", None]),
        "f": rng.choice([0.0, -0.0, 1.5, float("nan"), None]),
        "n": rng.randrange(-5, 6),
        "p": rng.choice([None, {"x": 1, "y": "q"}, {"x": None, "y": "r"}]),
        "v": [rng.random(), 2.0],
    }


def step(rng):
    """A snippet and its arguments."""
    if rng.random() < 0.3:
        values = rng.choice([{"n": "n + 1"}, {"j": "'new'", "n": "k"}, {"f": "n * 2"}, {"k": "k + 100"}])
        return UPDATE, {"values": values, "where": rng.choice([None, "k > 5", "j = 'a' AND n < 2", "f IS NULL", "k = 999"])}
    on = rng.choice([["k"], ["j", "k"], ["f"], ["k", "f"]])
    others = [c for c in SCHEMA.names if c not in on]
    given = on + rng.sample(others, rng.choice([len(others), len(others), 2]))
    rng.shuffle(given)
    rows = [{c: r[c] for c in given} for r in (row(rng) for _ in range(rng.choice([0, 1, 5, 12])))]
    if rng.random() < 0.8:
        rows = list({repr([r[c] for c in on]): r for r in rows}.values())
    source = pa.Table.from_pylist(rows, pa.schema([SCHEMA.field(c) for c in given]))
    clauses = {"update": None, "remove": False, "insert": False, "delete": None}
    kind = rng.random()
    if kind < 0.6:
        condition = "target.n > 0" + (" AND source.n > target.n" if "n" in given else "")
        clauses["update"] = rng.choice(["", "", condition])
        clauses["insert"] = rng.random() < 0.7
    elif kind < 0.75:
        clauses["remove"] = True
    else:
        clauses["insert"] = True
    if rng.random() < 0.25 and not clauses["remove"]:
        clauses["delete"] = rng.choice(["", "n < 0"])
    return MERGE, {"on": on, "source": source, **clauses}


def outcome(side, code, args):
    try:
        return side.run(code, **args)
    except SideError as error:
        assert "mbiguous" in error.message, error
        return "ambiguous"


@pytest.mark.parametrize("number", range(200 if SOAK else 12))
def test_the_same_history_on_both_sides(number, ours, theirs, seed, tmp_path):
    rng = random.Random(f"{seed} {number}")
    stable, version = rng.random() < 0.4, rng.choice(["2.1", "2.2"])
    parts = [pa.Table.from_pylist([row(rng) for _ in range(rng.randrange(1, 20))], SCHEMA) for _ in range(rng.randrange(1, 4))]
    uris = {name: str(tmp_path / f"{name}.lance") for name in ("ours", "theirs")}
    sides = {"ours": ours, "theirs": theirs}
    for name, side in sides.items():
        for i, part in enumerate(parts):
            side.run(CREATE, data=part, uri=uris[name], new=i == 0, stable=stable, version=version)
    for _ in range(rng.randrange(1, 7)):
        code, args = step(rng)
        # Each works on its own table; now and then on the other's, which must be as good.
        swapped = rng.random() < 0.3
        results = {name: outcome(sides[other], code, {**args, "uri": uris[name]}) for name, other in (
            ("ours", "theirs" if swapped else "ours"), ("theirs", "ours" if swapped else "theirs"))}  # fmt: skip
        assert results["ours"] == results["theirs"], args
        seen = {(name, reader): sides[reader].run(READ, uri=uris[name]) for name in uris for reader in sides}
        for name in uris:
            assert_same(seen[name, "ours"][0], seen[name, "theirs"][0])
        assert seen["ours", "ours"][1] == seen["theirs", "ours"][1]
        left, right = (seen[name, "ours"][0] for name in uris)
        if not stable:
            left, right = left.drop_columns("_rowid"), right.drop_columns("_rowid")
        canonical = lambda t: sorted(repr(sorted(r.items())) for r in t.to_pylist())
        if stable:
            # Ids of rows that were there stay; those of new rows are given in the order of the source, which upstream shuffles.
            known = lambda t: t.drop_columns("_rowid")
            assert sorted(left["_rowid"].to_pylist()) == sorted(right["_rowid"].to_pylist())
            left, right = known(left), known(right)
        assert canonical(left) == canonical(right), args
