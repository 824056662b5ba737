"""Words of the language as names of columns, not in quotes: what upstream takes for a column is one here."""

WORDS = (
    "order group end from limit where when then else and or is in like ilike similar between having values set user index key "
    "year month day date time left right join on using offset first last row with all some any default desc asc table type"
).split()
MAKE = """
import pyarrow as pa
lance.write_dataset(pa.table({w: pa.array([1, 7, 7]) for w in words}), uri)
"""
COUNT = """
d, out = lance.dataset(uri), {}
for w in words:
    for sql in (f"{w} = 7", f"7 = {w}", f"{w} IS NOT NULL AND {w} > 1", f"({w}) = 7", f"{w} + 1 = 8", f"{w} IN (7)",
                f"{w} BETWEEN 2 AND 9 OR NOT {w} = 7", f"CASE WHEN {w} = 7 THEN {w} ELSE 0 END = 7"):
        try:
            out[sql] = d.count_rows(sql)
        except Exception:
            out[sql] = "refused"
return out
"""


def test_words_as_names(ours, theirs, tmp_path):
    uri = str(tmp_path / "t.lance")
    ours.run(MAKE, uri=uri, words=WORDS)
    want = theirs.run(COUNT, uri=uri, words=WORDS)
    got = ours.run(COUNT, uri=uri, words=WORDS)
    assert sum(count == 2 for count in want.values()) > 250  # upstream takes nearly all
    # A few that upstream trips over in one place or another are columns everywhere here.
    assert {sql: got[sql] for sql in want if want[sql] != "refused"} == {k: v for k, v in want.items() if v != "refused"}
    assert got["order = 7"] == got["group IN (7)"] == 2
