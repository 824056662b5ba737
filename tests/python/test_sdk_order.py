"""order_by, fast_search and analyze_plan of query builders; orders are compared with Python's own sort."""

import asyncio
import math
import random

import glaive
import pyarrow as pa
import pytest
from glaive.query import ColumnOrdering
from testing import SEED

NUMBERS = [float("nan"), None, -1.0, 0.0, 2.5, float("inf"), float("-inf")]


def by(name, ascending=True, nulls_first=False):
    return ColumnOrdering(column_name=name, ascending=ascending, nulls_first=nulls_first)


def rank(value, one):
    """A sort key: nulls at their end, NaN above all numbers, the rest by value or its opposite."""
    if value is None:
        return (0 if one.nulls_first else 2, 0)
    if isinstance(value, str):
        number = tuple(ord(c) if one.ascending else -ord(c) for c in value)
        return (1, number if one.ascending else (*number, 1))  # a prefix comes after what it begins when descending
    number = (1, 0) if math.isnan(value) else (0, value)
    return (1, number if one.ascending else (-number[0], -number[1]))


def rows_of(r, n):
    return [
        {"id": i, "f": r.choice(NUMBERS), "i": r.choice([None, 1, 2, 3]), "s": r.choice([None, "a", "ab", "b"]), "vector": [float(i), 0.0]}
        for i in range(n)
    ]


def expected(rows, ordering):
    for one in reversed(ordering):
        rows = sorted(rows, key=lambda row: rank(row[one.column_name], one))
    return [row["id"] for row in rows]


@pytest.fixture(scope="module")
def table():
    rows = rows_of(random.Random(SEED), 700)
    table = glaive.connect("memory://").create_table("t", rows[:300])
    table.add(rows[300:])
    table.rows = rows
    return table


@pytest.mark.parametrize("seed", range(12))
def test_sorted_as_python_sorts(table, seed):
    r = random.Random(f"{SEED}-{seed}")
    names = r.sample(["f", "i", "s"], r.randint(1, 3))
    ordering = [by(name, r.random() < 0.5, r.random() < 0.5) for name in names]
    want = expected(table.rows, ordering)
    assert table.search().order_by(ordering).to_arrow()["id"].to_pylist() == want
    limit, offset = r.randint(0, 800) or None, r.randint(0, 50)
    some = table.search().order_by(ordering).select(["id"]).limit(limit).offset(offset).with_row_id(True).to_arrow()
    assert some.column_names == ["id", "_rowid"]
    assert some["id"].to_pylist() == want[offset:][:limit]
    keep = [row for row in table.rows if row["i"] == 2]
    filtered = table.search().where("i = 2").order_by(ordering).select({"k": "id", "double": "id * 2"}).to_list()
    assert filtered == [{"k": i, "double": 2 * i} for i in expected(keep, ordering)]


def test_a_limit_keeps_few_rows(table, monkeypatch):
    from glaive import _order

    monkeypatch.setattr(_order, "_HELD", 50)
    ordering = [by("i", False), by("f")]
    assert table.search().order_by(ordering).limit(7).offset(3).to_arrow()["id"].to_pylist() == expected(table.rows, ordering)[3:10]


def test_nearest_rows_sorted_by_something_else(table):
    near = table.search([350.0, 0.0]).limit(9).to_list()
    found = table.search([350.0, 0.0]).limit(9).order_by([by("s"), by("id", False)]).select(["id"]).to_arrow()
    assert found.column_names == ["id", "_distance"]
    assert found["id"].to_pylist() == expected(near, [by("s")] + [by("id", False)])
    farthest_first = table.search([350.0, 0.0]).limit(5).order_by([by("_distance", False)]).to_list()
    assert [row["_distance"] for row in farthest_first] == sorted((row["_distance"] for row in farthest_first), reverse=True)


def test_async_and_takes_of_arguments(table):
    async def main():
        db = await glaive.connect_async("memory://")
        t = await db.create_table("t", table.rows)
        assert (await t.query().order_by([by("f")]).limit(5).to_arrow())["id"].to_pylist() == expected(table.rows, [by("f")])[:5]
        batches = await t.query().order_by([by("f")]).to_batches(max_batch_length=100)
        assert [i async for b in batches for i in [b.num_rows]] == [100] * 7

    asyncio.run(main())
    assert table.search().order_by(None).limit(2).to_arrow()["id"].to_pylist() == [0, 1]
    assert table.search().order_by([]).limit(2).to_arrow()["id"].to_pylist() == [0, 1]
    dicts = table.search().order_by([{"column_name": "id", "ascending": False}]).limit(1).to_list()
    assert dicts[0]["id"] == 699
    assert dict(table.search().order_by([by("f")]).to_query_object())["order_by"] == [by("f")]
    for wrong in ("f", [1], [{"name": "f"}]):
        with pytest.raises((TypeError, ValueError)):
            table.search().order_by(wrong)
    with pytest.raises(ValueError, match="nowhere"):
        table.search().order_by([by("nowhere")]).to_list()
    with pytest.raises(NotImplementedError, match="vector"):
        table.search().order_by([by("vector")]).to_list()


def test_nested_and_quoted_columns():
    rows = [{"k": i, "m": {"n": (i * 7) % 5}, "a b": -i} for i in range(5)]
    t = glaive.connect("memory://").create_table("t", rows)
    assert t.search().order_by([by("m.n")]).to_arrow()["k"].to_pylist() == [0, 3, 1, 4, 2]
    assert t.search().order_by([by("`a b`")]).select(["k"]).to_arrow().to_pylist() == [{"k": i} for i in (4, 3, 2, 1, 0)]


def test_plans(table):
    ordered = table.search().where("i = 1").order_by([by("f", False, True)]).limit(3)
    plan = ordered.explain_plan()
    assert plan.startswith("SortExec: TopK(fetch=3), expr=[f DESC NULLS FIRST]") and "full_filter=i = Int64(1)" in plan
    assert "GlobalLimitExec" not in plan  # the limit belongs to the sort
    analyzed = ordered.analyze_plan()
    assert "AnalyzeExec" in analyzed and "metrics=[output_rows=3" in analyzed and "SortExec" in analyzed
    assert "KNN" in table.search([1.0, 1.0]).analyze_plan()
    assert "output_rows=2" in table.take_offsets([1, 2]).analyze_plan()

    async def main():
        db = await glaive.connect_async("memory://")
        t = await db.create_table("t", table.rows)
        assert "output_rows=4" in await t.query().nearest_to([1.0, 1.0]).limit(4).analyze_plan()

    asyncio.run(main())


def test_fast_search_without_an_index_finds_nothing(table):
    found = table.search([1.0, 2.0]).fast_search().select(["id"]).to_arrow()
    assert found.num_rows == 0 and found.column_names == ["id", "_distance"]
