"""A newest manifest that a power cut tore: older rows with a warning, and commits above the torn version."""

import os
import warnings

import glaive
import glaive.lance as lance
import pyarrow as pa
import pytest

DAMAGES = {"half": lambda b: b[: len(b) // 2], "zeros": lambda b: bytes(len(b)), "empty": lambda b: b""}


def tear(folder, version, how):
    path = f"{folder}/_versions/{2**64 - 1 - version:020}.manifest"
    with open(path, "rb") as f:
        whole = f.read()
    # A file of its own: published ones never change in place.
    os.unlink(path)
    with open(path, "wb") as f:
        f.write(DAMAGES[how](whole))
    return os.path.basename(path)


@pytest.fixture(params=DAMAGES)
def torn(request, tmp_path):
    """Folder of the table and name of the torn manifest: version 3; version 2 has rows 0 to 19."""
    folder = str(tmp_path / "t.lance")
    for i in range(3):
        lance.write_dataset(pa.table({"i": range(10 * i, 10 * i + 10)}), folder, mode="append")
    return folder, tear(folder, 3, request.param)


def test_dataset(torn):
    folder, name = torn
    with pytest.warns(UserWarning, match=name):
        ds = lance.dataset(folder)
    assert ds.version == 2 and ds.to_table()["i"].to_pylist() == list(range(20))
    with pytest.raises((OSError, ValueError), match="manifest"):
        lance.dataset(folder, version=3)
    with pytest.warns(UserWarning, match=name):
        assert lance.write_dataset(pa.table({"i": [50]}), folder, mode="append").version == 4
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        again = lance.dataset(folder)
    assert again.to_table()["i"].to_pylist() == [*range(20), 50]
    assert [v["version"] for v in again.versions()] == [1, 2, 4]


def test_table(torn):
    folder, name = torn
    db = glaive.connect(os.path.dirname(folder))
    with pytest.warns(UserWarning, match=name):
        table = db.open_table("t")
    assert table.to_arrow()["i"].to_pylist() == list(range(20))
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # told once per handle
        table.delete("i < 15")
    assert table.version == 4
    assert table.to_arrow()["i"].to_pylist() == list(range(15, 20))


def test_open_handle(tmp_path):
    db = glaive.connect(str(tmp_path))
    table = db.create_table("t", pa.table({"i": [1]}))
    table.add(pa.table({"i": [2]}))
    name = tear(str(tmp_path / "t.lance"), 2, "half")
    with pytest.warns(UserWarning, match=name):
        table.add(pa.table({"i": [3]}))
    assert table.version == 3 and table.to_arrow()["i"].to_pylist() == [1, 3]


def test_a_warning_made_an_error(torn):
    folder, name = torn
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(UserWarning, match=name):
            lance.dataset(folder)
