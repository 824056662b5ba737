"""A table with an LSM write path, written by real lancedb and by us in turn, against a dictionary."""

import random

import glaive
import pyarrow as pa
import pytest
from glaive import LsmWriteSpec
from glaive.exceptions import WriterFencedError
from testing import SEED, SOAK

SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("text", pa.string()), pa.field("n", pa.int32())])
OPTIONS = {"lsm_upkeep": "false"}

THEIR_UPSERT = """
db = lancedb.connect(path)
t = db.open_table("t")
t.merge_insert("id").when_matched_update_all().when_not_matched_insert_all().validate_single_shard(True).execute(rows)
if close:
    t.close_lsm_writers()
    return sorted(t.search().limit(10000).to_list(), key=lambda r: r["id"])
held.append(t)  # the writer stays open, its rows are in the log alone
"""


def our_upsert(table, rows):
    merge = table.merge_insert("id").when_matched_update_all().when_not_matched_insert_all()
    try:
        return merge.execute(rows)
    except WriterFencedError:  # theirs claimed the shard; the next call claims it back and replays what they left
        return merge.execute(rows)


def plain(rows):
    return sorted(({name: r[name] for name in SCHEMA.names} for r in rows), key=lambda r: r["id"])


@pytest.mark.parametrize("seed", [3, SEED] if not SOAK else [SEED + i for i in range(40)])
@pytest.mark.parametrize("spec_by", ["ours", "theirs"])
def test_both_write_in_turn(tmp_path, theirs, seed, spec_by):
    rng = random.Random(seed)
    path = str(tmp_path)
    db = glaive.connect(path, storage_options=OPTIONS)
    table = db.create_table("t", schema=SCHEMA)
    table.set_unenforced_primary_key("id")
    if spec_by == "ours":
        table.set_lsm_write_spec(LsmWriteSpec.unsharded())
        assert "unsharded" in theirs.run("return repr(lancedb.connect(path).open_table('t').get_lsm_write_spec())", path=path)
    else:
        theirs.run("lancedb.connect(path).open_table('t').set_lsm_write_spec(lancedb.LsmWriteSpec.unsharded())", path=path)
        table = db.open_table("t")
        assert table.get_lsm_write_spec().spec_type == "unsharded"
    model = {}
    for step in range(12 if not SOAK else 30):
        keys = rng.sample(range(20), rng.randrange(1, 6))
        rows = pa.Table.from_pylist([{"id": k, "text": rng.choice([None, "a", f"s{step}"]), "n": step} for k in keys], schema=SCHEMA)
        who = rng.choice(["ours", "ours", "theirs", "theirs open"])
        if who == "ours":
            our_upsert(table, rows)
        else:
            seen = theirs.run("held = globals().setdefault('held', [])\n" + THEIR_UPSERT, path=path, rows=rows, close=who == "theirs")
        model.update((r["id"], r) for r in rows.to_pylist())
        want = [model[k] for k in sorted(model)]
        if who == "theirs":  # it sees all that is in generations, ours among them, and what it put itself
            assert plain(seen) == want
        assert plain(table.to_arrow().to_pylist()) == want
        action = rng.choice(["", "", "flush", "delete", "checkpoint", "close"])
        if action == "delete":
            gone = rng.choice(sorted(model))
            try:
                table.delete(f"id = {gone}")
            except WriterFencedError:
                table.delete(f"id = {gone}")
            del model[gone]
        elif action == "flush":
            table.flush_lsm()
        elif action == "checkpoint":
            assert table.checkpoint_lsm().converged
            rows = theirs.run("return lancedb.connect(path).open_table('t').search().use_lsm(False).limit(10000).to_list()", path=path)
            assert plain(rows) == [model[k] for k in sorted(model)]
        elif action == "close":
            try:
                table.close_lsm_writers()
            except WriterFencedError:
                pass
        assert plain(table.to_arrow().to_pylist()) == [model[k] for k in sorted(model)]


@pytest.mark.parametrize("sharding", ["bucket", "identity"])
def test_shards_are_those_of_the_real_package(tmp_path, theirs, sharding):
    path = str(tmp_path)
    spec = LsmWriteSpec.bucket("id", 4) if sharding == "bucket" else LsmWriteSpec.identity("id")
    table = glaive.connect(path, storage_options=OPTIONS).create_table("t", schema=SCHEMA)
    table.set_unenforced_primary_key("id")
    table.set_lsm_write_spec(spec)
    rows = pa.Table.from_pylist([{"id": k, "text": "ours", "n": 0} for k in range(12)], schema=SCHEMA)
    our_upsert(table, rows)
    table.close_lsm_writers()
    # Each of their writes goes to the shard that already holds the key, or the old row would be seen beside the new one.
    theirs.run(
        """
        for k in range(0, 12, 3):
            t = lancedb.connect(path).open_table("t")
            row = pa.Table.from_pylist([{"id": k, "text": "theirs", "n": 1}], schema=schema)
            t.merge_insert("id").when_matched_update_all().when_not_matched_insert_all().execute(row)
            t.close_lsm_writers()
        """,
        path=path,
        schema=SCHEMA,
    )
    want = [{"id": k, "text": "theirs" if k % 3 == 0 else "ours", "n": int(k % 3 == 0)} for k in range(12)]
    assert plain(table.to_arrow().to_pylist()) == want
    assert plain(theirs.run("return lancedb.connect(path).open_table('t').search().limit(100).to_list()", path=path)) == want
    table.checkpoint_lsm()
    assert plain(theirs.run("return lancedb.connect(path).open_table('t').search().limit(100).to_list()", path=path)) == want
