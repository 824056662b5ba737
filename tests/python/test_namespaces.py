"""Namespaces of a local database, beyond what the programs of sdk_programs_parts.py compare with the real package."""

import os
import threading

import glaive
import pytest
from glaive.exceptions import NamespaceNotEmptyError, TableNotFoundError


@pytest.mark.parametrize("uri", ["directory", "memory://"])
def test_tables_of_one_name_in_different_namespaces(tmp_path, uri):
    db = glaive.connect(str(tmp_path) if uri == "directory" else uri)
    db.create_namespace(["x"])
    db.create_namespace(["x", "y"])
    for value, path in enumerate([None, ["x"], ["x", "y"]]):
        db.create_table("t", [{"a": value}], namespace_path=path).add([{"a": value + 10}])
    for value, path in enumerate([None, ["x"], ["x", "y"]]):
        assert db.open_table("t", namespace_path=path).to_arrow()["a"].to_pylist() == [value, value + 10]
    assert db.list_tables().tables == ["t"] and len(db) == 1
    table = db.open_table("t", namespace_path=["x"])
    assert glaive.table.LanceTable.open(db, "t", namespace_path=["x"]).id == table.id == "x$t"
    with pytest.raises(NamespaceNotEmptyError, match="2 child objects"):
        db.drop_namespace(["x"])
    db.drop_namespace(["x"], behavior="cascade")
    assert db.list_namespaces().namespaces == [] and db.open_table("t").count_rows() == 2
    with pytest.raises(TableNotFoundError, match=r"x\$t"):
        db.open_table("t", namespace_path=["x"])
    if uri == "directory":
        assert sorted(os.listdir(tmp_path)) == ["__manifest", "t.lance"]


def test_modes(tmp_path):
    db = glaive.connect(tmp_path)
    assert db.create_namespace(["n"], properties={"a": "1"}).properties == {"a": "1"}
    assert db.create_namespace(["n"], mode="exist_ok", properties={"a": "2"}).properties == {"a": "1"}
    assert db.create_namespace(["n"], mode="Overwrite", properties={"a": "it's"}).properties == {"a": "it's"}
    assert db.describe_namespace(["n"]).properties == {"a": "it's"}
    db.drop_namespace(["none"], mode="skip")
    for wrong in (["a$b"], [""], [1], "n"):
        with pytest.raises((ValueError, TypeError)):
            db.create_namespace(wrong)
    assert db.list_namespaces().namespaces == ["n"]


def test_a_failed_create_leaves_nothing_behind(tmp_path):
    db = glaive.connect(tmp_path)
    db.create_namespace(["n"])
    before = sorted(os.listdir(tmp_path))

    def rows():
        yield [{"a": 1}]
        raise RuntimeError("the source broke")

    with pytest.raises(RuntimeError, match="the source broke"):
        db.create_table("t", rows(), namespace_path=["n"])
    assert sorted(os.listdir(tmp_path)) == before and db.list_tables(["n"]).tables == []
    assert db.create_table("t", [{"a": 1}], namespace_path=["n"]).count_rows() == 1


def test_one_of_many_creators_wins(tmp_path):
    db = glaive.connect(tmp_path)
    db.create_namespace(["n"])
    outcomes = []

    def create(i):
        try:
            outcomes.append(glaive.connect(tmp_path).create_table("t", [{"a": i}], namespace_path=["n"]).to_arrow()["a"].to_pylist())
        except ValueError as e:
            assert "already exists" in str(e)

    threads = [threading.Thread(target=create, args=(i,)) for i in range(6)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert len(outcomes) == 1
    assert db.open_table("t", namespace_path=["n"]).to_arrow()["a"].to_pylist() == outcomes[0]
    assert len([name for name in os.listdir(tmp_path) if name != "__manifest"]) == 1


def test_jobs_and_pages(tmp_path):
    db = glaive.connect(tmp_path)
    db.create_namespace(["n"])
    for name in ("a", "b", "c"):
        db.create_table(name, [{"x": 1}], namespace_path=["n"])
    first = db.list_tables(["n"], limit=2)
    assert (first.tables, first.page_token) == (["a", "b"], "b")
    assert db.list_tables(["n"], page_token=first.page_token).tables == ["c"]
    job = db.drop_table_async("a", ["n"])
    assert job.state == "finished" and job.result is None and job.wait() is None
    with pytest.raises(NotImplementedError):
        job.events()
    assert db.list_tables(["n"]).tables == ["b", "c"]


def test_connections_through_the_namespace_client_of_directories(tmp_path):
    root = str(tmp_path)
    db = glaive.connect_namespace("dir", {"root": root}, storage_options={"a": "b"})
    assert isinstance(db, glaive.LanceNamespaceDBConnection) and db.uri == "namespace://dir" and db.storage_options == {"a": "b"}
    assert isinstance(glaive.connect(namespace_client_impl="dir", namespace_client_properties={"root": root}), type(db))
    db.create_namespace(["n"])
    assert db.create_table("t", [{"a": 1}], namespace_path=["n"]).id == "n$t"
    db.create_table("t", [{"a": 2}])
    assert [db.namespace_exists(p) for p in ([], ["n"], ["x"])] == [True, True, False]
    assert [db.table_exists(p) for p in (["t"], ["n", "t"], ["n", "x"], ["x"])] == [True, True, False, False]
    again = glaive.deserialize_conn(db.serialize())
    assert type(again) is type(db) and again.open_table("t", namespace_path=["n"]).to_arrow()["a"].to_pylist() == [1]
    assert glaive.connect(root).open_table("t").to_arrow()["a"].to_pylist() == [2]
    for path in (None, ["n"], ["x"]):
        with pytest.raises(TableNotFoundError):
            db.open_table("none", namespace_path=path)
    with pytest.raises(NotImplementedError, match="rename_table not implemented"):
        db.rename_table("t", "u")
    db.drop_table("t")
    with pytest.raises(ValueError, match="was not found"):
        db.drop_table("t")
    for impl, properties, error in (("rest", {}, NotImplementedError), ("dir", {}, ValueError)):
        with pytest.raises(error):
            glaive.connect_namespace(impl, properties)
    with pytest.raises(ValueError, match="pushdown"):
        glaive.connect_namespace("dir", {"root": root}, namespace_client_pushdown_operations=["Other"])


def test_async_connections_through_the_namespace_client_of_directories(tmp_path):
    import asyncio

    async def main():
        db = glaive.connect_namespace_async("dir", {"root": str(tmp_path)})
        await db.create_namespace(["n"])
        table = await db.create_table("t", [{"a": 1}], namespace_path=["n"])
        assert (await (await table.branches.create("b")).to_arrow())["a"].to_pylist() == [1]
        assert (await db.list_tables(["n"])).tables == ["t"] and await db.table_exists(["n", "t"])
        with pytest.raises(TableNotFoundError):
            await db.open_table("x", namespace_path=["n"])
        await db.drop_table("t", ["n"])
        await db.drop_namespace(["n"])
        assert not await db.namespace_exists(["n"])

    asyncio.run(main())
