"""The async API, event loops, fork."""

import asyncio
import datetime as dt
import os
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import glaive
import pyarrow as pa
import pytest
from glaive import _pool

ROOT = Path(__file__).resolve().parents[2]


def numbered(n, start=0):
    ids = range(start, start + n)
    flat = pa.array([float(x) for i in ids for x in (i, 1)], pa.float32())
    return pa.table({"id": pa.array(ids, pa.int64()), "vector": pa.FixedSizeListArray.from_arrays(flat, 2)})


def ok(code, *args, timeout=60):
    environ = dict(os.environ, PYTHONPATH=str(ROOT / "python"))
    done = subprocess.run([sys.executable, "-c", code, *map(str, args)], capture_output=True, text=True, timeout=timeout, env=environ)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    return done.stdout.strip()


async def test_a_table_from_start_to_end(tmp_path):
    with await glaive.connect_async(tmp_path, read_consistency_interval=dt.timedelta(0)) as db:
        t = await db.create_table("t", numbered(30))
        assert (await t.add(numbered(5, 30))).version == 2
        assert (await t.delete("id = 0")).num_deleted_rows == 1
        assert await t.count_rows() == 34 and await t.count_rows("id > 30") == 4 and await t.version() == 3
        assert [r["id"] for r in await t.query().nearest_to([7, 1]).limit(3).to_list()] == [7, 6, 8]
        got = await (await t.search([7, 1])).where("id > 20").select(["id"]).limit(2).to_arrow()
        assert got.column_names == ["id", "_distance"] and got["id"].to_pylist() == [21, 22]
        many = await t.query().nearest_to([[3, 1], [9, 1]]).limit(1).to_arrow()
        assert (many["query_index"].to_pylist(), many["id"].to_pylist()) == ([0, 1], [3, 9])
        assert [r["id"] for r in await t.vector_search([0, 1]).distance_range(1.0, 5.0).to_list()] == [1, 2]
        assert [r["id"] for r in await t.vector_search([0, 1]).where("id > 3").postfilter().limit(4).to_list()] == [4]
        sizes = [b.num_rows async for b in await t.query().to_batches(max_batch_length=10)]
        assert sum(sizes) == 34 and max(sizes) <= 10
        assert (await t.take_offsets([3, 0]).select(["id"]).to_arrow())["id"].to_pylist() == [1, 4]
        await t.tags.create("x", 1)
        await t.checkout("x")
        assert await t.count_rows() == 30
        await t.restore()
        assert (await t.version(), await t.count_rows()) == (4, 30)
        assert [v["version"] for v in await t.list_versions()] == [1, 2, 3, 4]
        assert (await db.list_tables()).tables == ["t"]
        with pytest.warns(DeprecationWarning):
            assert await db.table_names() == ["t"]
        assert await t.list_indices() == [] and await t.index_stats("x") is None
        with pytest.raises(NotImplementedError, match="AsyncTable.create_index"):
            await t.create_index("vector")
        t.close()
        with pytest.raises(RuntimeError, match="is closed"):
            await t.count_rows()
    with pytest.raises(RuntimeError, match="is closed"):
        await db.open_table("t")


async def test_errors_are_those_of_the_sync_api(tmp_path):
    db = await glaive.connect_async(tmp_path)
    with pytest.raises(ValueError, match="Table 'x' was not found"):
        await db.open_table("x")
    t = await db.create_table("t", numbered(2))
    with pytest.raises(ValueError, match="already exists"):
        await db.create_table("t", numbered(2))
    for call in (
        lambda: t.query().limit(-1),
        lambda: t.query().limit("x"),
        lambda: t.query().nearest_to([]),
        lambda: t.query().nearest_to(None),
        lambda: t.vector_search([1, 1]).distance_type("x"),
        lambda: t.vector_search([1, 1]).minimum_nprobes(0),
        lambda: t.vector_search([1, 1]).maximum_nprobes(5),
    ):
        with pytest.raises((ValueError, TypeError)):
            call()
    with pytest.raises(RuntimeError, match="Query timeout"):
        await t.query().to_arrow(timeout=dt.timedelta(0))


async def test_many_calls_at_once_leave_the_default_executor_alone(tmp_path):
    db = await glaive.connect_async(tmp_path)
    t = await db.create_table("t", numbered(200))
    loop = asyncio.get_running_loop()
    pool = ThreadPoolExecutor(1)
    loop.set_default_executor(pool)
    gate = threading.Event()
    busy = loop.run_in_executor(None, gate.wait, 30)
    try:
        found = await asyncio.wait_for(asyncio.gather(*(t.vector_search([i, 1]).limit(1).to_list() for i in range(60))), 30)
        assert [f[0]["id"] for f in found] == list(range(60))
    finally:
        gate.set()
        await busy


async def test_a_builder_may_go_on_while_its_query_runs(tmp_path):
    t = await (await glaive.connect_async(tmp_path)).create_table("t", numbered(50))
    query = t.query().limit(5)
    first = asyncio.ensure_future(query.to_arrow())
    await asyncio.sleep(0)
    query.limit(7)
    assert ((await first).num_rows, (await query.to_arrow()).num_rows) == (5, 7)


async def test_cancelling_a_task_stops_the_call():
    class Slow:
        stopped = False

        def call(self, *, cancel):
            began = time.monotonic()
            while not cancel.cancelled and time.monotonic() - began < 20:
                time.sleep(0.01)
            self.stopped = cancel.cancelled

    slow = Slow()
    task = asyncio.ensure_future(_pool.run_cancellable(slow.call))
    await asyncio.sleep(0.1)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    for _ in range(100):
        if slow.stopped:
            break
        await asyncio.sleep(0.02)
    assert slow.stopped


def test_sync_calls_inside_running_loops(tmp_path):
    glaive.connect(tmp_path).create_table("t", numbered(7))
    done = []

    async def work():
        for _ in range(20):
            db = await glaive.connect_async(tmp_path)
            t = await db.open_table("t")
            assert await t.count_rows() == 7
            assert glaive.connect(tmp_path).open_table("t").count_rows("id > 2") == 4
            t.close()
            db.close()
        done.append(1)

    threads = [threading.Thread(target=lambda: asyncio.run(work())) for _ in range(2)]
    [x.start() for x in threads]
    asyncio.run(work())
    [x.join(60) for x in threads]
    assert done == [1, 1, 1]


FORK = """
import asyncio, os, sys
import glaive, pyarrow as pa
flat = pa.array([float(x) for i in range(640) for x in (i, 2)], pa.float32())
data = pa.table({"n": range(640), "v": pa.FixedSizeListArray.from_arrays(flat, 2)})
t = glaive.connect(sys.argv[1]).create_table("t", data)
async def near(at):
    db = await glaive.connect_async(sys.argv[1])
    u = await db.open_table("t")
    found = await u.query().nearest_to([at, 2.0]).limit(2).to_arrow()
    return found["n"].to_pylist()
def right(x):
    at = 7.3 * x
    expected = sorted(range(640), key=lambda n: abs(n - at))[:2]
    sync = t.search([at, 2.0]).limit(2).to_arrow()["n"].to_pylist()
    return t.count_rows(f"n < {10 * x}") == 10 * x and sync == expected and asyncio.run(near(at)) == expected
assert right(1)
for round_ in range(3):
    pids = []
    for x in range(6):
        pid = os.fork()
        if pid == 0:
            good = False
            try:
                good = right(x)
                mine = glaive.connect(sys.argv[1]).open_table("t")
                mine.add(pa.table({"n": [1000 + 10 * round_ + x], "v": pa.array([[0.0, 900.0]], pa.list_(pa.float32(), 2))}))
            finally:
                os._exit(0 if good else 1)
        pids.append(pid)
    for pid in pids:
        assert os.waitpid(pid, 0)[1] == 0, (round_, pid)
    assert right(60 + round_ - 2)
t.checkout_latest()
assert t.count_rows("n >= 1000") == 18
print("fine")
"""


def test_forked_children_work_sync_and_async(tmp_path):
    assert ok(FORK, tmp_path / "db") == "fine"


FORK_IN_LOOP = """
import asyncio, os, sys
import glaive
async def main():
    db = await glaive.connect_async(sys.argv[1])
    t = await db.create_table("t", [{"a": i} for i in range(9)])
    running = [asyncio.ensure_future(t.count_rows()) for _ in range(20)]
    await asyncio.sleep(0)
    pid = os.fork()  # while calls are on their way
    if pid == 0:
        good = False
        try: good = glaive.connect(sys.argv[1]).open_table("t").count_rows("a > 3") == 5
        finally: os._exit(0 if good else 1)
    assert os.waitpid(pid, 0)[1] == 0
    assert await asyncio.gather(*running) == [9] * 20
asyncio.run(main())
print("fine")
"""


def test_fork_while_calls_run(tmp_path):
    assert ok(FORK_IN_LOOP, tmp_path / "db") == "fine"


INTERRUPT = """
import os, signal, sys, threading, time
import glaive, numpy as np, pyarrow as pa
n, dim = 400_000, 64
rng = np.random.default_rng(1)
data = pa.table({"v": pa.FixedSizeListArray.from_arrays(pa.array(rng.random(n * dim, np.float32)), dim)})
t = glaive.connect("memory://").create_table("t", data)
# A shell starts what runs in its background with interrupts ignored, and Python leaves it at that.
signal.signal(signal.SIGINT, signal.default_int_handler)
outcomes = set()
for round in range(int(sys.argv[1])):
    timer = threading.Timer(rng.random() * 0.1, lambda: os.kill(os.getpid(), signal.SIGINT))
    began = time.monotonic()
    outcome = "never"
    try:
        timer.start()
        while time.monotonic() - began < 20:
            t.search(rng.random((64 if round % 2 else 1, dim), np.float32)).limit(5).to_arrow()
    except KeyboardInterrupt:
        outcome = "fine" if time.monotonic() - began < 5 else "late"
    outcomes.add(outcome)
    timer.join()
    assert t.count_rows() == n
print(*outcomes)
"""


def test_an_interrupt_ends_a_long_search():
    # At any moment: in the engine, on the way there, and when a search has just ended.
    assert ok(INTERRUPT, 500 if os.environ.get("GLAIVE_SOAK") else 20, timeout=300) == "fine"


# --- forks beside busy threads, loops beside loops ----------------------------------------------------------

FORK_BESIDE_THREADS = """
import os, signal, sys, threading
import glaive, numpy as np, pyarrow as pa
uri, forks = sys.argv[1], int(sys.argv[2])
n = 4000
db = glaive.connect(uri)
t = db.create_table("t", pa.table({"id": range(n), "v": pa.FixedSizeListArray.from_arrays(pa.array(np.arange(n * 4, dtype="f4")), 4)}))
w = db.create_table("w", [{"a": 0}])
stop, errors = threading.Event(), []
def scan():
    while not stop.is_set():
        t.search([1.0] * 4).limit(3).to_list()
        t.count_rows("id > 100")
        for batch in t.search().where("id > 5").to_batches(500): pass
def write():
    while not stop.is_set():
        w.add([{"a": 1}])
        w.checkout_latest()
        assert w.count_rows() and "w" in db.list_tables().tables and db.open_table("w").schema.names == ["a"]
def guarded(body):
    try: body()
    except BaseException as e: errors.append(repr(e))
threads = [threading.Thread(target=guarded, args=(body,), daemon=True) for body in (scan, scan, write, write)]
[x.start() for x in threads]
for fork in range(forks):
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            signal.alarm(60)  # a child that hangs is killed
            assert t.count_rows() == n and sum(b.num_rows for b in t.search().to_batches()) == n
            assert t.search([0.0] * 4).limit(1).to_list()[0]["id"] == 0
            seen = w.count_rows()
            w.add([{"a": -1}])  # through the handle that threads of the parent were using
            assert w.count_rows() > seen and db.open_table("w").count_rows("a = -1") >= 1
            code = 0
        finally:
            os._exit(code)
    status = os.waitpid(pid, 0)[1]
    assert status == 0, (fork, status)
stop.set()
[x.join() for x in threads]
assert not errors, errors
w.checkout_latest()
assert uri == "memory://" or w.count_rows("a = -1") == forks  # a fork of a database in memory is a copy
print("fine")
"""


@pytest.mark.parametrize("where", ["disk", "memory"])
def test_forks_while_threads_read_and_write_the_same_tables(tmp_path, where):
    forks = 300 if os.environ.get("GLAIVE_SOAK") else 25
    assert ok(FORK_BESIDE_THREADS, tmp_path / "db" if where == "disk" else "memory://", forks, timeout=600) == "fine"


CONNECTIONS = """
import asyncio, sys, threading
import glaive
glaive.connect(sys.argv[1]).create_table("t", [{"k": i} for i in range(7)])
done = []
async def work():
    for i in range(150):
        db = await glaive.connect_async(sys.argv[1])
        t = await db.open_table("t")
        assert await t.count_rows() == 7
        if i % 10 == 0:
            assert glaive.connect(sys.argv[1]).open_table("t").count_rows("k > 2") == 4  # sync, inside a running loop
        t.close()
        db.close()
    done.append(1)
threads = [threading.Thread(target=lambda: asyncio.run(work())) for _ in range(2)]
[x.start() for x in threads]
[x.join(100) for x in threads]
print(len(done), threading.active_count() < 40)
"""


def test_300_connections_in_two_loops_in_two_threads(tmp_path):
    assert ok(CONNECTIONS, tmp_path / "db", timeout=300) == "2 True"


SYNC_IN_LOOP = """
import asyncio, sys
import glaive
from glaive.background_loop import LOOP, BackgroundEventLoop
async def answer(x):
    await asyncio.sleep(0)
    return x
async def main():
    db = glaive.connect(sys.argv[1])
    t = db.create_table("t", [{"a": i, "vector": [float(i), 0.0]} for i in range(9)])
    t.add([{"a": 9, "vector": [9.0, 0.0]}])
    assert t.search([8.8, 0.0]).limit(1).to_list()[0]["a"] == 9
    t.delete("a = 9")
    assert t.count_rows() == 9 and len(t.search().to_arrow()) == 9 and t.version == 3
    assert LOOP.run(answer(3)) == 3  # another loop's coroutine, from inside a running loop
    both = await asyncio.gather(*[asyncio.to_thread(t.count_rows) for _ in range(20)])
    assert both == [9] * 20
    return [LOOP.run(answer(i)) for i in range(5)]
assert asyncio.run(main()) == [0, 1, 2, 3, 4]
own = BackgroundEventLoop()
assert own.run(answer("x")) == "x"
async def fail(): raise KeyError("as it is")
try: own.run(fail())
except KeyError as e: print(e.args[0])
"""


def test_sync_calls_inside_a_running_loop(tmp_path):
    assert ok(SYNC_IN_LOOP, tmp_path / "db") == "as it is"
