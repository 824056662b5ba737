"""Tables written once by the real packages and kept in tests/golden: every row must come back as recorded.

`tests/golden/make_golden.py` made them; expected.json holds what the real packages read from them.
"""

import json
import pathlib
import shutil

import pytest
from upstream import SideError

GOLDEN = pathlib.Path(__file__).resolve().parent.parent / "golden"
EXPECTED = json.loads((GOLDEN / "expected.json").read_text())

OBSERVE = """
d = lance.dataset(path)
if version is not None:
    d = d.checkout_version(tuple(version) if isinstance(version, list) else version)
if count:
    return {"count": d.count_rows()}
t = d.to_table(columns=columns, filter=filter)
return {"names": t.column_names, "types": [str(f.type) for f in t.schema],
        "rows": [list(r.values()) for r in t.to_pylist()]}
"""

CASES = [
    pytest.param(name, check, id=f"{name}-{number}")
    for name, checks in EXPECTED.items()
    for number, check in enumerate(checks)
    if "indices" not in check
]


def on_branch(check):
    return isinstance(check.get("version"), list) or check.get("version") == "on-branch"


@pytest.mark.parametrize("name, check", CASES)
@pytest.mark.parametrize("side", ["ours", "theirs"])
def test_golden_table(name, check, side, sides, tmp_path):
    path = tmp_path / name
    shutil.copytree(GOLDEN / name, path)
    if on_branch(check):
        # A branch names its base by the absolute path at which the table was made.
        if side == "theirs":
            pytest.skip("needs the table at its original path")
        with pytest.raises(SideError) as caught:
            observe(sides[side], path, check)
        assert caught.value.kind != "Died"
        return
    assert json.loads(json.dumps(observe(sides[side], path, check))) == check["expect"]


def observe(side, path, check):
    return side.run(
        OBSERVE,
        path=str(path),
        version=check.get("version"),
        count="count" in check,
        columns=check.get("columns"),
        filter=check.get("filter"),
    )


def test_appending_to_a_golden_table(sides, tmp_path):
    """Each table that can be written goes on with a row of ours, and the real packages read it."""
    append = "lance.write_dataset(data, path, mode='append')"
    read = "return lance.dataset(path).to_table()"
    import pyarrow as pa

    for name in ["deletions", "stable_row_ids", "v1_names", "files_20"]:
        path = tmp_path / name
        shutil.copytree(GOLDEN / name, path)
        before = sides["theirs"].run(read, path=str(path))
        extra = before.slice(0, 2)
        sides["ours"].run(append, path=str(path), data=extra)
        after = pa.concat_tables([before, extra]).to_pylist()
        for label, side in sides.items():
            assert side.run(read, path=str(path)).to_pylist() == after, f"{name}: {label}"
