"""What all Python tests share: the seed of the run, the soak switch, the two sides."""

import os
import random

import pytest

SOAK = os.environ.get("GLAIVE_SOAK", "") not in ("", "0")
# Workers of one run inherit the variable, so that all of them generate the same cases.
SEED = int(os.environ.setdefault("GLAIVE_TEST_SEED", str(random.SystemRandom().randrange(1 << 24))))


def pytest_report_header(config):
    return f"seed: {SEED} (GLAIVE_TEST_SEED={SEED} repeats this run){', soak' if SOAK else ''}"


def pytest_collection_modifyitems(config, items):
    if SOAK:
        return
    skip = pytest.mark.skip(reason="runs under make soak")
    for item in items:
        if "soak" in item.keywords:
            item.add_marker(skip)


@pytest.fixture(scope="session")
def seed():
    return SEED


@pytest.fixture(scope="session")
def soak():
    return SOAK
