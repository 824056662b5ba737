"""The two sides of the interoperability tests.

`GLAIVE_TEST_OURS=upstream` puts the real packages on both sides: that checks the tests themselves.
"""

import os
import pathlib

import pytest
import upstream


@pytest.fixture(scope="session")
def theirs():
    if not pathlib.Path(upstream.PYTHON).exists():
        pytest.fail(f"{upstream.PYTHON} is missing: run tools/setup_python.sh")
    side = upstream.Child()
    yield side
    side.close()


@pytest.fixture(scope="session")
def ours():
    if os.environ.get("GLAIVE_TEST_OURS") == "upstream":
        side = upstream.Child(name="theirs")
    else:
        side = upstream.Ours()
    yield side
    side.close()


@pytest.fixture(scope="session")
def sides(ours, theirs):
    return {"ours": ours, "theirs": theirs}
