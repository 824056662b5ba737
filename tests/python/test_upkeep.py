"""Upkeep through the Python package: optimize, the thread that works by itself, verify."""

import asyncio
import datetime as dt
import os
import pathlib
import subprocess
import sys
import time
import warnings

import glaive
import glaive.maintenance
import pyarrow as pa
import pytest
from testing import SOAK

NOW = dt.timedelta(0)
TOOL = pathlib.Path(__file__).resolve().parents[2] / "build" / "release" / "tools" / "glaive"


def fragments(table):
    return table.stats()["fragment_stats"]["num_fragments"]


def ids(table):
    return table.to_arrow()["id"].to_pylist()


@pytest.fixture
def table(tmp_path):
    db = glaive.connect(tmp_path / "db")
    table = db.create_table("t", pa.table({"id": pa.array([0], pa.int64())}))
    for i in range(1, 5):
        table.add([{"id": i}])
    return table


def test_optimize(table):
    table.tags.create("two", 2)
    assert table.optimize() is None
    assert fragments(table) == 1
    assert table.version == 7  # ids reserved, fragments replaced
    assert len(table.list_versions()) == 7  # nothing is 7 days old
    table.optimize(cleanup_older_than=NOW)
    assert [v["version"] for v in table.list_versions()] == [2, 7]
    assert ids(table) == [0, 1, 2, 3, 4]
    table.checkout("two")
    assert ids(table) == [0, 1]
    with pytest.raises(ValueError):
        table.optimize()
    with pytest.raises(TypeError):
        table.optimize(cleanup_older_than=5)


def test_optimize_async(tmp_path):
    async def run():
        db = await glaive.connect_async(tmp_path / "db")
        table = await db.create_table("t", [{"id": 0}])
        await table.add([{"id": 1}])
        stats = await table.optimize(cleanup_older_than=NOW, delete_unverified=True)
        assert stats.compaction.fragments_removed == 2
        assert stats.prune.old_versions_removed == 3
        text = str(stats)
        assert text.startswith(
            "OptimizeStats(compaction=CompactionStats { fragments_removed: 2, fragments_added: 1, files_removed: 2, files_added: 1 }, "
            "prune=RemovalStats { bytes_removed: "
        ), text
        assert await table.version() == 4

    asyncio.run(run())


def test_deprecated_names(table):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert table.compact_files().fragments_removed == 5
        assert table.cleanup_old_versions(NOW).old_versions == 6
    assert {w.category for w in caught} == {DeprecationWarning}
    assert ids(table) == [0, 1, 2, 3, 4]


def test_progress_of_a_compaction(tmp_path):
    import glaive.lance as lance

    reports = []
    ds = lance.write_dataset(pa.table({"id": range(1000)}), tmp_path / "t", max_rows_per_file=10)
    ds.optimize.compact_files(progress=reports.append)
    assert reports[-1]["done"] and reports[-1]["output_rows"] == 1000


def test_small_fragments_are_folded_by_themselves(tmp_path):
    """One-row appends and deletes: few fragments, the same rows in order, little on disk after the retention."""
    rounds = 5000 if SOAK else 400
    options = {"auto_maintenance_retention": "0s"}
    db = glaive.connect(tmp_path / "db", storage_options=options)
    table = db.create_table("t", pa.table({"id": pa.array([0], pa.int64()), "text": ["x" * 200]}))
    model, most = [0], 0
    for i in range(1, rounds):
        table.add([{"id": i, "text": "x" * 200}])
        model.append(i)
        if i % 10 == 0:
            table.delete(f"id = {i - 5}")
            model.remove(i - 5)
            most = max(most, fragments(table))
        # This machine may be slow, and the thread has a low priority. A fold begins at 64 fragments.
        if not SOAK and i % 30 == 0:
            glaive.maintenance.wait_for_maintenance(30)
    assert most < 100
    assert ids(table) == model
    assert glaive.maintenance.wait_for_maintenance(30)
    table.checkout_latest()
    assert ids(table) == model
    assert fragments(table) < 100
    table.add([{"id": -1, "text": ""}])
    assert ids(table) == [*model, -1]


def test_versions_that_are_tagged_or_open_stay(tmp_path):
    db = glaive.connect(tmp_path / "db", storage_options={"auto_maintenance_retention": "0s"})
    table = db.create_table("t", pa.table({"id": pa.array([0], pa.int64())}))
    table.add([{"id": 1}])
    table.tags.create("two", 2)
    table.add([{"id": 2}])
    reader = db.open_table("t")
    reader.checkout(3)
    for i in range(3, 200):
        table.add([{"id": i}])
    assert glaive.maintenance.wait_for_maintenance(30)
    kept = [v["version"] for v in table.list_versions()]
    assert kept[:2] == [2, 3] and len(kept) < 150
    assert ids(reader) == [0, 1, 2]
    reader.checkout("two")
    assert ids(reader) == [0, 1]


def test_waiting_includes_what_has_just_become_due(tmp_path):
    """The thread may not have woken up yet when the retention is over."""
    db = glaive.connect(tmp_path / "db", storage_options={"auto_maintenance_retention": "1s"})
    for number in range(3):
        table = db.create_table(f"t{number}", [{"id": 0}])
        for i in range(1, 4):
            table.add([{"id": i}])
        time.sleep(1.055)  # 50 ms after the retention of the last version
        assert glaive.maintenance.wait_for_maintenance(30)
        assert [v["version"] for v in table.list_versions()] == [4], number


@pytest.mark.parametrize("how", ["option", "variable"])
def test_switched_off(how, tmp_path, monkeypatch):
    options = {}
    if how == "option":
        options["auto_maintenance"] = "false"
    else:
        monkeypatch.setenv("GLAIVE_AUTO_MAINTENANCE", "0")
    db = glaive.connect(tmp_path / "db", storage_options=options)
    table = db.create_table("t", [{"id": 0}])
    for i in range(1, 90):
        table.add([{"id": i}])
    glaive.maintenance.wait_for_maintenance(5)
    table.checkout_latest()
    assert table.version == 90 and fragments(table) == 90


def test_settings_that_do_not_parse(tmp_path):
    for options in ({"auto_maintenance": "perhaps"}, {"auto_maintenance_retention": "soon"}):
        with pytest.raises(ValueError, match=next(iter(options))):
            glaive.connect(tmp_path / "db", storage_options=options)


BUSY = """
import os, sys, time
import glaive
import glaive.maintenance
# Of two processes that write, each needs the versions that the other makes while it commits.
db = glaive.connect(sys.argv[1], storage_options={"auto_maintenance_retention": "5s"})
table = db.create_table("t", [{"id": 0}])
for i in range(1, 140):
    table.add([{"id": i}])
    if i in (66, 70, 131):  # the thread has something to do now
        child = os.fork()
        if child == 0:
            assert db.open_table("t").count_rows() == i + 1
            table.add([{"id": 1000 + i}])
            os._exit(7)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
        table.delete(f"id = {1000 + i}")
assert table.count_rows() == 140
print("done", flush=True)
"""


def test_forks_and_exits_while_it_works(tmp_path):
    began = time.monotonic()
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    done = subprocess.run([sys.executable, "-c", BUSY, str(tmp_path / "db")], env=env, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr
    assert time.monotonic() - began < 100
    assert sorted(ids(glaive.connect(tmp_path / "db").open_table("t"))) == list(range(140))


LEAVING = """
import atexit, os, sys
import glaive
table = glaive.connect(sys.argv[1]).create_table("t", [{"id": 0}])
for i in range(1, 70):
    table.add([{"id": i}])
def threads_of_low_priority():
    stats = [open(f"/proc/self/task/{task}/stat").read() for task in os.listdir("/proc/self/task")]
    return sum(stat.rpartition(")")[2].split()[16] == "10" for stat in stats)
print(threads_of_low_priority())
atexit._run_exitfuncs()
print(threads_of_low_priority())
table.add([{"id": 70}])
print(table.count_rows(), threads_of_low_priority())
"""


def test_the_thread_ends_before_the_interpreter_does(tmp_path):
    """Once it was still at work when exit() had destroyed what Arrow keeps in statics: programs hung, or crashed, at their end."""
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    done = subprocess.run([sys.executable, "-c", LEAVING, str(tmp_path / "db")], env=env, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout) == (0, "1\n0\n71 0\n"), done.stderr


# --- verify -------------------------------------------------------------------------------------------------


def test_verify_and_repair(table, tmp_path):
    uri = tmp_path / "db" / "t.lance"
    table.delete("id = 3")
    report = glaive.maintenance.verify(uri, decode=True)
    assert report.sound and report.problems == [] and report.rows_checked == 4
    files = {f.fragment_id: f.data_files()[0].path for f in table.to_lance().get_fragments()}
    os.remove(uri / "data" / files[1])
    with open(uri / "data" / files[2], "r+b") as file:
        file.truncate(20)
    (uri / "data" / "stranger.lance").write_bytes(b"x")
    report = glaive.maintenance.verify(uri)
    assert not report.sound
    assert [(p.kind, p.fragment_id) for p in report.problems] == [("missing", 1), ("truncated", 2), ("foreign", None)]
    assert report.lost == {1: 1, 2: 1} and report.repaired_version is None
    report = glaive.maintenance.verify(uri, repair=True)
    assert report.repaired_version == 7
    if TOOL.exists():
        # The lost files are those of older versions now.
        said = subprocess.run([TOOL, "verify", uri], capture_output=True, text=True)
        assert said.returncode == 1 and "the newest one is sound" in said.stderr and "--repair" not in said.stderr
    assert ids(glaive.connect(tmp_path / "db").open_table("t")) == [0, 4]
    with pytest.raises((FileNotFoundError, ValueError)):
        glaive.maintenance.verify(tmp_path / "nothing")


def test_optimize_leaves_out_what_others_overtake(tmp_path):
    db = glaive.connect(tmp_path)
    rows = [[{"id": 100 * i + n, "n": n} for n in range(30)] for i in range(4)]
    table = db.create_table("t", rows[0])
    for more in rows[1:]:
        table.add(more)
    other = glaive.connect(tmp_path).open_table("t")
    rounds = []

    def overtake(done):
        other.delete(f"n = {len(rounds)}")  # of every fragment that is being folded
        rounds.append(done)

    (removed, added, *_), _ = glaive._glaive.optimize(table._inner, progress=overtake)
    assert len(rounds) >= 5, "planned anew"
    assert (removed, added) == (0, 0) and fragments(table) == 4
    expected = [row["id"] for some in rows for row in some if row["n"] >= len(rounds)]
    assert sorted(ids(table)) == expected
    assert not glaive.maintenance.verify(str(tmp_path / "t.lance")).problems  # nothing is left of what was tried
    table.optimize()
    assert fragments(table) == 1 and sorted(ids(table)) == expected


_WRITER = """
import sys, glaive
table = glaive.connect(sys.argv[1]).open_table("t")
print("ready", flush=True)
sys.stdin.readline()
for step in range(25):
    table.update(where=f"id = {sys.argv[2]}", values={"n": step + 1})
    table.add([{"id": 100 + int(sys.argv[2]), "n": step}])
"""


def test_optimize_among_writers_of_other_processes(tmp_path):
    table = glaive.connect(tmp_path).create_table("t", [{"id": i, "n": 0} for i in range(4)])
    writers = [
        subprocess.Popen([sys.executable, "-c", _WRITER, str(tmp_path), str(i)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for i in range(2)
    ]
    for writer in writers:
        assert writer.stdout.readline() == "ready\n"
    for writer in writers:
        writer.stdin.write("go\n")
        writer.stdin.close()
    while any(writer.poll() is None for writer in writers):
        table.optimize()
    assert [writer.wait() for writer in writers] == [0, 0]
    for writer in writers:
        writer.stdout.close()
    table.checkout_latest()
    rows = sorted((r["id"], r["n"]) for r in table.to_arrow().to_pylist())
    assert rows == [(0, 25), (1, 25), (2, 0), (3, 0), *((100 + i, n) for i in range(2) for n in range(25))]
    table.optimize()
    assert fragments(table) == 1
