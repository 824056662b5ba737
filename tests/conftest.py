"""What all Python tests share: the seed of the run, the soak switch, the two sides."""

import pytest
from testing import SEED, SOAK


def pytest_report_header(config):
    return f"seed: {SEED} (GLAIVE_TEST_SEED={SEED} repeats this run){', soak' if SOAK else ''}"


def pytest_collection_modifyitems(config, items):
    if SOAK:
        return
    skip = pytest.mark.skip(reason="runs under make soak")
    for item in items:
        # Not `item.keywords`: they hold the names of the folders above the test, too.
        if item.get_closest_marker("soak"):
            item.add_marker(skip)


@pytest.fixture(scope="session")
def seed():
    return SEED


@pytest.fixture(scope="session")
def soak():
    return SOAK
