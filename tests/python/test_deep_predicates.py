"""Predicates that nest many operators: linear time, or a clear error."""

import glaive
import pyarrow as pa
import pytest


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    return glaive.connect(tmp_path_factory.mktemp("db")).create_table("t", pa.table({"id": pa.array([None, 1, 2], pa.int64())}))


@pytest.mark.parametrize(
    "predicate, rows",
    [
        ("id" + " is null" * 300, 0),
        ("id" + " is not null" * 301, 3),
        ("(" * 200 + "id = 1" + ") is unknown" * 200, 0),
        ("(" * 200 + "id = 1" + ") is true" * 200, 1),
        ("not " * 301 + "(id = 1)", 1),
        ("nullif(" * 7 + "id" + ", 7)" * 7 + " = 1", 1),
        ("(" * 7 + "id = 1" + ") between false and true" * 7, 2),
    ],
)
def test_deep_chains_take_no_time_that_doubles(table, predicate, rows):
    """Each operand is evaluated once, or the nesting is bounded."""
    assert table.count_rows(predicate) == rows


@pytest.mark.parametrize(
    "predicate",
    [
        "true" + " is distinct from true" * 40,
        "(id = 1)" + " not between false and true" * 40,
        "nullif(" * 40 + "id" + ", 1)" * 40 + " = 1",
        "case " * 40 + "id" + " when 1 then 2 else 3 end" * 40 + " = 3",
        "(" * 40 + "id = 1" + ") in (true, id = 3)" * 40,
    ],
)
def test_nesting_that_would_double_the_work_is_refused(table, predicate):
    with pytest.raises(ValueError, match="nested too deeply"):
        table.count_rows(predicate)
