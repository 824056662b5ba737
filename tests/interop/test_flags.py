"""Feature flags: what is unknown is refused, by both sides alike; what is known stays usable."""

import manifests
import pyarrow as pa
import pytest
from upstream import SideError

WRITE = "lance.write_dataset(data, uri, mode=mode)"
READ = "return lance.dataset(uri).to_table().num_rows"
DATA = pa.table({"a": [1, 2, 3]})

UNKNOWN = [512, 4096, 8192, 1 << 17, 1 << 40, 1 << 63]


def outcome(side, code, **args):
    try:
        return side.run(code, **args), None
    except SideError as error:
        return None, error


@pytest.mark.parametrize("flag", UNKNOWN)
@pytest.mark.parametrize("word", ["reader", "writer", "both"])
def test_unknown_flags_are_refused(flag, word, sides, tmp_path):
    uri = str(tmp_path / "t.lance")
    sides["theirs"].run(WRITE, data=DATA, uri=uri, mode="create")
    manifests.set_flags(
        uri, reader=flag if word != "writer" else None, writer=flag if word != "reader" else None
    )
    before = sorted(p.name for p in tmp_path.rglob("*") if p.is_file())
    for name, side in sides.items():
        rows, error = outcome(side, READ, uri=uri)
        if word == "writer":
            assert rows == 3, f"{name}: {error}"
        else:
            assert error is not None, f"{name} opened a table with reader flag {flag}"
            assert "ValueError" in error.bases or "NotImplementedError" in error.bases, f"{name}: {error}"
            assert str(flag) in error.message, f"{name} does not name the flag: {error}"
        if word != "reader":
            _, error = outcome(side, WRITE, data=DATA, uri=uri, mode="append")
            assert error is not None, f"{name} wrote a table with writer flag {flag}"
    versions = [p for p in before if p.endswith(".manifest")]
    after = sorted(p.name for p in tmp_path.rglob("*.manifest"))
    assert after == versions, "a refused write left a version behind"


def test_mixed_manifest_names_are_refused(sides, tmp_path):
    uri = str(tmp_path / "t.lance")
    sides["theirs"].run(WRITE, data=DATA, uri=uri, mode="create")
    path = manifests.newest(uri)
    path.with_name("1.manifest").write_bytes(path.read_bytes())
    for name, side in sides.items():
        _, error = outcome(side, READ, uri=uri)
        assert error is not None, f"{name} opened a table with manifests of both namings"


def test_file_version_2_3_is_refused_by_name(ours, theirs, tmp_path):
    uri = str(tmp_path / "t.lance")
    theirs.run("lance.write_dataset(data, uri, data_storage_version='2.3')", data=DATA, uri=uri)
    _, error = outcome(ours, READ, uri=uri)
    if ours.name == "ours":
        assert error is not None and "2.3" in error.message, f"not refused by name: {error}"


def test_legacy_files_are_refused_by_name(ours, theirs, tmp_path):
    uri = str(tmp_path / "t.lance")
    theirs.run("lance.write_dataset(data, uri, data_storage_version='legacy')", data=DATA, uri=uri)
    _, error = outcome(ours, READ, uri=uri)
    if ours.name == "ours":
        assert error is not None and "0.1" in error.message, f"not refused by name: {error}"


def test_other_base_paths_are_refused_by_name(ours, theirs, tmp_path):
    """A shallow clone keeps its data in another table's folder: refused, not read wrongly."""
    uri = str(tmp_path / "t.lance")
    theirs.run(WRITE, data=DATA, uri=uri, mode="create")
    clone = str(tmp_path / "clone.lance")
    theirs.run("lance.dataset(uri).shallow_clone(clone, reference=1)", uri=uri, clone=clone)
    rows, error = outcome(ours, READ, uri=clone)
    assert rows == 3 or "base" in error.message, f"neither read nor refused by name: {error}"
