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


if __name__ == "__main__":
    sdk_programs.PROGRAMS = PROGRAMS
    sdk_programs.main(sys.argv)
