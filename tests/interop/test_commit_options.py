"""Commits of several appends at once, their locks and timeouts, and columns of a fragment with the rows that changed: as pylance."""

import pyarrow as pa
import pytest

BATCH = """
import contextlib
from datetime import timedelta
ds = lance.write_dataset(pa.table({"a": [1, 2]}), uri)
def append(values, version=None, **extra):
    fragment = lance.fragment.LanceFragment.create(uri, pa.table({"a": values}))
    return lance.Transaction(version or ds.version, lance.LanceOperation.Append([fragment]), **extra)
def outcome(run):
    try:
        return run()
    except BaseException as error:
        return [base.__name__ for base in type(error).__mro__]
answers = {}
made = lance.LanceDataset.commit_batch(ds, [append([3]), append([4, 5], transaction_properties={"k": "v"})])
answers["rows"] = made["dataset"].to_table()["a"].to_pylist(), made["dataset"].version, sorted(made)
merged = made["merged"]
answers["merged"] = merged.read_version, len(merged.operation.fragments), merged.transaction_properties
answers["by uri"] = lance.LanceDataset.commit_batch(uri, [append([6])])["dataset"].to_table()["a"].to_pylist()
answers["oldest"] = lance.LanceDataset.commit_batch(ds, [append([7], 3), append([8], 2)])["merged"].read_version
answers["no timeout"] = lance.LanceDataset.commit_batch(ds, [append([9])], commit_timeout=None)["dataset"].version
answers["timeout"] = lance.LanceDataset.commit_batch(ds, [append([9])], commit_timeout=timedelta(minutes=1))["dataset"].version
entered = []
@contextlib.contextmanager
def lock(version):
    entered.append(version)
    yield
lance.LanceDataset.commit_batch(ds, [append([10])], commit_lock=lock)
lance.LanceDataset.commit(ds, append([11]).operation, read_version=1, commit_lock=lock)
lance.write_dataset(pa.table({"a": [12]}), uri, mode="append", commit_lock=lock)
answers["locks"] = entered, lance.dataset(uri).version
errors = {
    "none": lambda: lance.LanceDataset.commit_batch(ds, []),
    "delete": lambda: lance.LanceDataset.commit_batch(ds, [lance.Transaction(1, lance.LanceOperation.Delete([], [], "a = 1"))]),
    "missing": lambda: lance.LanceDataset.commit_batch(uri + "-none", [append([6])]),
    "place": lambda: lance.LanceDataset.commit_batch(5, [append([6])]),
    "transaction": lambda: lance.LanceDataset.commit_batch(ds, [5]),
    "sequence": lambda: lance.LanceDataset.commit_batch(ds, iter([append([6])])),
    "negative": lambda: lance.LanceDataset.commit_batch(ds, [append([6])], commit_timeout=timedelta(-1)),
    "lock": lambda: lance.LanceDataset.commit(ds, append([6]).operation, read_version=1, commit_lock=5),
    "client alone": lambda: lance.dataset(namespace_client=object()),
    "id alone": lambda: lance.dataset(table_id=["a"]),
    "both": lambda: lance.write_dataset(pa.table({"a": [1]}), uri, namespace_client=object(), table_id=["a"]),
    "neither": lambda: lance.dataset(),
    "nowhere": lambda: lance.write_dataset(pa.table({"a": [1]})),
}
answers["errors"] = {name: outcome(run) for name, run in errors.items()}
answers["at last"] = lance.dataset(uri).version
return answers
"""
# Kinds by which users may catch them; upstream's OSError is what all of its engine's errors are.
KINDS = ("TypeError", "ValueError", "AttributeError", "OSError")


def test_batches_locks_and_timeouts(ours, theirs, tmp_path):
    mine = ours.run(BATCH, uri=str(tmp_path / "ours"))
    real = theirs.run(BATCH, uri=str(tmp_path / "theirs"))
    wrong, right = mine.pop("errors"), real.pop("errors")
    assert mine == real
    for name, kinds in right.items():
        wanted = next(kind for kind in KINDS if kind in kinds)
        assert wanted in wrong[name] or (wanted == "OSError" and "GlaiveError" in wrong[name]), (name, kinds, wrong[name])


UPDATE = """
ds = lance.write_dataset(pa.table({"id": list(range(10)), "n": [0] * 10, "s": list("abcdefghij")}), uri, enable_stable_row_ids=True)
ds.delete("id = 3")
fragment = lance.dataset(uri).get_fragment(0)
data = pa.table({"id": [1, 3, 7, 99], "n": [10, 30, 70, 990]})
metadata, fields, offsets = fragment.update_columns(data, left_on="id", with_offsets=True)
assert len(fragment.update_columns(data, left_on="id")) == 2
return metadata.to_json(), fields, offsets
"""
COMMIT = """
import json
metadata = lance.fragment.FragmentMetadata.from_json(json.dumps(metadata) if isinstance(metadata, dict) else metadata)
operation = lance.LanceOperation.Update(
    updated_fragments=[metadata], fields_modified=fields, update_mode="rewrite_columns", updated_fragment_offsets={0: offsets}
)
ds = lance.LanceDataset.commit(uri, operation, read_version=2)
columns = ["id", "n", "s", "_row_last_updated_at_version", "_row_created_at_version"]
return ds.to_table(columns=columns).to_pydict()
"""


@pytest.mark.parametrize("writer", ["ours", "theirs"])
@pytest.mark.parametrize("committer", ["ours", "theirs"])
def test_columns_updated_with_the_rows_that_changed(sides, tmp_path, writer, committer):
    uri = str(tmp_path / "t")
    metadata, fields, offsets = sides[writer].run(UPDATE, uri=uri)
    rows = sides[committer].run(COMMIT, uri=uri, metadata=metadata, fields=fields, offsets=offsets)
    assert rows["n"] == [0, 10, 0, 0, 0, 0, 70, 0, 0]
    assert rows["_row_last_updated_at_version"] == [1, 3, 1, 1, 1, 1, 3, 1, 1]
    assert rows["_row_created_at_version"] == [1] * 9


def test_sets_of_rows_as_bytes():
    from glaive.lance import _roaring

    many = list(range(5000)) + [70_000, 70_001, (1 << 32) - 1]
    assert _roaring.encode([]) == bytes([0x3A, 0x30, 0, 0, 0, 0, 0, 0])
    # cookie, containers, (key, size - 1) each, offsets, then a bitmap and two arrays
    encoded = _roaring.encode(reversed(many))
    assert len(encoded) == 8 + 3 * 8 + 8192 + 4 + 2
    assert encoded[8:20] == bytes([0, 0, 0x87, 0x13, 1, 0, 1, 0, 0xFF, 0xFF, 0, 0])
    with pytest.raises(ValueError):
        _roaring.encode([1 << 32])
