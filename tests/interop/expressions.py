"""Random expressions, typed so that most of them make sense, over a random table with nulls everywhere.

`Generator.value(kind, depth)` gives SQL text whose value has the kind: int (any width), double, float, text, bool,
date, timestamp, ints (list of int), texts (list of text). What the two engines are known to see differently is left
out here, not in the comparison.
"""

import datetime
import math
import random

import pyarrow as pa

KINDS = ["int", "double", "float", "text", "bool", "date", "timestamp", "ints", "texts"]
PATTERNS = ["a", "^a", "b$", "[A-C]", "a.c", r"\d", r"\w+ \w", "(a|b){2}"]
GROUP = r"'([a-c])', '<\1>'"
WORDS = ["", "a", "b", "abc", "Abc", "ABC", "x y", " pad ", "é", "äöü", "a%b", "a_b", "12", "-7", "1.5", "zebra", "Zoo"]


def table(rng, rows=150):
    def column(make, type_, nulls=0.25):
        return pa.array([None if rng.random() < nulls else make() for _ in range(rows)], type_)

    def double():
        return rng.choice([0.0, -0.0, 1.5, -2.25, 1e10, math.inf, -math.inf, math.nan, rng.randint(-50, 50) / 4])

    def stamp():
        return datetime.datetime(1960, 1, 1) + datetime.timedelta(seconds=rng.randrange(3_000_000_000), microseconds=rng.randrange(10**6))

    small = lambda: rng.randint(-6, 6)
    return pa.table(
        {
            "i": column(small, pa.int32()),
            "j": column(lambda: rng.choice([0, 1, 2, 3, 5]), pa.int32()),
            "k": column(lambda: rng.randint(-(10**9), 10**9), pa.int64()),
            "t": column(lambda: rng.randint(-128, 127), pa.int8()),
            "u": column(lambda: rng.randint(0, 255), pa.uint8()),
            "d": column(double, pa.float64()),
            "e": column(lambda: rng.randint(-20, 20) / 8, pa.float64()),
            "f": column(lambda: rng.randint(-20, 20) / 8, pa.float32()),
            "s": column(lambda: rng.choice(WORDS), pa.string()),
            "r": column(lambda: rng.choice(WORDS) + rng.choice(WORDS), pa.string()),
            "b": column(lambda: rng.random() < 0.5, pa.bool_()),
            "c": column(lambda: rng.random() < 0.5, pa.bool_()),
            "dt": column(lambda: stamp().date(), pa.date32()),
            "ts": column(stamp, pa.timestamp("us")),
            "li": column(lambda: [rng.choice([None, 1, 2, 3, 7]) for _ in range(rng.randrange(5))], pa.list_(pa.int32())),
            "ls": column(lambda: [rng.choice([None, *WORDS]) for _ in range(rng.randrange(4))], pa.list_(pa.string())),
            "st": column(lambda: {"x": rng.choice([None, small()]), "y": rng.choice(WORDS)}, pa.struct([("x", pa.int32()), ("y", pa.string())])),
        }
    )


COLUMNS = {
    "int": ["i", "j", "k", "t", "u", "st['x']"],
    "double": ["d", "e"],
    "float": ["f"],
    "text": ["s", "r", "st['y']"],
    "bool": ["b", "c"],
    "date": ["dt"],
    "timestamp": ["ts"],
    "ints": ["li"],
    "texts": ["ls"],
}


class Generator:
    def __init__(self, rng: random.Random, shared: bool = False):
        """`shared`: only what DuckDB understands in the same way."""
        self.rng = rng
        self.shared = shared

    def quoted(self, text):
        return "'" + text.replace("'", "''") + "'"

    def word(self):
        return self.quoted(self.rng.choice(WORDS))

    def literal(self, kind):
        r = self.rng
        if kind == "int":
            return str(r.choice([0, 1, 2, 3, -1, -5, 7, 100, r.randint(-1000, 1000)]))
        if kind in ("double", "float"):
            return r.choice(["0.0", "1.5", "-2.25", "0.5", "100.125", "-0.25"])
        if kind == "text":
            return self.word()
        if kind == "bool":
            return r.choice(["true", "false"])
        if kind == "date":
            return r.choice(["DATE '2000-02-29'", "DATE '1965-12-31'", "DATE '2024-07-04'"])
        if kind == "timestamp":
            return r.choice(["TIMESTAMP '2000-02-29 12:34:56'", "TIMESTAMP '1969-12-31 23:59:59.5'"])
        if kind == "ints":
            return "make_array(" + ", ".join(str(r.randint(0, 8)) for _ in range(r.randint(1, 3))) + ")"
        return "make_array(" + ", ".join(self.word() for _ in range(r.randint(1, 3))) + ")"

    def value(self, kind, depth):
        r = self.rng
        if depth <= 0 or r.random() < 0.15:
            return r.choice(COLUMNS[kind]) if r.random() < 0.75 else self.literal(kind)
        if r.random() < 0.12:
            return self.conditional(kind, depth)
        return getattr(self, "_" + kind)(depth - 1)

    def conditional(self, kind, depth):
        v = lambda: self.value(kind, depth - 1)
        b = lambda: self.value("bool", depth - 1)
        forms = [
            lambda: f"CASE WHEN {b()} THEN {v()} ELSE {v()} END",
            lambda: f"CASE WHEN {b()} THEN {v()} WHEN {b()} THEN {v()} END",
            lambda: f"coalesce({v()}, {v()})",
            lambda: f"nullif({v()}, {v()})" if kind not in ("ints", "texts") else v(),
        ]
        return self.rng.choice(forms)()

    def _int(self, depth):
        r = self.rng
        n, s = (lambda: self.value("int", depth)), (lambda: self.value("text", depth))
        forms = [
            lambda: f"({n()} {r.choice('+-*')} {n()})",
            lambda: f"length({s()})",
            lambda: f"strpos({s()}, {self.word()})",
            lambda: f"CASE {n()} WHEN 1 THEN 10 WHEN {n()} THEN 20 ELSE -1 END",
            lambda: f"date_part('{r.choice(['year', 'month', 'day', 'hour', 'minute', 'doy', 'week', 'quarter', 'dow'])}', {self.value('timestamp', depth)})",
            lambda: f"({n()} % {r.choice(['3', '-4', '7'])})",
        ]
        if not self.shared:
            forms += [
                lambda: f"({n()} / {n()})",
                lambda: f"({n()} / 3)",
                lambda: f"({n()} & {n()})",
                lambda: f"({n()} | {n()})",
                lambda: f"({n()} ^ {self.literal('int')})",  # upstream takes x ^ x for 0 where x is null
                lambda: f"(i << j)",
                lambda: f"(k >> j)",
                lambda: f"(-{r.choice(['i', 'j', 'k'])})",
                lambda: f"abs({r.choice(['i', 'j', 'k'])})",
                lambda: f"gcd({n()}, {n()})",
                lambda: f"ascii({s()})",
                lambda: f"octet_length({s()})",
                lambda: f"array_length({self.value('ints', depth)})",
                lambda: f"{self.value('ints', depth)}[{r.choice(['1', '2', '-1', 'i'])}]",
                lambda: f"array_position(li, {r.randint(1, 3)})",
                lambda: f"CAST({self.value(r.choice(['bool', 'int']), depth)} AS {r.choice(['int', 'bigint'])})",
                lambda: f"TRY_CAST({s()} AS int)",
                lambda: f"TRY_CAST({self.value('double', depth)} AS bigint)",
                lambda: f"greatest({n()}, {n()})",
                lambda: f"least({n()}, {n()}, {n()})",
                lambda: f"regexp_count({s()}, '[a-z]')",
                lambda: f"to_unixtime({self.value('timestamp', depth)})",
                lambda: f"array_max({self.value('ints', depth)})",
                lambda: f"EXTRACT({r.choice(['YEAR', 'MONTH', 'DAY', 'WEEK', 'SECOND'])} FROM {self.value(r.choice(['timestamp', 'date']), depth)})",
                lambda: f"(dt - {self.value('date', depth)})",
            ]
        return r.choice(forms)()

    def _double(self, depth):
        r = self.rng
        n = lambda: self.value(r.choice(["double", "int", "float"]), depth)
        d = lambda: self.value("double", depth)
        forms = [
            lambda: f"({d()} {r.choice('+-*')} {n()})",
            lambda: f"floor({d()})",
            lambda: f"ceil({d()})",
            lambda: f"abs({d()})",
        ]
        if not self.shared:
            forms += [
                lambda: f"({d()} / {n()})",
                lambda: f"round({d()})",
                lambda: f"trunc({d()})",
                lambda: f"sqrt({d()})",
                lambda: f"power({n()}, 2)",
                lambda: f"({d()} % 3)",
                lambda: f"CAST({n()} AS double)",
                lambda: f"(-{r.choice(['d', 'e'])})",
                lambda: f"{r.choice(['exp', 'ln', 'sin', 'cos', 'atan', 'cbrt', 'signum', 'degrees'])}({d()})",
                lambda: f"TRY_CAST({self.value('text', depth)} AS double)",
                lambda: f"greatest({d()}, {n()})",
                lambda: f"nanvl({d()}, {d()})",
                lambda: f"date_part('epoch', {self.value('timestamp', depth)})",
            ]
        return r.choice(forms)()

    def _float(self, depth):
        r = self.rng
        f = lambda: self.value("float", depth)
        return r.choice(
            [
                lambda: f"(f {r.choice('+-*')} {self.value('int', 0)})",
                lambda: f"(f {r.choice('+-*')} f)",
                lambda: "abs(f)",
                lambda: "floor(f)",
                lambda: "f",
            ]
        )()

    def _text(self, depth):
        r = self.rng
        s, n = (lambda: self.value("text", depth)), (lambda: self.value("int", depth))
        forms = [
            lambda: f"lower({s()})",
            lambda: f"upper({s()})",
            lambda: f"({s()} || {s()})",
            lambda: f"concat({s()}, {s()})",
            lambda: f"replace({s()}, {r.choice(['A', 'b', 'ab'])!r}, {self.word()})",
            lambda: f"reverse({s()})",
            lambda: f"trim({s()})",
            lambda: f"ltrim({s()})",
        ]
        if not self.shared:
            forms += [
                lambda: f"substr({s()}, {r.randint(-1, 4)})",
                lambda: f"substr({s()}, {r.randint(-1, 4)}, {r.randint(0, 3)})",
                lambda: f"left({s()}, {r.randint(-2, 4)})",
                lambda: f"right({s()}, {r.randint(-2, 4)})",
                lambda: f"lpad({s()}, {r.randint(0, 6)}, {self.word()})",
                lambda: f"rpad({s()}, {r.randint(0, 6)})",
                lambda: f"repeat({s()}, j)",
                lambda: f"split_part({s()}, {r.choice(['a', 'b', ' '])!r}, {r.choice([1, 2, -1])})",
                lambda: f"btrim({s()}, 'a ')",
                lambda: f"rtrim({s()})",
                lambda: f"initcap({s()})",
                lambda: f"translate({s()}, 'abc', 'xy')",
                lambda: f"CAST({self.value(r.choice(['int', 'double', 'float', 'bool', 'date', 'timestamp']), depth)} AS varchar)",
                lambda: f"regexp_replace({s()}, {GROUP}, '{r.choice(['', 'g', 'i', 'gi'])}')",
                lambda: f"concat_ws('-', {s()}, {s()}, {s()})",
                lambda: f"{self.value('texts', depth)}[{r.choice(['1', '2', '-1'])}]",
                lambda: f"array_to_string({self.value(r.choice(['texts', 'ints']), depth)}, ',')",
                lambda: f"to_hex(k)",
                lambda: f"chr(j + 65)",
                lambda: f"substr_index({s()}, 'b', {r.choice([1, -1])})",
                lambda: f"greatest({s()}, {s()})",
                lambda: f"OVERLAY({s()} PLACING {self.word()} FROM {r.randint(1, 3)})",
            ]
        return r.choice(forms)()

    def _bool(self, depth):
        r = self.rng
        b, s = (lambda: self.value("bool", depth)), (lambda: self.value("text", depth))
        kind = r.choice(["int", "double", "float", "text", "date", "timestamp"])
        # Upstream tells -0.0 from 0.0, DuckDB does not.
        if self.shared and kind in ("double", "float"):
            kind = "int"
        v = lambda: self.value(kind, depth)
        op = r.choice(["=", "<>", "<", "<=", ">", ">=", "!="])
        no = r.choice(["", "NOT "])
        forms = [
            lambda: f"({v()} {op} {v()})",
            lambda: f"({v()} {op} {v()})",
            lambda: f"({b()} AND {b()})",
            lambda: f"({b()} OR {b()})",
            lambda: f"(NOT {b()})",
            lambda: f"({v()} IS {no}NULL)",
            lambda: f"({b()} IS {no}{r.choice(['TRUE', 'FALSE'])})",
            lambda: f"({v()} IS {no}DISTINCT FROM {v()})",
            lambda: f"({v()} {no}BETWEEN {v()} AND {v()})",
            lambda: f"({v()} {no}IN ({self.literal(kind)}, {self.literal(kind)}{r.choice([', NULL', '', ', ' + self.value(kind, 0)])}))",
            lambda: f"({s()} {no}LIKE {self.quoted(r.choice(['a%', '%b', '%a%', '_b%', 'abc', '%', 'a_c', 'é%']))})",
            lambda: f"({s()} {no}ILIKE {self.quoted(r.choice(['A%', '%B', 'z%', '_b_']))})",
            lambda: f"contains({s()}, {self.word()})",
            lambda: f"starts_with({s()}, {self.word()})",
        ]
        if not self.shared:
            forms += [
                lambda: f"({b()} IS {no}UNKNOWN)",
                lambda: f"ends_with({s()}, {s()})",
                lambda: f"({s()} {r.choice(['~', '~*', '!~', '!~*'])} {self.quoted(r.choice(PATTERNS))})",
                lambda: f"regexp_like({s()}, 'A', 'i')",
                lambda: f"array_has({self.value('ints', depth)}, {self.value('int', depth)})",
                lambda: f"array_has({self.value('texts', depth)}, {self.word()})",
                lambda: f"array_has_any(li, {self.literal('ints')})",
                lambda: f"array_has_all(li, {self.literal('ints')})",
                lambda: f"array_has_any(ls, {self.literal('texts')})",
                lambda: f"isnan({self.value('double', depth)})",
                lambda: f"({self.value('double', depth)} {op} {self.value(r.choice(['double', 'int', 'float']), depth)})",
                lambda: f"({self.value('int', depth)} {op} {self.value(r.choice(['double', 'float']), depth)})",
                lambda: f"(dt {op} {self.value('timestamp', depth)})",
                lambda: f"contains_tokens({s()}, {self.word()})",
                lambda: f"empty({self.value('ints', depth)})",
            ]
        return r.choice(forms)()

    def _interval(self):
        r = self.rng
        return f"INTERVAL '{r.choice(['1 day', '3 hours', '1 month', '2 years', '1 month 3 days 2 seconds', '90 minutes', '-5 days'])}'"

    def _date(self, depth):
        r = self.rng
        d = lambda: self.value("date", depth)
        if self.shared:
            return d()
        return r.choice(
            [
                lambda: f"({d()} {r.choice('+-')} {self._interval()})",
                lambda: f"CAST({self.value('timestamp', depth)} AS date)",
                lambda: f"to_date({self.value('timestamp', depth)})",
                lambda: f"({d()} + {r.randint(0, 50)})",
                lambda: f"make_date(2000 + j, 1 + j, 10)",
            ]
        )()

    def _timestamp(self, depth):
        r = self.rng
        t = lambda: self.value("timestamp", depth)
        forms = [lambda: f"date_trunc('{r.choice(['year', 'month', 'week', 'day', 'hour', 'minute', 'second', 'quarter'])}', {t()})"]
        if not self.shared:
            forms += [
                lambda: f"({t()} {r.choice('+-')} {self._interval()})",
                lambda: f"date_bin(INTERVAL '{r.choice(['15 minutes', '1 day', '7 days'])}', {t()})",
            ]
        return r.choice(forms)()

    def _ints(self, depth):
        r = self.rng
        l, n = (lambda: self.value("ints", depth)), (lambda: self.value("int", depth))
        return r.choice(
            [
                lambda: f"make_array({n()}, {n()})",
                lambda: f"array_append(coalesce({l()}, make_array(1)), {n()})",
                lambda: f"array_prepend({n()}, coalesce({l()}, make_array(1)))",
                lambda: f"array_concat({l()}, {l()})",
                lambda: f"array_reverse({l()})",
                lambda: f"array_sort({l()})",
                lambda: f"coalesce(array_slice({l()}, {r.choice([1, 2, -2])}, {r.choice([1, 3, -1])}), make_array(0))",
                lambda: f"array_remove({l()}, 2)",
                lambda: f"array_remove_all({l()}, 1)",
                lambda: f"array_repeat({n()}, j)",
            ]
        )()

    def _texts(self, depth):
        r = self.rng
        l, s = (lambda: self.value("texts", depth)), (lambda: self.value("text", depth))
        return r.choice(
            [
                lambda: f"make_array({s()}, {s()})",
                lambda: f"array_append(coalesce({l()}, make_array('n')), {s()})",
                lambda: f"array_concat({l()}, {l()})",
                lambda: f"array_reverse({l()})",
                lambda: f"regexp_match({s()}, '([a-c])(.)')",
            ]
        )()

    def outermost(self):
        """A condition in the small dialect that upstream takes without a function around it."""
        r = self.rng
        kind = r.choice(["int", "double", "float", "text", "bool", "date", "timestamp"])

        def leaf():
            column = r.choice([c for c in COLUMNS[kind] if c != "u" and c != "t" and "[" not in c])
            form = r.randrange(4)
            if form == 0 and kind in ("int", "text"):
                # Two lists that are joined by OR: upstream simplifies NOT IN wrongly where the column is null.
                return f"{column} IN ({self.literal(kind)}, {self.literal(kind)})"
            if form == 1:
                return f"{column} IS {r.choice(['', 'NOT '])}NULL"
            if form == 2 and kind not in ("bool",):
                return f"{column} BETWEEN {self.literal(kind)} AND {self.literal(kind)}"
            return f"{column} {r.choice(['=', '<>', '<', '>=', '!=', '=='])} {self.literal(kind)}"

        text = leaf()
        for _ in range(r.randrange(3)):
            text = r.choice([f"{text} AND {leaf()}", f"({text}) OR {leaf()}", f"NOT ({text})"])
        return text
