"""Which exception an expression raises: as lancedb 0.40.0 and pylance 14.0.2 do."""

import functools
import operator

import pyarrow as pa
import pytest

import glaive
from glaive import lance
from glaive.exceptions import EvaluationError
from glaive.expr import col, lit

ROWS = pa.table({"i": pa.array([0, 1, 2, None], pa.int32()), "s": ["a", "12", "", None], "l": [[1], [], None, [2]]})

# What is wrong in the expression, and what goes wrong with the rows.
REFUSED = ["nosuch = 1", "nosuch(i) = 1", "i =", "i", "CAST('x' AS int) = 1", "CAST(i AS nosuch) = 1", "EXISTS (SELECT 1)"]
FAILING = ["1 / i = 1", "1 / 0 = 1", "CAST(s AS int) = 1", "chr(-1) = 'a'", "count(i) = 1", "CAST(l AS int) = 1", "date_part('foo', now()) = 1"]


@pytest.fixture
def table(tmp_path):
    return glaive.connect(tmp_path).create_table("t", ROWS)


CALLS = {
    "count": lambda t, e: t.count_rows(e),
    "query": lambda t, e: t.search().where(e).to_arrow(),
    "delete": lambda t, e: t.delete(e),
    "update": lambda t, e: t.update(e, {"i": 5}),
    "merge": lambda t, e: t.merge_insert("i").when_not_matched_by_source_delete(e).execute(ROWS.slice(0, 0)),
}


@pytest.mark.parametrize("call", CALLS)
def test_lancedb(table, call):
    for text in REFUSED:
        with pytest.raises(ValueError) as caught:
            CALLS[call](table, text)
        assert not isinstance(caught.value, RuntimeError), text
    for text in FAILING:
        with pytest.raises(RuntimeError) as caught:
            CALLS[call](table, text)
        assert isinstance(caught.value, EvaluationError) and not isinstance(caught.value, ValueError), text
        assert caught.value.kind == "Evaluation"
    assert table.version == 1 and table.to_arrow().equals(ROWS)


def test_values(table):
    for text in ("1 / i", "CAST(s AS int)"):
        with pytest.raises(RuntimeError):
            table.search().select({"x": text}).to_arrow()
        with pytest.raises(RuntimeError):
            table.add_columns({"x": text})
        with pytest.raises(RuntimeError):
            table.update(values_sql={"i": text})
    with pytest.raises(ValueError):
        table.update(values_sql={"i": "CAST('x' AS int)"})
    assert table.version == 1


def test_pylance(tmp_path):
    ds = lance.write_dataset(ROWS, tmp_path / "d.lance")
    for text in FAILING:
        # Amid a scan ValueError, OSError elsewhere.
        with pytest.raises(ValueError):
            ds.to_table(filter=text)
        with pytest.raises(ValueError):
            list(ds.to_batches(filter=text))
        with pytest.raises(OSError):
            ds.count_rows(filter=text)
        with pytest.raises(OSError):
            ds.delete(text)
    assert ds.version == 1


def test_long_chains(table):
    """lancedb 0.40.0 ends the process at some hundreds; here chains have no end."""
    for n in (450, 3000):
        assert table.count_rows(" + ".join(["i"] * n) + f" = {n}") == 1
        assert table.count_rows(" || ".join(["s"] * n) + f" = '{'a' * n}'") == 1
        assert table.count_rows(" OR ".join(f"i < {-k}" for k in range(n)) + " OR i = 1") == 1
        assert table.count_rows(" AND ".join(f"i <> {k + 5}" for k in range(n))) == 3
        any_of = functools.reduce(operator.or_, [col("i") == lit(k) for k in range(n)])
        assert table.search().where(any_of).to_arrow().num_rows == 3
        total = functools.reduce(operator.add, [col("i")] * n)
        assert table.search().where(total == lit(n)).to_arrow().num_rows == 1
    table.update("i = 1", values_sql={"i": " + ".join(["i"] * 1000)})
    assert sorted(table.to_arrow()["i"].drop_null().to_pylist()) == [0, 2, 1000]
    with pytest.raises(ValueError, match="too deeply"):
        table.count_rows("NOT " * 100_000 + "i = 1")
