"""Expressions of every kind, as the real packages answer them: the same types, values and rows."""

import expression_list
import expression_table
import pyarrow as pa
import pytest
from test_expressions_upstream import close, plain

CREATE = "lance.write_dataset(data, uri, data_storage_version='2.2'); return None"
ANSWERS = """
dataset = lance.dataset(uri)
answers = []
for text in expressions:
    try:
        if text.startswith("F:"):
            answers.append(dataset.to_table(columns=["j"], filter=text[2:])["j"].combine_chunks())
        else:
            answers.append(dataset.to_table(columns={"x": text, "j": "j"})["x"].combine_chunks())
    except BaseException as error:
        answers.append((type(error).__name__, str(error)[:300]))
return answers
"""


def shown(array):
    """Python values; zones that Python does not know are left out."""
    if pa.types.is_timestamp(array.type) and array.type.tz:
        return array.cast(pa.timestamp(array.type.unit, "UTC")).to_pylist()
    return array.to_pylist()


def differ(mine, real):
    if isinstance(mine, tuple):
        return f"{mine[0]}: {mine[1]}"
    if plain(mine.type).replace("binary_view", "binary") != plain(real.type).replace("binary_view", "binary"):
        return f"type {mine.type} instead of {real.type}"
    for row, (a, b) in enumerate(zip(shown(mine), shown(real), strict=True)):
        if not close(a, b, "float" in str(mine.type)):
            return f"row {row}: {a!r} instead of {b!r}"
    return None


@pytest.mark.parametrize("subject", expression_list.EXPRESSIONS)
def test_answers_are_those_of_upstream(ours, theirs, tmp_path, subject):
    uri = str(tmp_path / "t.lance")
    theirs.run(CREATE, data=expression_table.table(), uri=uri)
    expressions = expression_list.EXPRESSIONS[subject]
    real = theirs.run(ANSWERS, uri=uri, expressions=expressions)
    mine = ours.run(ANSWERS, uri=uri, expressions=expressions)
    wrong = []
    for text, a, b in zip(expressions, mine, real, strict=True):
        # The list holds what upstream answers: when it does not, the test is out of date.
        what = f"upstream: {b}" if isinstance(b, tuple) else differ(a, b)
        if what:
            wrong.append(f"{text}\n    {what}")
    assert not wrong, f"{len(wrong)} of {len(expressions)} differ:\n" + "\n".join(wrong[:20])
