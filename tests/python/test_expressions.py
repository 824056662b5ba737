"""Expressions: what the real packages answered for each of a list, the builder of `glaive.expr`, pyarrow's expressions."""

import datetime
import decimal
import json
import math
import pathlib

import glaive
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from glaive import lance
from glaive.expr import Expr, col, func, lit

GOLDEN = json.loads((pathlib.Path(__file__).parent.parent / "golden" / "expressions.json").read_text())
N = None


def golden_table():
    D = decimal.Decimal
    document = '{"a":1,"b":[1,2.5,null,true,"x"],"c":{"d":"e"},"f":1.5,"s":"12","t":true}'
    return pa.table(
        {
            "i": pa.array([1, 2, N, -4], pa.int32()),
            "i8": pa.array([1, -128, N, 127], pa.int8()),
            "u8": pa.array([1, 255, N, 0], pa.uint8()),
            "i16": pa.array([1, -5, N, 7], pa.int16()),
            "u16": pa.array([1, 5, N, 7], pa.uint16()),
            "u32": pa.array([1, 5, N, 4294967295], pa.uint32()),
            "u64": pa.array([1, 18446744073709551615, N, 0], pa.uint64()),
            "l": pa.array([9223372036854775807, -7, N, 0], pa.int64()),
            "h": pa.array([np.float16(0.5), np.float16(1), N, np.float16(2.5)], pa.float16()),
            "f": pa.array([1.5, math.nan, N, -0.0], pa.float32()),
            "d": pa.array([0.1, -2.5, N, math.inf], pa.float64()),
            "b": pa.array([True, False, N, True]),
            "s": pa.array(["Abc", "B%é x", N, ""]),
            "s2": pa.array(["b", "x", N, N]),
            "ls": pa.array(["a", "b", N, "c"], pa.large_string()),
            "bin": pa.array([b"a", b"\xca\xfe", N, b""]),
            "fsb": pa.array([b"ab", b"\xca\xfe", N, b"zz"], pa.binary(2)),
            "dt": pa.array([18262, 18628, N, -3653], pa.date32()),
            "t64": pa.array([1000000, 86399999999, N, 0], pa.time64("us")),
            "ts": pa.array([1577836800123456, 1609502400000000, N, -315619200000000], pa.timestamp("us")),
            "tn": pa.array([1577836800123456789, 1609502400000000000, N, -1], pa.timestamp("ns")),
            "tz": pa.array([1577836800000000, 1609502400000000, N, 0], pa.timestamp("us", "UTC")),
            "dur": pa.array([1000000, 5, N, -1], pa.duration("us")),
            "dec": pa.array([D("1.50"), D("2.00"), N, D("-3.25")], pa.decimal128(10, 2)),
            "dic": pa.array(["x", "y", N, "x"]).dictionary_encode(),
            "st": pa.array(
                [{"x": 1, "Y": "q"}, {"x": 2, "Y": N}, N, {"x": N, "Y": "z"}], pa.struct([("x", pa.int32()), ("Y", pa.string())])
            ),
            "li": pa.array([[1, 2], [], N, [3, N]], pa.list_(pa.int32())),
            "lst": pa.array([["a", "b"], [], N, ["c", N]], pa.list_(pa.string())),
            "v": pa.array([[1, 2], [0, 0], N, [3, 4]], pa.list_(pa.float32(), 2)),
            "js": pa.array([document, "[1,2]", N, "3"], pa.json_()),
            "sj": pa.array(['{"a":1}', "[1,2]", N, "x"]),
            "CamelCase": pa.array([1, 2, 3, 4]),
            "a b": pa.array([1, 2, 3, 4]),
        }
    )


def shown(value):
    """As in the file: what JSON cannot say is text."""
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, bytes):
        return "x" + value.hex()
    if isinstance(value, (list, tuple)):
        return [shown(v) for v in value]
    if isinstance(value, dict):
        return {k: shown(v) for k, v in value.items()}
    return value if value is None or isinstance(value, (int, bool, str)) else str(value)


def same(a, b, digits):
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(same(x, y, digits) for x, y in zip(a, b))
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(same(a[k], b[k], digits) for k in a)
    if a == b:
        return True
    try:
        return math.isclose(float(a), float(b), rel_tol=digits)
    except (TypeError, ValueError):
        return False


@pytest.fixture(scope="module")
def golden(tmp_path_factory):
    return lance.write_dataset(golden_table(), str(tmp_path_factory.mktemp("golden") / "t.lance"))


def test_golden_values(golden):
    wrong = []
    for text, type_, value in GOLDEN:
        try:
            if text.startswith("F:"):
                found = ("filter", golden.to_table(columns=["CamelCase"], filter=text[2:])["CamelCase"].to_pylist())
            else:
                column = golden.to_table(columns={"x": text})["x"]
                found = (str(column.type), shown(column.to_pylist()))
        except Exception as error:
            wrong.append(f"{text}: {error}")
            continue
        # Strings are strings here, where upstream has views of them.
        views = [t.replace("string_view", "string").replace("large_string", "string") for t in (found[0], type_)]
        digits = 2e-15 if "float" not in type_ else 1e-6
        if views[0] != views[1] or not same(found[1], value, digits):
            wrong.append(f"{text}: {found} instead of {(type_, value)}")
    assert not wrong, f"{len(wrong)} of {len(GOLDEN)}:\n" + "\n".join(wrong[:20])


@pytest.mark.parametrize(
    "text, part",
    [
        ("nosuch(i)", "there is no function 'nosuch'"),
        ("lowr(s)", "did you mean 'lower'"),
        ("sum(i)", "aggregate"),
        ("upper(i)", "needs a string"),
        ("abs(i, 1)", "takes 1 arguments"),
        ("i +", "position 4"),
        ("s + 1", "needs numbers"),
        ("CAST(st AS int)", "cannot be cast"),
        ("nope > 1", "no column 'nope'"),
        ("json_extract(js, '$.')", "not a JSON path"),
        ("regexp_like(s, '(')", "regular expression"),
        ("i / 0", "division by zero"),
        ("repeat(s, 1000000000)", "too much"),
    ],
)
def test_errors_say_what_is_wrong(golden, text, part):
    with pytest.raises(ValueError, match=".*") as caught:
        golden.to_table(columns={"x": text})
    assert part in str(caught.value)


def test_what_is_not_supported_is_named(golden):
    for text, part in [("st_area(s)", "st_area"), ("st_point(1, 2)", "st_point"), ("arrow_field(i)", "arrow_field")]:
        with pytest.raises(NotImplementedError, match=part):
            golden.to_table(columns={"x": text})


def test_errors_of_rows_that_nobody_asks_for_do_not_count(golden):
    table = lance.write_dataset(pa.table({"n": [0, 1, 2, N]}), golden.uri + "-zero")
    values = table.to_table(columns={"x": "CASE WHEN n <> 0 THEN 10 / n ELSE -1 END"})["x"].to_pylist()
    assert values == [-1, 10, 5, -1]
    assert table.count_rows("n <> 0 AND 10 / n > 5") == 1
    assert table.count_rows("n = 0 OR n IS NULL OR 10 / n > 5") == 3


@pytest.mark.parametrize(
    "built, text",
    [
        (col("age") > 18, "(age > 18)"),
        (col("firstName") > lit(18), "(`firstName` > 18)"),
        ((col("a") == 1) | (col("b") == 2), "((a = 1) OR (b = 2))"),
        (~(col("active") == True), "NOT (active = true)"),  # noqa: E712
        (col("a").lower(), "lower(a)"),
        (col("a").contains("x"), "contains(a, 'x')"),
        (col("id").isin([1, 2]), "id IN (1, 2)"),
        (col("id").isin([]), "false"),
        (col("a").cast("int8"), "arrow_cast(a, 'Int8')"),
        (col("a").cast(pa.timestamp("us", "UTC")), "arrow_cast(a, 'Timestamp(µs, \"UTC\")')"),
        (lit(1e20), "100000000000000000000.0"),
        (lit(1e-7), "0.0000001"),
        (lit(math.inf), "arrow_cast('inf', 'Float64')"),
        (lit(b"\xca\xfe"), "X'CAFE'"),
        (lit("a'b"), "'a''b'"),
        (lit(datetime.date(2020, 1, 1)), "CAST('2020-01-01' AS DATE)"),
        (lit(datetime.datetime(2020, 1, 1, 2, 3, 4)), "CAST('2020-01-01 02:03:04' AS TIMESTAMP)"),
        (lit(decimal.Decimal("1.50")), "arrow_cast('1.50', 'Decimal128(3, 2)')"),
        (1 - col("a"), "(1 - a)"),
        (col("a") * 2 / 3, "((a * 2) / 3)"),
        (col("a b"), "`a b`"),
        (col("select"), "`select`"),
        (col("a`b"), "`a``b`"),
        (True & col("a"), "(true AND a)"),
        (func("concat", col("a"), "x"), "concat(a, 'x')"),
    ],
)
def test_builder_writes_sql_as_upstream_does(built, text):
    assert built.to_sql() == text
    assert repr(built) == f"Expr({text})"


def test_builder_refuses():
    with pytest.raises(ValueError, match="unknown function"):
        func("nope", 1)
    with pytest.raises(ValueError, match="unsupported data type"):
        col("a").cast("nope")
    with pytest.raises(TypeError, match="NoneType"):
        col("a") == None  # noqa: B015, E711
    with pytest.raises(TypeError, match="unhashable"):
        hash(col("a"))


def test_every_function_of_the_builder_is_one_of_the_engine(golden):
    from glaive.expr import _FUNCTIONS

    for name in sorted(_FUNCTIONS):
        try:
            golden.to_table(columns={"x": f"{name}(i)"})
        except (ValueError, NotImplementedError) as error:
            assert "there is no function" not in str(error), name


def test_expressions_where_sql_is_taken(tmp_path):
    table = glaive.connect(tmp_path).create_table("t", pa.table({"id": [1, 2, 3, N], "name": ["Ann", "bob", N, "Cid"]}))
    assert table.search().where(col("id") > 1).to_arrow()["id"].to_pylist() == [2, 3]
    assert table.search().where(col("id") > 1).where("name IS NOT NULL").to_arrow()["id"].to_pylist() == [2]
    found = table.search().where(col("name").lower() == "ann").select({"twice": col("id") * 2, "low": col("name").lower()}).to_list()
    assert found == [{"twice": 2, "low": "ann"}]
    assert table.count_rows(col("id").isin([1, 3])) == 2
    table.delete((col("id") == 1) | (col("name") == "Cid"))
    assert table.to_arrow()["id"].to_pylist() == [2, 3]
    assert isinstance(col("id") == 1, Expr)


F = pc.field


@pytest.mark.parametrize(
    "expression",
    [
        F("i") > 1,
        (F("i") > 1) & (F("s") == "Abc"),
        ~(F("b")),
        F("i").isin([1, -4]),
        F("s").isin(["Abc", ""]),
        F("i").is_null(),
        F("i").is_valid(),
        F("ts") > datetime.datetime(2020, 6, 1),
        F("dt") == datetime.date(2020, 1, 1),
        F("st", "x") == 1,
        pc.starts_with(F("s"), "A"),
        F("i") + 1 > 2,
        F("dec") > decimal.Decimal("1.5"),
        F("bin") == b"a",
        pc.if_else(F("b"), 1, 2) == 1,
        F("u8") == 255,  # has no Substrait form: evaluated by pyarrow
        pc.utf8_lower(F("s")) == "abc",
    ],
)
def test_pyarrow_expressions_filter_as_in_pyarrow(golden, expression):
    real = golden_table().drop_columns(["js"]).filter(expression)["CamelCase"].to_pylist()
    assert golden.to_table(columns=["CamelCase"], filter=expression)["CamelCase"].to_pylist() == real
    assert golden.scanner(filter=expression).count_rows() == len(real)


def test_pyarrow_expressions_reach_the_engine(golden):
    plan = golden.scanner(filter=(F("i") > 1) & (F("s") == "x")).explain_plan()
    assert "i > Int32(1)" in plan
