"""Random lives of a table (append, update, delete, merge, columns, compaction, clean-up, restore), half of
the steps by the real packages in another process, against a plain model; failing ones are shrunk."""

import itertools
import os
import random
import zlib

import pytest
import table_life
from testing import SOAK

COUNT = int(os.environ.get("GLAIVE_HISTORIES", 2000 if SOAK else 12))
PER_TEST = 10 if SOAK else 1


@pytest.mark.parametrize("group", range(COUNT // PER_TEST))
def test_life(group, sides, seed, tmp_path):
    numbers = itertools.count()

    def fresh_db():
        return str(tmp_path / str(next(numbers)))

    for number in range(group * PER_TEST, (group + 1) * PER_TEST):
        key = zlib.crc32(repr((seed, "life", number)).encode())
        history = table_life.draw(random.Random(key), sorted(sides), 12)
        failure = table_life.play(sides, history, fresh_db(), key)
        if failure is not None:
            shortest, story = table_life.shrink(sides, history, key, fresh_db)
            pytest.fail(f"history {number} of seed {seed}: {len(shortest)} of {len(history)} steps fail\n{story}")
