"""Transactions of each kind: what one side commits, the other reads, and rebases over it."""

import pyarrow as pa
import pytest

DATA = pa.table({"id": list(range(10)), "x": [i * 10 for i in range(10)]})
ROWS = "return sorted(zip(*lance.dataset(uri).to_table(columns=['id', 'x']).to_pydict().values()))"

CHANGES = {
    "update": "lance.dataset(uri).update({'x': '-1'}, where='id = 3')",
    "merge_insert": """
lance.dataset(uri).merge_insert('id').when_matched_update_all().when_not_matched_insert_all().execute(
    pa.table({'id': [4, 50], 'x': [-4, -50]}))
""",
    "add column": "lance.dataset(uri).add_columns({'y': 'x + 1'})",
    "drop column": "ds = lance.dataset(uri); ds.add_columns({'y': 'x + 1'}); ds.drop_columns(['y'])",
    "rename": "lance.dataset(uri).alter_columns({'path': 'x', 'name': 'x'})",
    "compact": """
lance.write_dataset(pa.table({'id': [60], 'x': [600]}), uri, mode='append')
lance.dataset(uri).optimize.compact_files()
""",
    "config": "lance.dataset(uri).update_config({'k': 'v'})",
    "index": "lance.dataset(uri).create_scalar_index('id', 'BTREE')",
}


@pytest.mark.parametrize("stable", [False, True])
@pytest.mark.parametrize("change", CHANGES)
def test_changes_of_theirs(change, stable, ours, theirs, tmp_path):
    """We read what they made, delete and append over it from a handle that is behind, and they agree on the rows."""
    uri = str(tmp_path / "t.lance")
    theirs.run("lance.write_dataset(data, uri, enable_stable_row_ids=stable)", data=DATA, uri=uri, stable=stable)
    kept = ours.run("return lance.dataset(uri)", uri=uri)
    theirs.run(CHANGES[change], uri=uri)
    expected = theirs.run(ROWS, uri=uri)
    assert ours.run(ROWS, uri=uri) == expected
    # Deletes retry by themselves, whatever came first; one after compaction chooses its rows anew.
    ours.run("kept.delete('id = 7')", kept=kept)
    expected = [row for row in expected if row[0] != 7]
    assert ours.run(ROWS, uri=uri) == expected
    assert theirs.run(ROWS, uri=uri) == expected
    ours.run("lance.write_dataset(pa.table({'id': [70], 'x': [700]}), uri, mode='append')", uri=uri)
    expected = sorted([*expected, (70, 700)])
    assert theirs.run(ROWS, uri=uri) == expected
    found = theirs.run("return lance.dataset(uri).to_table(filter='id = 8').num_rows", uri=uri)
    assert found == 1
