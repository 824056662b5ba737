"""More programs for test_sdk_upstream.py, in the manner of sdk_programs.py: parts of the API that few tables use."""

import asyncio
import importlib
import sys

import pyarrow as pa
import sdk_programs

PROGRAMS = {}


def program(function):
    PROGRAMS[function.__name__] = function
    return function


def lance_of(e):
    """The dataset-level package that goes with the one of `e`."""
    return importlib.import_module("lance" if e.module == "lancedb" else f"{e.module}.lance")


def contents(frame):
    """Rows of a frame, files read."""
    rows = frame.to_dict("records")
    return [{k: v.readall() if hasattr(v, "readall") else v for k, v in row.items()} for row in rows]


@program
def blobs(e):
    L = e.lancedb
    db = e.db()
    schema = pa.schema([pa.field("id", pa.int64()), pa.field("v", pa.list_(pa.float32(), 2)), L.blob("im")])
    e.show(lambda: (str(L.blob("x").type.storage_type), L.blob("x", nullable=False).nullable, L.blob("x").type.extension_name))
    t = db.create_table("t", schema=schema)
    e.show(lambda: t.add([{"id": i, "v": [i, 0], "im": b"x" * i if i else None} for i in range(4)]))
    e.show(lambda: t.add(pa.table({"id": [4], "v": [[4.0, 0.0]], "im": pa.array([b"plain"])})))
    e.show(lambda: t.add(pa.table({"id": [5], "v": [[5.0, 0.0]], "im": pa.array([{"data": b"member"}])})))
    e.show(lambda: t.add([{"id": 6, "v": [6, 0]}]))
    e.show(lambda: t.add(pa.table({"id": [9], "v": [[4.0, 0.0]], "im": pa.array([7])})))
    e.show(lambda: t.add([{"id": 9, "v": [6, 0], "im": "file:///nowhere"}]), "raises")
    e.show(lambda: t.blob_columns())
    e.show(lambda: str(t.schema.field("im").type))
    for mode in ("lazy", "bytes"):
        e.show(lambda: contents(t.to_pandas(blob_mode=mode)))
        e.show(lambda: contents(t.search().where("id > 3").select({"n": "id + 1", "b": "im"}).limit(2).to_pandas(blob_mode=mode)))
        e.show(lambda: contents(t.search().select(["im"]).with_row_id(True).offset(5).to_pandas(blob_mode=mode)))
        e.show(lambda: t.search([0.0, 0.0]).to_pandas(blob_mode=mode))
        e.show(lambda: t.take_offsets([1]).to_pandas(blob_mode=mode))
        e.show(lambda: t.search().to_pandas(blob_mode=mode, flatten=True))
        e.show(lambda: t.search().select(["id"]).to_pandas(blob_mode=mode))
    e.show(lambda: [sorted(d) for d in t.to_pandas(blob_mode="descriptions")["im"].dropna()])
    e.show(lambda: list(t.search().select(["im"]).to_pandas(blob_mode="descriptions", flatten=True).columns))
    e.show(lambda: t.search([0.0, 0.0]).to_pandas(blob_mode="descriptions"))
    e.show(lambda: t.to_pandas(blob_mode="all"))
    for result in (
        lambda: t.to_arrow(),
        lambda: t.search().to_arrow(),
        lambda: t.search().select(["im"]).with_row_id(True).to_arrow(),
        lambda: t.search([0.0, 0.0]).to_arrow(),
        lambda: t.search().limit(2).to_batches().read_all(),
        lambda: t.search().output_schema(),
        lambda: t.search([0.0, 0.0]).output_schema(),
    ):
        e.show(lambda: [(f.name, str(f.type)) for f in (result() if isinstance(result(), pa.Schema) else result().schema)])
    e.show(lambda: sorted(t.search().limit(2).to_list()[1]["im"]))
    hits = t.search().select({"b": "im", "id": "id"}).to_arrow()
    e.show(lambda: t.fetch_blobs("im", hits.sort_by([("id", "descending")])).to_pylist())
    e.show(lambda: t.fetch_blobs("im", t.search([0.0, 0.0]).limit(3).to_arrow()).to_pylist())
    e.show(lambda: t.fetch_blobs("im", t.search().with_row_id(True).to_arrow().slice(3)).to_pylist())
    e.show(lambda: t.fetch_blobs("im", t.search().select(["id"]).to_arrow()))
    e.show(lambda: (t.fetch_blobs("im", [3, 0, 3]).to_pylist(), str(t.fetch_blobs("im", [3]).type)))
    e.show(lambda: t.fetch_blobs("im", []).to_pylist())
    for wrong in ([1 << 40], [-1], "x", pa.array([1]), 5, [1.5]):
        e.show(lambda: t.fetch_blobs("im", wrong))
    e.show(lambda: t.fetch_blobs("nothing", [1]))
    e.show(lambda: t.fetch_blobs("id", [1]))
    e.show(lambda: t.fetch_blob_ranges("im", [(3, 1, 2), (0, 0, 9), (3, 3, 0)]).to_pylist())
    e.show(lambda: t.fetch_blob_ranges("im", [(3, 2, 2)]))
    e.show(lambda: t.fetch_blob_ranges("im", [(3, 2**64 - 1, 2)]))
    e.show(lambda: t.fetch_blob_ranges("im", []).to_pylist())
    files = e.show(lambda: t.fetch_blob_files("im", [3, 0]))
    f = files[0]
    e.show(lambda: (f.size(), f.read(1), f.tell(), f.seek(0), f.readall(), f.read(), f.read_range(1, 2), f.seek(-1, 2), f.readable(), f.seekable(), f.writable()))
    e.show(lambda: f.seek(0, 9))
    e.show(lambda: f.read_range(1, 9))
    e.show(lambda: asyncio.run(f.aread()))
    f.close()
    e.show(lambda: f.read())
    e.show(lambda: f.read_range(0, 1))
    e.show(lambda: (f.size(), f.closed))
    e.show(lambda: t.merge_insert("id").when_matched_update_all().when_not_matched_insert_all().execute([{"id": 1, "v": [1, 1], "im": b"merged"}, {"id": 7, "v": [7, 7], "im": None}]))
    e.show(lambda: t.update(where="id = 1", values={"im": b"x"}), "raises")
    e.show(lambda: sorted((r["id"], r["im"]) for r in contents(t.to_pandas())))
    e.show(lambda: t.delete("id = 1"))
    v = t.version
    e.show(lambda: t.optimize(), "ours")  # not built for such tables
    e.show(lambda: sorted((r["id"], r["im"]) for r in contents(t.to_pandas(blob_mode="bytes"))))
    t.checkout(v)
    e.show(lambda: sorted((r["id"], r["im"]) for r in contents(t.to_pandas(blob_mode="bytes"))))
    inner = pa.schema([pa.field("id", pa.int64()), pa.field("s", pa.struct([pa.field("n", pa.string()), L.blob("b")]))])
    n = db.create_table("nested", [{"id": 1, "s": {"n": "a", "b": b"deep"}}, {"id": 2, "s": {"n": "b", "b": None}}, {"id": 3, "s": None}], schema=inner)
    e.show(lambda: n.blob_columns())
    e.show(lambda: n.fetch_blobs("s.b", n.search().to_arrow()).to_pylist())
    e.show(lambda: n.to_pandas(blob_mode="bytes").to_dict("records"), "kind")
    e.show(lambda: n.search().select(["s.b"]).with_row_id(True).to_arrow().schema.types)


@program
def async_blobs(e):
    L = e.lancedb

    async def main():
        db = await L.connect_async(e.folder)
        t = await db.create_table("t", [{"id": 1, "im": b"one"}, {"id": 2, "im": None}], schema=pa.schema([pa.field("id", pa.int64()), L.blob("im")]))
        out = [await t.blob_columns(), (await t.fetch_blobs("im", [1, 0])).to_pylist()]
        out.append((await t.fetch_blobs("im", await t.query().to_arrow())).to_pylist())
        out.append(await (await t.fetch_blob_files("im", [0]))[0].aread())
        out.append((await t.fetch_blob_ranges("im", [(0, 1, 1)])).to_pylist())
        for mode in ("lazy", "bytes"):
            out.append(contents(await t.to_pandas(blob_mode=mode)))
            out.append(contents(await t.query().where("id = 1").to_pandas(blob_mode=mode)))
        out.append([(f.name, str(f.type)) for f in (await t.to_arrow()).schema])
        return out

    e.show(lambda: main())


@program
def dataset_blobs(e):
    lance = lance_of(e)
    data = pa.table(
        [pa.array([1, 2, 3]), pa.array([b"abc", None, b""], pa.large_binary())],
        schema=pa.schema([pa.field("i", pa.int64()), pa.field("b", pa.large_binary(), metadata={"lance-encoding:blob": "true"})]),
    )
    ds = lance.write_dataset(data, e.folder + "/t.lance", data_storage_version="2.1")
    for mode in ("lazy", "bytes", "wrong"):
        e.show(lambda: contents(ds.to_pandas(blob_mode=mode)))
        e.show(lambda: contents(ds.scanner(columns={"x": "b", "y": "i"}, filter="i = 1").to_pandas(blob_mode=mode)))
        e.show(lambda: contents(ds.get_fragments()[0].to_pandas(blob_mode=mode)))
    for handling in ("all_binary", "blobs_descriptions", "all_descriptions", "wrong"):
        e.show(lambda: ds.to_table(blob_handling=handling).schema.types)
    e.show(lambda: ds.to_table(blob_handling="all_binary", with_row_id=True).to_pylist())
    e.show(lambda: ds.scanner(blob_handling="all_binary", columns={"x": "b"}).projected_schema.types)
    e.show(lambda: [b.to_pylist() for b in ds.get_fragments()[0].to_batches(blob_handling="all_binary", batch_size=2)])
    b = ds.take_blobs("b", indices=[0])[0]
    e.show(lambda: (b.read_ranges([(0, 1), (1, 2)]), b.read1(2), b.tell(), b.size()))
    e.show(lambda: b.read_range(1, 9))
    e.show(lambda: b.detach())
    b.close()
    e.show(lambda: b.read())
    e.show(lambda: ds.read_blob_ranges("b", [(0, 1, 2), (1, 0, 0), (2, 0, 0)], selector="indices"))
    e.show(lambda: ds.read_blob_ranges("b", [(0, 1, 9)], selector="ids"))
    e.show(lambda: ds.read_blob_ranges("b", [(0, 1, 9)], selector="names"))


@program
def computed_columns(e):
    db = e.db()
    t = db.create_table("t", [{"a": i, "b": f"x{i}", "s": {"n": i}, "f": i / 2} for i in range(5)])
    e.show(lambda: t.add_columns(computed={"c": "a * 2"}))
    e.show(lambda: (str(t.schema.field("c").type), t.schema.field("c").nullable, sorted((t.schema.field("c").metadata or {}).items())))
    e.show(lambda: t.to_arrow()["c"].to_pylist())
    e.show(lambda: t.refresh_column("c").rows_filled)
    e.show(lambda: t.to_arrow()["c"].to_pylist())
    e.show(lambda: t.refresh_column("c").rows_filled)
    e.show(lambda: t.add([{"a": 7, "b": "z", "s": None, "f": None}]).version > 0)
    e.show(lambda: t.to_arrow()["c"].to_pylist())
    e.show(lambda: t.refresh_column("c").rows_filled)
    e.show(lambda: t.to_arrow()["c"].to_pylist())
    e.show(lambda: t.add([{"a": 7, "c": 3}]))
    e.show(lambda: t.update(where="a = 7", values={"c": 3}))
    e.show(lambda: t.update(where="a = 7", values_sql={"c": "3"}))
    merge = lambda: t.merge_insert("a").when_matched_update_all().when_not_matched_insert_all()  # noqa: E731
    e.show(lambda: merge().execute([{"a": 1, "c": 3}]))
    e.show(lambda: t.update(where="a = 7", values={"a": 70}).rows_updated)
    e.show(lambda: t.refresh_column("c").rows_filled)
    e.show(lambda: t.to_arrow()["c"].to_pylist())
    for call in (
        lambda: t.refresh_column("a"),
        lambda: t.refresh_column("nothing"),
        lambda: t.add_columns(computed={"c": "a"}),
        lambda: t.add_columns(computed={"d": "nothing * 2"}),
        lambda: t.add_columns(computed={"d": "b *"}),
        lambda: t.add_columns(computed={}),
        lambda: t.add_columns({"x": "1"}, computed={"y": "1"}),
        lambda: t.add_columns(),
        lambda: t.add_columns(computed={"g": 5}),
        lambda: t.add_columns(computed={"h.i": "a"}),
        lambda: t.alter_columns({"path": "a", "rename": "aa"}),
        lambda: t.alter_columns({"path": "a", "data_type": pa.int32()}),
        lambda: t.alter_columns({"path": "c", "data_type": pa.int32()}),
        lambda: t.drop_columns(["a"]),
    ):
        e.show(call)
    e.show(lambda: t.add_columns(computed={"e": "c + 1", "n": "s.n + 1", "up": "upper(b)", "h": "f * 2.0"}).version > 0)
    e.show(lambda: [(t.schema.field(n).metadata or {}).get(b"computed_column.inputs") for n in ("e", "n", "up", "h")])
    e.show(lambda: t.drop_columns(["c"]))
    e.show(lambda: t.alter_columns({"path": "c", "rename": "cc"}))
    e.show(lambda: [t.refresh_column(n).rows_filled for n in ("e", "up")])
    e.show(lambda: [t.refresh_column(n).rows_filled for n in ("n", "h")], "kind")
    e.show(lambda: t.to_arrow().select(["e", "n", "up", "h"]).to_pylist())
    e.show(lambda: t.alter_columns({"path": "up", "rename": "upper"}).version > 0)
    e.show(lambda: t.refresh_column("upper").rows_filled)
    e.show(lambda: t.drop_columns(["upper"]).version > 0)
    e.show(lambda: t.drop_columns(["b"]).version > 0)
    job = e.show(lambda: t.refresh_column_async("e"), "kind")
    e.show(lambda: (job.id, job.wait().rows_assigned, job.wait().published_version, job.wait().rows_failed))
    e.show(lambda: (job.status(), job.failure, job.job_type, job.spec, job.creation_ms))
    e.show(lambda: job.events())
    t.checkout(1)
    e.show(lambda: t.add_columns(computed={"zz": "a"}), "ours")  # refused: the handle stays at an old version


@program
def async_computed_columns(e):
    async def main():
        db = await e.lancedb.connect_async(e.folder)
        t = await db.create_table("t", [{"a": 1}, {"a": 2}])
        await t.add_columns(computed={"c": "a * 2"})
        out = [(await t.to_arrow()).to_pylist(), (await t.refresh_column("c")).rows_filled, (await t.to_arrow()).to_pylist()]
        job = await t.refresh_column_async("c")
        return out + [(await job.wait()).rows_assigned, await job.status()]

    e.show(lambda: main())


@program
def fragment_columns(e):
    lance = lance_of(e)
    uri = e.folder + "/t.lance"
    data = pa.table({"a": [1, 2, 3], "b": ["x", "y", "z"]})
    lance.write_dataset(data, uri)
    ds = lance.write_dataset(pa.table({"a": [4, 5, 6], "b": ["u", "v", None]}), uri, mode="append")
    ds.delete("a = 2")

    def merged(make):
        ds = lance.dataset(uri)
        made = [make(f) for f in ds.get_fragments()]
        operation = lance.LanceOperation.Merge([f for f, _ in made], made[0][1])
        return lance.LanceDataset.commit(uri, operation, read_version=ds.version).to_table()

    e.show(lambda: merged(lambda f: f.merge_columns({"c": "a * 2", "d": "upper(b)"})).to_pydict())
    e.show(lambda: merged(lambda f: f.merge_columns(lambda b: pa.record_batch({"e": [v + 1 for v in b["a"].to_pylist()]}), columns=["a"])).to_pydict())
    e.show(lambda: merged(lambda f: f.merge_columns(pa.table({"q": list(range(f.count_rows()))}).to_reader())).to_pydict())
    join = pa.table({"k": [1, 3, 5, 5], "w": ["one", "three", "five", "last"]})
    e.show(lambda: merged(lambda f: f.merge(join, "a", "k")).to_pydict())
    ds = lance.dataset(uri)
    f = ds.get_fragments()[0]
    e.show(lambda: f.merge_columns({"a": "a * 2"}))
    e.show(lambda: f.merge_columns({"z": "nothing"}), "raises")
    e.show(lambda: f.merge_columns(pa.table({"z": [1, 2, 3]}).to_reader()))
    e.show(lambda: f.merge_columns(pa.table({"z": [1]}).to_reader()), "raises")
    e.show(lambda: lance.dataset(uri).to_table().to_pydict() == ds.to_table().to_pydict())

    def updated(data, **options):
        ds = lance.dataset(uri)
        made = [f.update_columns(data, **options) for f in ds.get_fragments()]
        operation = lance.LanceOperation.Update(updated_fragments=[f for f, _ in made], fields_modified=made[0][1], update_mode="rewrite_columns")
        return made[0][1], lance.LanceDataset.commit(uri, operation, read_version=ds.version).to_table()

    e.show(lambda: updated(pa.table({"_rowid": pa.array([0, (1 << 32) + 2], pa.uint64()), "b": ["first", "last"]})))
    e.show(lambda: updated(pa.table({"key": [4, 6, 99], "b": ["U4", None, "no"], "c": [1, 2, 3]}), left_on="a", right_on="key"))
    e.show(lambda: f.update_columns(pa.table({"a": [4], "nothing": ["x"]}), left_on="a"))
    e.show(lambda: f.update_columns(pa.table({"q": [4], "c": [1]}), left_on="a"))
    e.show(lambda: f.update_columns(pa.table({"a": [3], "c": ["no number"]}), left_on="a"), "raises")
    e.show(lambda: lance.dataset(uri).get_fragments()[0].validate())


@program
def scan_options(e):
    lance = lance_of(e)
    uri = e.folder + "/t.lance"
    lance.write_dataset(pa.table({"i": [1, 2, 3], "s": ["a", "b", "c"]}), uri)
    for options in ({"with_row_id": True, "columns": ["i"], "limit": 2, "filter": "i > 1"}, {"with_row_id": True, "with_row_address": True}, {"columns": []}):
        ds = lance.dataset(uri, default_scan_options=options)
        e.show(lambda: ds.schema.names)
        e.show(lambda: ds.to_table())
        e.show(lambda: ds.to_table(columns=["s"]))
        e.show(lambda: [ds.count_rows(), ds.head(5).to_pydict(), ds.take([0]).to_pydict()])
        e.show(lambda: ds.checkout_version(1).schema.names)
        e.show(lambda: ds.get_fragments()[0].schema.names)
        e.show(lambda: ds.scanner(with_row_id=False).to_table().schema.names)
    e.show(lambda: lance.dataset(uri, default_scan_options={"columns": ["nothing"]}).schema, "raises")
    e.show(lambda: lance.dataset(uri, default_scan_options={"nothing": 1}).to_table(), "raises")


@program
def namespaces(e):
    db = e.db()
    fields = lambda r: {k: v for k, v in vars(r).items() if k in ("namespaces", "page_token", "properties", "tables")}  # noqa: E731
    e.show(lambda: fields(db.list_namespaces()))
    e.show(lambda: db.list_tables(["none"]).tables, "ours")  # theirs fails as long as there is no namespace at all
    e.show(lambda: fields(db.create_namespace(["child"])))
    e.show(lambda: db.create_namespace(["child"]))
    e.show(lambda: fields(db.create_namespace(["child"], mode="exist_ok")), "ours")  # theirs refuses
    e.show(lambda: db.create_namespace(["child"], mode="wrong"))
    e.show(lambda: fields(db.create_namespace(["child", "sub"], properties={"a": "b"})))
    e.show(lambda: db.create_namespace(["none", "sub"]))
    e.show(lambda: db.create_namespace([]))
    e.show(lambda: db.create_namespace("text"))
    e.show(lambda: fields(db.create_namespace(["a b"])))
    e.show(lambda: [fields(db.list_namespaces(p)) for p in (None, [], ["child"], ["none"])])
    e.show(lambda: fields(db.list_namespaces(limit=1)))
    e.show(lambda: fields(db.list_namespaces(page_token="a b")))
    e.show(lambda: [fields(db.describe_namespace(p)) for p in (["child", "sub"], ["child"], [])])
    e.show(lambda: db.describe_namespace(["none"]))
    t = e.show(lambda: db.create_table("t", [{"a": 1}], namespace_path=["child"]))
    e.show(lambda: (t.name, t.id, t.namespace, t.version, t.to_arrow().to_pylist()))
    e.show(lambda: (db.create_table("t", [{"a": 2}]).id, db.create_table("t", [{"a": 3}], namespace_path=["child", "sub"]).id))
    e.show(lambda: [db.open_table("t", namespace_path=p).to_arrow().to_pylist() for p in (None, ["child"], ["child", "sub"])])
    e.show(lambda: [fields(db.list_tables(p)) for p in (None, ["child"], ["none"])])
    e.show(lambda: db.table_names(namespace_path=["child"]))
    e.show(lambda: len(db))
    e.show(lambda: db.open_table("none", namespace_path=["child"]))
    e.show(lambda: db.open_table("t", namespace_path=["none"]))
    e.show(lambda: db.create_table("t", [{"a": 1}], namespace_path=["child"]))
    e.show(lambda: db.create_table("t", [{"a": 9}], namespace_path=["child"], exist_ok=True).to_arrow().to_pylist())
    e.show(lambda: db.create_table("t", [{"b": 9}], namespace_path=["child"], mode="overwrite").version)
    e.show(lambda: db.open_table("t", namespace_path=["child"]).to_arrow().to_pylist())
    e.show(lambda: t.add([{"a": 5}]), "raises")
    e.show(lambda: db.create_table("bad name", [{"a": 1}], namespace_path=["child"]))
    b = e.show(lambda: db.open_table("t", namespace_path=["child"]).branches.create("exp"))
    e.show(lambda: (b.namespace, b.id, b.current_branch()))
    e.show(lambda: db.open_table("t", namespace_path=["child"], branch="exp").namespace)
    e.show(lambda: db.drop_namespace(["child"]))
    e.show(lambda: db.drop_namespace(["child"], mode="wrong"))
    e.show(lambda: db.drop_namespace(["child"], behavior="wrong"))
    e.show(lambda: db.drop_namespace(["none"]))
    e.show(lambda: fields(db.drop_namespace(["none"], mode="skip")), "ours")  # theirs refuses
    e.show(lambda: db.drop_table("none", ["child"]))
    e.show(lambda: db.drop_table("none", ["child"], ignore_missing=True))
    e.show(lambda: db.drop_table("t", ["child"]))
    e.show(lambda: db.drop_table("t", ["child"]))
    e.show(lambda: db.drop_all_tables(["child", "sub"]))
    e.show(lambda: db.list_tables(["child", "sub"]).tables)
    e.show(lambda: [fields(db.drop_namespace(p)) for p in (["child", "sub"], ["child"])])
    e.show(lambda: fields(db.list_namespaces()))
    e.show(lambda: db.list_tables().tables)
    e.show(lambda: db.clone_table("c", t.uri, target_namespace_path=["a b"]))
    e.show(lambda: db.rename_table("t", "u", ["a b"], ["a b"]))
    e.show(lambda: db.clone_table("c", e.folder + "/t.lance", is_shallow=False))


@program
def async_namespaces(e):
    async def main():
        db = await e.lancedb.connect_async(e.folder)
        await db.create_namespace(["n"], properties={"k": "v"})
        t = await db.create_table("t", [{"a": 1}], namespace_path=["n"])
        await t.add([{"a": 2}])
        out = [(await db.list_namespaces()).namespaces, (await db.describe_namespace(["n"])).properties]
        out.append((await (await db.open_table("t", namespace_path=["n"])).to_arrow()).to_pylist())
        out.append(list(await db.table_names(namespace_path=["n"])))
        await db.drop_table("t", namespace_path=["n"])
        out.append((await db.list_tables(["n"])).tables)
        await db.drop_namespace(["n"])
        return [*out, (await db.list_namespaces()).namespaces]

    e.show(lambda: main())


@program
def utilities(e):
    import pathlib

    import numpy as np

    U = e.sub("util")
    for value in (np.int64(1), np.float32(1.5), np.float64(1.5), np.float16(0.5), np.bool_(True), np.str_("a'b"), np.array([1.0, 2.5]), np.uint8(7)):
        e.show(lambda: U.value_to_sql(value))
    for base in ("/a/b", "/a/b/", "relative/path", "s3://b/x/", "file:///a/", pathlib.Path("x/y")):
        e.show(lambda: U.join_uri(base, "t.lance"))
    t = e.db().create_table("t", [{"id": 1, "n": 2}])
    e.show(lambda: t.update(values={"n": np.float64(3.0)}).rows_updated)
    e.show(lambda: t.to_arrow().to_pylist())


if __name__ == "__main__":
    sdk_programs.PROGRAMS = PROGRAMS
    sdk_programs.main(sys.argv)
