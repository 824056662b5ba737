"""Damaged bytes: every reader of a damaged file ends with a typed error or with rows, in bounded memory.

The short form damages a random sample of places, `make soak` flips a bit of every byte. A child process does the
reading, under a limit on its address space, so that a crash is seen and named.
"""

import json
import random

import crash_helpers
import pyarrow as pa
import pytest
from testing import SOAK

ROWS = 400

READER = """
import pathlib, resource, shutil
resource.setrlimit(resource.RLIMIT_AS, (6 << 30, 6 << 30))
uri, target, mode, seed, share = sys.argv[1], pathlib.Path(sys.argv[2]), sys.argv[3], int(sys.argv[4]), float(sys.argv[5])
rng = random.Random(seed)
good = target.read_bytes()
typed = (ValueError, OSError, RuntimeError, NotImplementedError, TypeError, KeyError, IndexError)
part = target.relative_to(uri)
def read(uri):
    d = lance.dataset(uri)
    t = d.to_table()
    if len(t):
        d.take([0, len(t) - 1])
    return t
whole = read(uri)
counts = {"same": 0, "other": 0, "refused": 0}
def attempt(label, data):
    print(label, flush=True)
    # A table of its own: files never change in place, so readers may keep what they read.
    copy = f"{uri}-{sum(counts.values())}"
    shutil.copytree(uri, copy, copy_function=os.link)
    os.unlink(f"{copy}/{part}")
    pathlib.Path(copy, part).write_bytes(data)
    try:
        t = read(copy)
    except typed:
        counts["refused"] += 1
        return
    finally:
        shutil.rmtree(copy)
    t.validate(full=True)  # what was read is at least a table
    counts["same" if t.equals(whole) else "other"] += 1
size = len(good)
if mode == "flip":
    for at in range(size):
        if share < 1 and rng.random() > share:
            continue
        bit = rng.randrange(8)
        attempt(f"bit {bit} of byte {at}", good[:at] + bytes([good[at] ^ (1 << bit)]) + good[at + 1:])
elif mode == "cut":
    # Most places inside long pages are alike: all of the end, where the metadata stands, and many of the rest.
    near, count = (4000, 3000) if share >= 1 else (0, 150)
    head = max(0, size - near)
    places = sorted(rng.sample(range(head), min(head, count))) + list(range(head, size))
    for at in places:
        attempt(f"cut at {at}", good[:at])
else:
    # Numbers near the ends of 32 and 64 bits, wherever eight bytes may be read as one.
    numbers = [2**31, 2**32 - 1, 2**32, 2**63 - 1, 2**63, 2**64 - 1, 2**64 - 64]
    places = range(max(0, size - 4000), size - 7) if share >= 1 else [rng.randrange(max(0, size - 4000), size - 7) for _ in range(300)]
    for at in places:
        number = rng.choice(numbers)
        attempt(f"{number} at {at}", good[:at] + number.to_bytes(8, "little") + good[at + 8:])
print("done " + json.dumps(counts), flush=True)
"""

WRITE = "lance.write_dataset(data, uri, data_storage_version=version)\nlance.dataset(uri).delete('id IN (3, 5)')"


def table(rng):
    """About 50 KB with every kind of layout in it."""
    words = ["alpha", "beta gamma", "delta", None]
    return pa.table(
        {
            "id": pa.array(range(ROWS), pa.int64()),
            "few": pa.array([rng.choice(words) for _ in range(ROWS)]),
            "text": pa.array([f"text number {i} {rng.random()}" for i in range(ROWS)]),
            "long": pa.array([None if i % 9 == 0 else "x" * rng.randrange(300) for i in range(40)] * (ROWS // 40)),
            "list": pa.array([None if i % 7 == 0 else [rng.randrange(99)] * (i % 4) for i in range(ROWS)], pa.list_(pa.int32())),
            "struct": pa.array([None if i % 5 == 0 else {"a": i, "b": [str(i)]} for i in range(ROWS)]),
            "vector": pa.array([[rng.random()] * 16 for _ in range(ROWS)], pa.list_(pa.float32(), 16)),
            "constant": pa.array([7] * ROWS, pa.int32()),
            "float": pa.array([rng.gauss(0, 1) for _ in range(ROWS)]),
        }
    )


@pytest.mark.parametrize("mode", ["flip", "cut", "number"])
@pytest.mark.parametrize("what, version", [("data", "2.0"), ("data", "2.1"), ("data", "2.2"), ("manifest", "2.2"), ("deletions", "2.2")])
def test_damaged_file(what, version, mode, ours, seed, tmp_path):
    rng = random.Random(seed)
    uri = str(tmp_path / "t.lance")
    data = table(rng)
    if version == "2.0":
        data = data.drop_columns(["struct"])
    ours.run(WRITE, data=data, uri=uri, version=version)
    folder = {"data": "data", "manifest": "_versions", "deletions": "_deletions"}[what]
    target = sorted(p for p in (tmp_path / "t.lance" / folder).iterdir() if p.suffix != ".json")[0]
    size = target.stat().st_size
    share = 1 if SOAK else min(1, 600 / size)
    child = crash_helpers.start(READER, uri, target, mode, seed, share)
    out, errors = child.communicate(timeout=7200)
    lines = out.splitlines()
    last = lines[-1] if lines else ""
    assert child.returncode == 0, f"status {child.returncode} with {last}\n{errors[-3000:]}"
    counts = json.loads(last.removeprefix("done "))
    assert sum(counts.values()) >= 100, counts
    if mode != "flip":
        # A newest manifest that lost its end is passed over, as after a power cut.
        passed_over = what == "manifest" and mode == "cut" and counts["same"] == 0
        assert counts["refused"] > 0 or passed_over, counts
