"""Random expressions give the same values, and filters the same rows, as the real packages and as DuckDB.

An expression that the real engine refuses is not compared. The reverse counts as a difference, unless our error says
that something is not supported, which must be rare.
"""

import itertools
import math
import random
import re

import pyarrow as pa
import pytest
from expressions import KINDS, Generator, table
from testing import SEED, SOAK

CREATE = "lance.write_dataset(data, uri); return None"
VALUES = """
dataset = lance.dataset(uri)
answers = []
for text in expressions:
    try:
        answers.append(dataset.to_table(columns={"x": text, "i": "i"})["x"].combine_chunks())
    except BaseException as error:
        answers.append((type(error).__name__, str(error)[:300]))
return answers
"""
ROWS = """
dataset = lance.dataset(uri)
answers = []
for text in expressions:
    try:
        answers.append(dataset.to_table(columns=["i"], filter=text, with_row_id=True)["_rowid"].to_pylist())
    except BaseException as error:
        answers.append((type(error).__name__, str(error)[:300]))
return answers
"""


# The real engine folds two lists without a common value into FALSE, also where the column is NULL, so that NOT of
# it finds rows. By SQL it is NULL there, as with DuckDB and here.
DISJOINT_LISTS = re.compile(r"\b(\w+) IN \([^()]*\) AND \1 IN \(")
# The same with `x = 1 AND x <> 1`.
OPPOSITES = re.compile(r"\b(\w+) ==? ([-\w.']+) AND \1 (<>|!=) \2")


def plain(type_):
    return str(type_).replace("string_view", "string").replace("large_string", "string")


def close(a, b, single):
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(close(x, y, single) for x, y in zip(a, b))
    if isinstance(a, float) and isinstance(b, float):
        if math.isnan(a) or math.isnan(b):
            return math.isnan(a) and math.isnan(b)
        return math.isclose(a, b, rel_tol=1e-5 if single else 1e-12)
    return type(a) is type(b) and a == b


def difference(mine, real):
    """Nothing, or what differs first."""
    if isinstance(mine, tuple):
        return f"{mine[0]}: {mine[1]}"
    if plain(mine.type) != plain(real.type):
        return f"type {mine.type} instead of {real.type}"
    single = "float" in str(mine.type)
    for row, (a, b) in enumerate(zip(mine.to_pylist(), real.to_pylist())):
        if not close(a, b, single):
            return f"row {row}: {a!r} instead of {b!r}"
    return None


def batches(name, share):
    """(seed, number of expressions), a table each."""
    count = (10_000 if SOAK else 100) * share
    per_table = 250
    return [(f"{SEED}-{name}-{k}", min(per_table, count - k)) for k in range(0, count, per_table)]


def report(differences, refused, total):
    assert not differences, f"{len(differences)} of {total} differ; the first:\n" + "\n".join(differences[:10])
    # A generator whose expressions the real engine mostly refuses would prove nothing.
    assert refused <= total * 0.35, f"the real engine refused {refused} of {total}"


def test_values_and_rows_are_those_of_upstream(ours, theirs, tmp_path):
    differences, refused, total, unsupported = [], 0, 0, 0
    for seed, count in batches("upstream", 2):
        rng = random.Random(seed)
        uri = str(tmp_path / f"{seed}.lance")
        theirs.run(CREATE, data=table(rng), uri=uri)
        generator = Generator(rng)
        # The call around an expression makes upstream read it with the whole of its grammar.
        values = [f"coalesce({generator.value(rng.choice(KINDS), rng.randint(1, 4))})" for _ in range(count // 2)]
        filters = [f"coalesce({generator.value('bool', rng.randint(1, 4))})" for _ in range(count // 4)]
        filters += [generator.outermost() for _ in range(count - count // 2 - count // 4)]
        for program, expressions in ((VALUES, values), (ROWS, filters)):
            real = theirs.run(program, uri=uri, expressions=expressions)
            mine = ours.run(program, uri=uri, expressions=expressions)
            for text, a, b in zip(expressions, mine, real):
                total += 1
                if isinstance(b, tuple):
                    refused += 1
                    continue
                if DISJOINT_LISTS.search(text) or OPPOSITES.search(text):
                    continue
                if isinstance(a, tuple) and "supported" in a[1]:
                    unsupported += 1
                    continue
                if program is VALUES:
                    what = difference(a, b)
                else:
                    what = None if a == b else f"rows {str(a)[:200]} instead of {str(b)[:200]}"
                if what:
                    differences.append(f"[{seed}] {text}\n    {what}")
    assert unsupported <= total * 0.01, f"{unsupported} of {total} are not supported"
    report(differences, refused, total)


def test_rows_are_those_of_duckdb(ours, tmp_path):
    duckdb = pytest.importorskip("duckdb")
    differences, refused, total = [], 0, 0
    for seed, count in batches("duckdb", 1):
        rng = random.Random(seed)
        data = table(rng)
        uri = str(tmp_path / f"{seed}.lance")
        ours.run(CREATE, data=data, uri=uri)
        generator = Generator(rng, shared=True)
        expressions = [generator.value("bool", rng.randint(1, 4)) for _ in range(count)]
        mine = ours.run(ROWS, uri=uri, expressions=expressions)
        connection = duckdb.connect()
        connection.register("source", data)
        connection.execute("CREATE TABLE data AS SELECT *, row_number() OVER () - 1 AS place FROM source")
        for text, a in zip(expressions, mine):
            total += 1
            try:
                rows = connection.execute(f"SELECT place FROM data WHERE {text} ORDER BY place").fetchall()
            except duckdb.Error:
                refused += 1
                continue
            if a != [row[0] for row in rows]:
                differences.append(f"[{seed}] {text}\n    rows {str(a)[:200]} instead of {str([r[0] for r in rows])[:200]}")
    report(differences, refused, total)


ZEROS = ["0.0", "(-0.0)", "round(-0.25)", "(0.0 * -1.0)", "coalesce(-0.0, d)", "coalesce(NULL, -0.0, d)"]
EDGES = [
    f"{a} {op} {b}"
    for a, op, b in itertools.product(["d", "e", "(d * 1.0)"], ["=", "<", ">=", "<>"], ["e", "(e * 1.0)", *ZEROS])
]
EDGES += [
    text.replace("ZERO", zero)
    for text in (
        "nullif(d, ZERO)",
        "nullif(ZERO, d)",
        "CASE d WHEN ZERO THEN 1 ELSE 2 END",
        "d IN (ZERO, 7.0)",
        "(d NOT BETWEEN ZERO AND 5.0)",
        "(ZERO < floor(abs(e)))",
        "(d IS DISTINCT FROM ZERO)",
    )
    for zero in ZEROS
]
EDGES += [
    f"{name}({made}, {needle})"
    for name in ("array_has", "array_contains", "list_has")
    for made in ("make_array(s, r)", "make_array('a', r)", "make_array('a', NULL)", "['a', 'q']", "make_array(s)", "l")
    for needle in ("'a'", "s", "r", "'nothing'")
]
EDGES += [
    f"array_has({made}, {needle})"
    for made in ("make_array(j, k)", "make_array(k, NULL)", "make_array(j, 4)", "make_array(d, NULL)", "make_array(k)")
    for needle in ("j", "k", "2", "j / 3", "k + 0", "d", "NULL")
]
EDGES += [f"{name}({number})" for name in ("signum", "degrees", "radians") for number in ("d", "e", "f", "-f", "d * 0.0")]
EDGES += ["CASE nullif(k, k) WHEN 1 / (k - k) THEN 1 ELSE 2 END", "CASE nullif(d, d) WHEN 1 THEN 1 WHEN k / 0 THEN 2 END"]
EDGES += ["cbrt(d)", "cbrt(d + 1.5)", "CAST(cbrt(e + 2.0) AS varchar)", "nullif(d, e)", "greatest(d, e)", "least(d, e)"]


def test_edges_are_those_of_upstream(ours, theirs, tmp_path):
    uri = str(tmp_path / "edges.lance")
    data = pa.table(
        {
            "i": range(6),
            "d": [-0.0, 0.0, 1.0, None, -2.5, 0.5],
            "e": [0.0, -0.0, -0.0, 0.0, None, 1.25],
            "f": pa.array([-0.0, 0.0, 1.0, None, -2.5, 0.3], pa.float32()),
            "j": pa.array([3, 2, None, 12, 6, 21], pa.int64()),
            "k": pa.array([1, 2, 3, None, 5, 6], pa.int16()),
            "s": ["a", None, "b", None, "", "c"],
            "r": [None, None, "a", "b", "c", "a"],
            "l": pa.array([["a"], [None], [], None, ["b", "a"], [None, "a"]], pa.list_(pa.utf8())),
        }
    )
    theirs.run(CREATE, data=data, uri=uri)
    texts = [f"coalesce({text})" for text in EDGES]
    compared = 0
    for text, a, b in zip(texts, *(side.run(VALUES, uri=uri, expressions=texts) for side in (ours, theirs))):
        if isinstance(b, tuple):
            continue
        compared += 1
        assert not isinstance(a, tuple), (text, a)
        assert repr(a.to_pylist()) == repr(b.to_pylist()), text  # the sign of a zero shows in its text
    assert compared > 150


NARROW_ZEROS = [
    form % test
    for test in (
        "f IN (0.0)", "f IN (1.5, -0.0)", "f NOT IN (1.5, 0.0)", "(f * i) IN (1.5, 0.0, 3.0, 4.0)", "(f * i) NOT IN (1.5, 0.0)",
        "f = 0.0", "f >= 0.0", "f < 0.0", "f BETWEEN 0.0 AND 1.0", "(f * i) = -0.0", "(i - 1) = -0.0", "(i - 1) <> trunc(-0.25)", "(i - 1) IN (5.5, -0.0)", "h = 0.0", "h IN (1.5, -0.0)", "d IN (1.5, -0.0)",
    )
    for form in ("coalesce(%s)", "coalesce(CASE WHEN %s THEN 1 ELSE 2 END)")
]  # fmt: skip


def test_zeros_below_zero_in_narrow_floats(ours, theirs, tmp_path):
    """Found by 20,000 random expressions: a float32 -0.0 is 0.0 for constants, also where the constant is a double."""
    values = [-0.0, 0.0, -1.0, 1.5, None]
    data = pa.table(
        {name: pa.array(values, kind) for name, kind in (("f", pa.float32()), ("d", pa.float64()))}
        | {"h": pa.array(values, pa.float16()), "i": pa.array([1, 1, 0, 1, 1], pa.int32())}
    )
    uri = str(tmp_path / "t.lance")
    theirs.run(CREATE, data=data, uri=uri)
    real = theirs.run(VALUES, uri=uri, expressions=NARROW_ZEROS)
    mine = ours.run(VALUES, uri=uri, expressions=NARROW_ZEROS)
    wrong = [f"{text}: {difference(a, b)}" for text, a, b in zip(NARROW_ZEROS, mine, real) if not isinstance(b, tuple) and difference(a, b)]
    assert not wrong and not all(isinstance(b, tuple) for b in real), "\n".join(wrong)


def test_signs_of_nan(ours, theirs, tmp_path):
    """Found by 20,000 random expressions: the sign of a number that is none is the NaN that is above all."""
    uri = str(tmp_path / "t.lance")
    theirs.run(CREATE, data=pa.table({"d": [-4.0, 4.0, None], "i": [1, 2, 3]}), uri=uri)
    forms = ["signum(%s) > 5.0", "%s > 5.0", "abs(%s) > 5.0", "nanvl(%s, 1.0) > 5.0", "(1.0 - %s) > 5.0", "round(%s) > 5.0"]
    texts = [f"coalesce({form % x})" for form in forms for x in ("sqrt(d)", "(-sqrt(d))", "ln(d)", "sqrt(-1.0)")]
    real = theirs.run(VALUES, uri=uri, expressions=texts)
    mine = ours.run(VALUES, uri=uri, expressions=texts)
    wrong = [f"{text}: {difference(a, b)}" for text, a, b in zip(texts, mine, real, strict=True) if difference(a, b)]
    assert not wrong, "\n".join(wrong)
