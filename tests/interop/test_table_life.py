"""Random lives of a table (append, update, delete, merge, columns, compaction, clean-up, restore), half of
the steps by the real packages in another process, against a plain model; failing ones are shrunk."""

import itertools
import os
import random
import shutil
import zlib

import pytest
import table_life
from testing import SOAK

COUNT = int(os.environ.get("GLAIVE_HISTORIES", 20_000 if SOAK else 12))
PER_TEST = min(COUNT, 20) if SOAK else 1


@pytest.mark.parametrize("group", range(COUNT // PER_TEST))
def test_life(group, sides, seed, tmp_path):
    numbers = itertools.count()

    def fresh_db():
        return str(tmp_path / str(next(numbers)))

    for number in range(group * PER_TEST, (group + 1) * PER_TEST):
        key = zlib.crc32(repr((seed, "life", number)).encode())
        rng = random.Random(key)
        history = table_life.draw(rng, sorted(sides), rng.randint(4, 12))
        db = fresh_db()
        failure = table_life.play(sides, history, db, key)
        if failure is not None:
            shortest, story = table_life.shrink(sides, history, key, fresh_db)
            pytest.fail(f"history {number} of seed {seed}: {len(shortest)} of {len(history)} steps fail\n{story}")
        shutil.rmtree(db)
