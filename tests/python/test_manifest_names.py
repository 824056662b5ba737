"""Manifests of the old naming scheme brought to the new one."""

import asyncio
import os
import pathlib
import subprocess

import glaive
import glaive.lance as lance
import pyarrow as pa
import pytest

UPSTREAM = pathlib.Path(__file__).resolve().parents[2] / ".venv-upstream" / "bin" / "python"
OLD = {"new_table_enable_v2_manifest_paths": "false"}


def names(path):
    return sorted(n for n in os.listdir(path / "t.lance" / "_versions") if n.endswith(".manifest"))


def test_a_table_lives_on_under_the_new_names(tmp_path):
    db = glaive.connect(tmp_path)
    table = db.create_table("t", [{"a": 1}], storage_options=OLD)
    table.add([{"a": 2}])
    other = glaive.connect(tmp_path).open_table("t")  # a handle that knows the old names
    assert names(tmp_path) == ["1.manifest", "2.manifest"] and not table.uses_v2_manifest_paths()
    for _ in range(2):
        table.migrate_v2_manifest_paths()
        assert all(len(n) == len("18446744073709551614.manifest") for n in names(tmp_path)) and table.uses_v2_manifest_paths()
    other.add([{"a": 3}])
    table.add([{"a": 4}])
    assert len(names(tmp_path)) == 4 and all(len(n) > 20 for n in names(tmp_path))
    assert sorted(glaive.connect(tmp_path).open_table("t").to_arrow()["a"].to_pylist()) == [1, 2, 3, 4]
    table.checkout(1)
    assert table.to_arrow()["a"].to_pylist() == [1]


def test_what_was_left_halfway_is_finished(tmp_path):
    table = glaive.connect(tmp_path).create_table("t", [{"a": 1}], storage_options=OLD)
    table.add([{"a": 2}])
    versions = tmp_path / "t.lance" / "_versions"
    os.rename(versions / "1.manifest", versions / f"{2**64 - 2}.manifest")
    table.migrate_v2_manifest_paths()
    assert glaive.connect(tmp_path).open_table("t").count_rows() == 2 and len(names(tmp_path)) == 2


def test_datasets_and_async_tables(tmp_path):
    uri = str(tmp_path / "t.lance")
    ds = lance.write_dataset(pa.table({"a": [1]}), uri, enable_v2_manifest_paths=False)
    ds.migrate_manifest_paths_v2()
    assert names(tmp_path) == [f"{2**64 - 2}.manifest"]
    lance.write_dataset(pa.table({"a": [2]}), ds, mode="append")

    async def main():
        table = await (await glaive.connect_async(tmp_path)).open_table("t")
        await table.migrate_manifest_paths_v2()
        return await table.uses_v2_manifest_paths(), await table.count_rows()

    assert asyncio.run(main()) == (True, 2)


@pytest.mark.skipif(not UPSTREAM.exists(), reason="needs .venv-upstream")
def test_the_real_package_reads_on(tmp_path):
    table = glaive.connect(tmp_path).create_table("t", [{"a": 1}], storage_options=OLD)
    table.add([{"a": 2}])
    table.migrate_v2_manifest_paths()
    program = "import lancedb, sys; t = lancedb.connect(sys.argv[1]).open_table('t'); t.add([{'a': 3}]); print(t.version, t.count_rows(), t.uses_v2_manifest_paths())"
    done = subprocess.run([str(UPSTREAM), "-c", program, str(tmp_path)], capture_output=True, text=True, timeout=300)
    assert done.stdout.strip() == "3 3 True", done.stderr[-2000:]
    table.checkout_latest()
    assert table.count_rows() == 3
