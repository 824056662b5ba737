"""kill -9 of a process that compacts and cleans up: no version that is left has lost a file or a row."""

import os
import random
import signal
import time
import zlib

import crash_helpers
import pytest
from testing import SOAK

WORKER = """
import datetime
uri = sys.argv[1]
def rows(i):
    return pa.table({"id": pa.array(range(i * 10, i * 10 + 10), pa.int64())})
lance.write_dataset(rows(0), uri)
print("ready", flush=True)
i = 1
while True:
    for _ in range(3):
        lance.write_dataset(rows(i), uri, mode="append")
        i += 1
    lance.dataset(uri).delete(f"id = {i * 10 - 5}")
    print(i, flush=True)
    lance.dataset(uri).optimize.compact_files(target_rows_per_fragment=100)
    lance.dataset(uri).cleanup_old_versions(datetime.timedelta(0), delete_unverified=i % 2 == 0)
"""

READ = """
found = []
for v in lance.dataset(uri).versions():
    found.append(sorted(lance.dataset(uri, version=v["version"]).to_table()["id"].to_pylist()))
return found
"""
FINISH = """
import datetime
lance.dataset(uri).cleanup_old_versions(datetime.timedelta(0), delete_unverified=True)
ds = lance.dataset(uri)
return sorted(f.path for fragment in ds.get_fragments() for f in fragment.data_files())
"""


def model(done):
    """Ids after the rounds that end with `done` appends."""
    ids = set(range(done * 10))
    for i in range(4, done + 1, 3):
        ids.discard(i * 10 - 5)
    return ids


@pytest.mark.parametrize("number", range(150 if SOAK else 6))
def test_killed_upkeep(number, sides, ours, seed, tmp_path):
    rng = random.Random(zlib.crc32(repr((seed, "kill upkeep", number)).encode()))
    uri = str(tmp_path / "t.lance")
    child = crash_helpers.start(WORKER, uri)
    assert child.stdout.readline() == "ready\n", child.stderr.read()
    done = 1
    for _ in range(rng.randrange(1, 12)):
        done = int(child.stdout.readline())
    time.sleep(rng.random() * 0.03)
    os.kill(child.pid, signal.SIGKILL)
    rest, errors = crash_helpers.last_words(child)
    assert "Traceback" not in errors, errors
    for line in rest.splitlines(keepends=True):
        if line.endswith("\n"):
            done = int(line)
    least, most = model(done), model(done + 3)
    for name, side in sides.items():
        found = side.run(READ, uri=uri)
        newest = found[-1]
        assert len(set(newest)) == len(newest), f"{name}: rows twice"
        assert least - {done * 10 + 25} <= set(newest) <= most | set(range(done * 10, done * 10 + 30)), f"{name}: other rows"
    named = ours.run(FINISH, uri=uri)
    assert sorted(os.listdir(uri + "/data")) == named
    for name, side in sides.items():
        assert set(side.run(READ, uri=uri)[-1]) == set(newest), name
