"""kill -9 of a writer at random points.

What it acknowledged is there, what it did not finish is invisible or whole, and the next write succeeds,
for us and for the real packages.
"""

import os
import random
import signal
import time
import zlib

import crash_helpers
import pyarrow as pa
import pytest
from testing import SOAK
from upstream import SideError

# One line is printed after each operation that returned. Operation 0 creates; then come appends of ten
# rows, every third operation deletes what the one before it appended, every eleventh overwrites.
WRITER = """
uri = sys.argv[1]
def rows(i):
    ids = list(range(i * 10, i * 10 + 10))
    return pa.table({"id": pa.array(ids, pa.int64()), "text": [f"row {x} " * 20 for x in ids]})
print("ready", flush=True)
i = 0
while True:
    if i == 0:
        lance.write_dataset(rows(i), uri)
    elif i % 11 == 0:
        lance.write_dataset(rows(i), uri, mode="overwrite")
    elif i % 3 == 0:
        lance.dataset(uri).delete(f"id >= {(i - 1) * 10} AND id < {i * 10}")
    else:
        lance.write_dataset(rows(i), uri, mode="append")
    print(i, flush=True)
    i += 1
"""

READ = "return lance.dataset(uri).to_table(columns=['id'])['id'].to_pylist(), lance.dataset(uri).version"
APPEND = "return lance.write_dataset(data, uri, mode='append').version"
VERSIONS = "return [v['version'] for v in lance.dataset(uri).versions()]"


def model(count):
    """Ids after the first `count` operations."""
    ids = []
    for i in range(count):
        new = list(range(i * 10, i * 10 + 10))
        if i and i % 11 == 0:
            ids = new
        elif i and i % 3 == 0:
            ids = [x for x in ids if not (i - 1) * 10 <= x < i * 10]
        else:
            ids = ids + new
    return ids


@pytest.mark.parametrize("number", range(200 if SOAK else 10))
def test_killed_writer(number, sides, ours, seed, tmp_path):
    rng = random.Random(zlib.crc32(repr((seed, "kill", number)).encode()))
    uri = str(tmp_path / "t.lance")
    child = crash_helpers.start(WRITER, uri)
    assert child.stdout.readline() == "ready\n", child.stderr.read()
    acknowledged = 0
    if rng.random() < 0.2:
        time.sleep(rng.random() * 0.01)  # during the creation, more or less
    else:
        for _ in range(rng.randrange(1, 30)):
            acknowledged = int(child.stdout.readline()) + 1
        time.sleep(rng.random() * 0.02)
    os.kill(child.pid, signal.SIGKILL)
    rest, errors = crash_helpers.last_words(child)
    assert "Traceback" not in errors, errors
    for line in rest.splitlines(keepends=True):
        if line.endswith("\n"):  # the pipe may still hold acknowledgements, the last one cut off
            acknowledged = int(line) + 1
    for name, side in sides.items():
        try:
            ids, version = side.run(READ, uri=uri)
        except SideError as error:
            assert acknowledged == 0 and "ValueError" in error.bases, f"{name}: {error}"
            continue
        assert version in (acknowledged, acknowledged + 1), f"{name}: version {version} after {acknowledged} operations"
        assert ids == model(version), f"{name}: other rows in version {version}"
        assert side.run(VERSIONS, uri=uri) == list(range(1, version + 1)), name
    # The next write succeeds, of both, in either order.
    order = list(sides)
    rng.shuffle(order)
    extra = pa.table({"id": pa.array([-1], pa.int64()), "text": ["afterwards"]})
    for name in order:
        if not os.path.exists(uri + "/_versions") or not any(os.scandir(uri + "/_versions")):
            sides[name].run("lance.write_dataset(data, uri, mode='overwrite')", data=extra, uri=uri)
        else:
            sides[name].run(APPEND, data=extra, uri=uri)
    for name, side in sides.items():
        ids, _ = side.run(READ, uri=uri)
        assert ids[-2:] == [-1, -1], name

