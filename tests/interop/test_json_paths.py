"""Random JSON paths over random documents lead where they lead in the real packages: steps, filters, conditions, arithmetic.

Ranges of positions are chosen so that they end inside of the array: beyond it upstream never comes back.
"""

import json
import random

import pyarrow as pa
from testing import SEED, SOAK

CREATE = "lance.write_dataset(data, uri, data_storage_version='2.2'); return None"
# All rows at once where that works; otherwise one by one, since one row's error hides what the others give.
ANSWERS = """
dataset = lance.dataset(uri)
rows = dataset.count_rows()
def ask(text, where=None):
    return dataset.to_table(columns={"x": f"{function}(js, '{text}')", "i": "id"}, filter=where)["x"].to_pylist()
answers = []
for text in paths:
    text = text.replace("'", "''")
    try:
        answers.append(ask(text))
        continue
    except BaseException:
        pass
    answers.append([])
    for row in range(rows):
        try:
            answers[-1] += ask(text, f"id = {row}")
        except BaseException:
            answers[-1].append("refused")
return answers
"""
KEYS = ["a", "b", "c", "é"]
STRINGS = ["", "x", "xy", "y", "1"]


class Paths:
    def __init__(self, rng):
        self.rng = rng

    def document(self, depth=3):
        r = self.rng
        if depth == 0 or r.random() < 0.3:
            return r.choice([None, True, False, 0, 1, 2, -3, 7, 2.5, -0.5, 1e300, 2**63, 2**64 - 1, *STRINGS])
        if r.random() < 0.5:
            return [self.document(depth - 1) for _ in range(r.randint(1, 3))]
        return {key: self.document(depth - 1) for key in r.sample(KEYS, r.randint(0, 4))}

    def step(self, filters, depth):
        r = self.rng
        kinds = ["name"] * 5 + ["quoted", "bracket", "colon", "any", "element", "element", "positions", "deep"]
        kind = r.choice(kinds + ["filter"] * (2 if filters and depth > 0 else 0))
        key = r.choice(KEYS)
        if kind == "name":
            return "." + key
        if kind == "quoted":
            return f'."{key}"'
        if kind == "bracket":
            return f'["{key}"]'
        if kind == "colon":
            return ":" + key
        if kind == "any":
            return ".*"
        if kind == "element":
            return "[*]"
        if kind == "positions":
            places = ["0", "1", "2", "last", "last - 1", "last+1", "-1", "0 to 1", "0 to last", "1 to last"]
            return "[" + ", ".join(r.choice(places) for _ in range(r.randint(1, 2))) + "]"
        if kind == "deep":
            return ".**" + r.choice(["", "", "{0}", "{1}", "{ 2 }", "{0 to 1}", "{1 to last}"])
        return r.choice(["?(%s)", " ? (%s)", "? ( %s )"]) % self.condition(depth - 1, "@")

    def path(self, root, filters, depth=2, steps=3):
        return root + "".join(self.step(filters, depth) for _ in range(self.rng.randint(0, steps)))

    def operand(self, root):
        r = self.rng
        if r.random() < 0.6:
            return self.path(root if r.random() < 0.8 else "$", False, steps=2)
        return r.choice(["null", "true", "false", "0", "1", "2", "-3", "+1", ".5", "18446744073709551615", '"x"', '"xy"', '"1"'])

    def condition(self, depth, root):
        r = self.rng
        if depth > 0 and r.random() < 0.4:
            parts = [self.condition(depth - 1, root) for _ in range(2)]
            text = r.choice([" && ", " || ", "&&", "||"]).join(f"({p})" if r.random() < 0.5 else p for p in parts)
            return text
        form = r.random()
        if form < 0.2:
            return f"exists({self.path(root, True, depth=max(depth - 1, 0), steps=2)})"
        if form < 0.35:
            return f"{self.operand(root)} starts with {self.operand(root)}"
        return f"{self.operand(root)} {r.choice(['==', '!=', '<>', '<', '<=', '>', '>='])} {self.operand(root)}"

    def whole(self):
        r = self.rng
        form = r.random()
        if form < 0.55:
            return self.path("$" if r.random() < 0.8 else r.choice(["a", "b", ""]), True)
        if form < 0.8:
            # A sign in front is arithmetic.
            return next(text for text in iter(lambda: self.condition(2, "$"), None) if text[0] not in "+-")
        if form < 0.9:
            return f"{r.choice('+-')}{self.operand('$')}"
        return f"{self.operand('$').lstrip('+-')} {r.choice('+-*/%')} {self.operand('$')}"


def test_random_paths_lead_where_they_do_upstream(ours, theirs, tmp_path):
    differences = []
    answered = 0
    count = 40 if SOAK else 2
    for k in range(count):
        rng = random.Random(f"{SEED}-json-{k}")
        generator = Paths(rng)
        documents = [generator.document() for _ in range(12)]
        data = pa.table({"id": range(12), "js": pa.array([json.dumps(d) for d in documents], pa.json_())})
        uri = str(tmp_path / f"{k}.lance")
        theirs.run(CREATE, data=data, uri=uri)
        paths = [generator.whole() for _ in range(150)]
        for function in ("json_extract", "json_exists", "json_array_length", "json_extract_with_type"):
            some = paths if function == "json_extract" else paths[:40]
            real = theirs.run(ANSWERS, uri=uri, paths=some, function=function)
            mine = ours.run(ANSWERS, uri=uri, paths=some, function=function)
            for path, a, b in zip(some, mine, real, strict=True):
                answered += sum(x not in (None, "refused") for x in b)
                if a != b:
                    row = next(i for i in range(12) if a[i] != b[i])
                    differences.append(f"[{k}] {function} {path}\n    {json.dumps(documents[row])}\n    {a[row]!r} instead of {b[row]!r}")
    assert not differences, f"{len(differences)} differ; the first:\n" + "\n".join(differences[:10])
    assert answered > count * 400, "hardly a path leads anywhere: the test proves nothing"
