"""Small programs against the LanceDB API whose outcome is printed, to compare two packages.

`python sdk_programs.py MODULE [NAME ...]` runs the programs (all, or those named) on the package MODULE and prints one
JSON line per step: program, step, outcome. An outcome is the value's repr, or the exception's class and message.
test_sdk_upstream.py runs it on both packages and compares the lines; a step's level says how much must agree:
"same" the whole outcome (of an exception: its class, wording apart), "kind" whether it is a value or that exception,
"raises" that both raise something, "ours" nothing: there Glaive does better on purpose, and other tests say what.
"""

import asyncio
import datetime as dt
import enum
import importlib
import json
import math
import re
import sys
import tempfile
import warnings
from typing import Dict, List, Optional, Tuple, Union

import numpy as np
import pyarrow as pa

PROGRAMS = {}


def program(function):
    PROGRAMS[function.__name__] = function
    return function


class Env:
    """What a program gets: the package, a fresh directory, and `show`."""

    def __init__(self, module, name, folder, out):
        self.module, self.name, self.folder, self._out = module, name, folder, out
        self.lancedb = importlib.import_module(module)
        self._step = 0

    def sub(self, name):
        return importlib.import_module(f"{self.module}.{name}")

    def db(self, **options):
        return self.lancedb.connect(self.folder, **options)

    def show(self, call, level="same", label=None):
        """Run `call`, print its outcome and return it (None after an exception)."""
        self._step += 1
        value = None
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            try:
                value = call()
                if asyncio.iscoroutine(value):
                    value = asyncio.run(value)
                text = describe(value)
                kind = "value"
            except Exception as e:
                text, kind = str(e), kinds(e)
        text = text.replace(self.folder, "<dir>").replace(f"{self.module}.", "<pkg>.")
        noted = sorted({w.category.__name__ for w in seen if w.category.__name__ not in ("ResourceWarning", "PydanticDeprecatedSince20")})
        line = {"program": self.name, "step": label or self._step, "level": level, "kind": kind, "outcome": text, "warnings": noted}
        self._out.append(line)
        return value


def kinds(error):
    """Names of the exception's classes, the most special first."""
    return [c.__name__ for c in type(error).__mro__]


def describe(value):
    if isinstance(value, pa.Table):
        return f"Table {describe(value.schema)} {value.to_pylist()!r}"
    if isinstance(value, pa.RecordBatch):
        return f"Batch {describe(value.schema)} {value.to_pylist()!r}"
    if isinstance(value, pa.Schema):
        fields = ", ".join(f"{f.name}: {f.type}{'' if f.nullable else ' not null'}" for f in value)
        return f"Schema({fields}; {value.metadata!r})"
    if type(value).__name__ == "DataFrame":
        return f"{type(value).__module__.split('.')[0]} {dict(value.dtypes) if hasattr(value.dtypes, 'items') else value.schema!r} {value.to_dict('list') if hasattr(value.dtypes, 'items') else value.to_dict(as_series=False)!r}"
    if isinstance(value, (list, tuple)) and len(value) > 0 and type(value) in (list, tuple):
        return "[" + ", ".join(describe(v) for v in value) + "]"
    return repr(value)


def flat(values, dim, type=pa.float32()):
    return pa.FixedSizeListArray.from_arrays(pa.array(values, type), dim)


def sample(n=5):
    return pa.table({"id": pa.array(range(n), pa.int64()), "s": [f"s{i}" for i in range(n)], "vector": flat([float(x) for i in range(n) for x in (i, 1)], 2)})


@program
def connect(e):
    L = e.lancedb
    e.show(lambda: L.connect())
    e.show(lambda: L.connect(e.folder, nonsense=1))
    e.show(lambda: L.connect("db://x"))
    e.show(lambda: L.connect(e.folder, namespace_client_properties={"a": "b"}))
    e.show(lambda: L.connect(e.folder, namespace_client_pushdown_operations=["QueryTable"]))
    e.show(lambda: L.connect(e.folder, namespace_client_impl="dir"))
    e.show(lambda: L.connect("s3://my.bucket/x"))
    e.show(lambda: L.connect(5), "raises")
    db = e.show(lambda: L.connect(e.folder + "/a/b"))
    e.show(lambda: __import__("os").path.isdir(e.folder + "/a/b"))
    e.show(lambda: db.uri)
    e.show(lambda: str(db))
    e.show(lambda: L.connect(e.folder, read_consistency_interval=dt.timedelta(seconds=5)))
    e.show(lambda: L.connect(e.folder, read_consistency_interval=dt.timedelta(seconds=5)).read_consistency_interval)
    e.show(lambda: db.read_consistency_interval)
    e.show(lambda: db.session, "ours")
    e.show(lambda: L.connect("file://" + e.folder + "/c").uri)
    e.show(lambda: L.connect(__import__("pathlib").Path(e.folder) / "d").uri)
    e.show(lambda: L.connect("memory://").uri)
    e.show(lambda: L.connect("memory://"))
    e.show(lambda: isinstance(db, L.DBConnection))
    e.show(lambda: db.serialize())
    e.show(lambda: L.connect(e.folder, read_consistency_interval=dt.timedelta(seconds=1.5), storage_options={"a": "b"}).serialize())
    e.show(lambda: L.deserialize_conn(db.serialize()))
    e.show(lambda: L.deserialize_conn("{}"))
    e.show(lambda: L.deserialize_conn('{"connection_type": "what"}'))
    a = e.show(lambda: L.connect_async(e.folder))
    e.show(lambda: str(asyncio.run(L.connect_async(e.folder, read_consistency_interval=dt.timedelta(seconds=5)))))
    e.show(lambda: asyncio.run(L.connect_async(e.folder, read_consistency_interval=dt.timedelta(seconds=5))).get_read_consistency_interval())
    e.show(lambda: a.get_read_consistency_interval())
    e.show(lambda: (a.uri, a.is_open()))
    e.show(lambda: a.close())
    e.show(lambda: (a.is_open(),))
    e.show(lambda: a.table_names())
    e.show(lambda: a.open_table("x"))
    e.show(lambda: repr(a))
    open(e.folder + "/plainfile", "w").close()
    e.show(lambda: L.connect(e.folder + "/plainfile/sub"), "kind")


@program
def names(e):
    db = e.db()
    for name in ["", "foo bar", "foo/bar", "foo$$bar", "..", ".", "a/../b", "x" * 300, "é", 5, None]:
        level = "raises" if name == "x" * 300 else "kind"
        e.show(lambda: db.create_table(name, [{"a": 1}]).name, level)
        e.show(lambda: db.open_table(name), level)
        e.show(lambda: db.drop_table(name), level)
    e.show(lambda: db.create_table("foo.bar-1_A", [{"a": 1}]))
    e.show(lambda: db.open_table("nope"))
    e.show(lambda: db["nope"])
    e.show(lambda: db.drop_table("nope"))
    e.show(lambda: db.drop_table("nope", ignore_missing=True))
    for n in ["test3", "test1", "test2"]:
        db.create_table(n, [{"a": 1}])
    e.show(lambda: db.table_names("test1", 1))
    e.show(lambda: db.table_names())
    e.show(lambda: db.table_names(limit=2))
    e.show(lambda: list(db.list_tables().tables))
    e.show(lambda: db.list_tables(limit=2).tables)
    e.show(lambda: db.list_tables(page_token=db.list_tables(limit=2).page_token, limit=2).tables)
    e.show(lambda: db.list_tables(page_token=db.list_tables(limit=2).page_token, limit=2).page_token)
    e.show(lambda: db.list_tables())
    e.show(lambda: (len(db), "test1" in db, "t" in db))
    e.show(lambda: db.rename_table("test1", "test9"))
    e.show(lambda: db.drop_table_async("test3").id)
    e.show(lambda: db.table_names())
    e.show(lambda: db.drop_all_tables())
    e.show(lambda: db.table_names())
    e.show(lambda: db.drop_database())
    for i in range(13):
        db.create_table(f"t{i:02}", [{"a": 1}])
    e.show(lambda: (len(db), len(db.table_names()), "t12" in db))
    e.show(lambda: db.table_names(limit=0), "same")
    e.show(lambda: db.table_names(limit=-1), "kind")


@program
def create_modes(e):
    db = e.db()
    e.show(lambda: db.create_table("t"))
    e.show(lambda: db.create_table("t", []))
    e.show(lambda: db.create_table("t", {"a": 1}))
    e.show(lambda: db.create_table("t", 5))
    e.show(lambda: db.create_table("t", "abc"))
    e.show(lambda: db.create_table("t", [5]), "raises")
    e.show(lambda: db.create_table("t", [{"a": 1}], mode="append"))
    e.show(lambda: db.create_table("t", [{"a": 1}], mode="CREATE").version)
    e.show(lambda: db.create_table("t", [{"a": 2}]))
    e.show(lambda: db.create_table("t", [{"a": 2}], exist_ok=True).to_arrow())
    e.show(lambda: db.create_table("t", schema=pa.schema([("b", pa.int8())]), exist_ok=True))
    e.show(lambda: db.create_table("t", schema=pa.schema([("a", pa.int64())]), exist_ok=True).version)
    t = e.show(lambda: db.create_table("t", [{"b": 2}], mode="Overwrite"))
    e.show(lambda: (t.version, t.schema, t.to_arrow()))
    e.show(lambda: db.create_table("t2", schema=pa.schema([("a", pa.int64()), ("v", pa.list_(pa.float32(), 2))])).to_arrow())
    e.show(lambda: db.open_table("t2").version)
    e.show(lambda: db.create_table("t3", pa.table({"a": pa.array([], pa.int64())})).to_arrow())
    e.show(lambda: db.create_table("t4", [], schema=pa.schema([("a", pa.int64())])).to_arrow())
    e.show(lambda: db.create_table("t5", [{"a": 1}], on_bad_vectors="huh"), "ours")
    e.show(lambda: db.create_table("t6", [{"a": 1}], data_storage_version="2.0").to_arrow())
    e.show(lambda: db.create_table("t7", [{"a": 1}], enable_v2_manifest_paths=False).to_arrow(), "ours")
    e.show(lambda: db.create_table("t8", [{"a": 1}], storage_options={"new_table_data_storage_version": "nine"}), "kind")
    e.show(lambda: db.create_table("t9", [{"a": 1}], storage_options={"new_table_data_storage_version": "stable"}).version)
    e.show(lambda: db.create_table("t10", [{"a": 1}], schema=5), "raises")
    e.show(lambda: db.create_table("t11", [{"a": 1, "b": None}]).schema)
    e.show(lambda: db.create_table("t12", [{"a": 1}, {"b": "x"}]).to_arrow(), "ours")
    e.show(lambda: db.create_table("t13", [{"a": 1}, {"a": "x"}]), "kind")
    e.show(lambda: db.create_table("t14", [{"a": "1"}], schema=pa.schema([("a", pa.int64())])), "kind")
    e.show(lambda: db.create_table("t15", [{"a": 1, "z": 2}], schema=pa.schema([("a", pa.int64())])).to_arrow(), "kind")
    e.show(lambda: db.create_table("t16", [{"a": 1}], schema=pa.schema([("a", pa.int64()), ("z", pa.string())])).to_arrow(), "kind")
    e.show(lambda: db.create_table("t17", [{"a": None}], schema=pa.schema([pa.field("a", pa.int64(), nullable=False)])), "ours")
    e.show(lambda: db.create_table("t18", pa.table({"a": [1]}, metadata={"k": "v"})).schema)
    e.show(lambda: db.create_table("t19", [{"a": 1}], schema=pa.schema([("a", pa.int32())], metadata={"k": "v"})).schema)
    e.show(lambda: db.create_table("t20", [{"a": 1}], schema=pa.schema([("a", pa.int32())], metadata={b"k": b"\xff"})).schema)
    e.show(lambda: db.table_names(limit=100), "ours")
    e.show(lambda: repr(db.open_table("t")))
    e.show(lambda: str(db.open_table("t")))
    x = db.open_table("t")
    e.show(lambda: (x.name, x.id, x.namespace, x.uri, x.current_branch(), x.embedding_functions))
    e.show(lambda: x.initial_storage_options())
    e.show(lambda: x.latest_storage_options())
    e.show(lambda: x.uses_v2_manifest_paths())
    e.show(lambda: db.open_table("t7").uses_v2_manifest_paths(), "ours")
    e.show(lambda: db.open_table("t", version=1).to_arrow())
    e.show(lambda: db.open_table("t", version=99), "kind")
    e.show(lambda: db.open_table("t", index_cache_size=5).name)


@program
def data_sources(e):
    db = e.db()
    pd, pl = __import__("pandas"), __import__("polars")
    M = e.sub("pydantic")
    ds = __import__("pyarrow.dataset").dataset

    class Row(M.LanceModel):
        a: Optional[int]
        b: Optional[str] = None

    table = pa.table({"a": [1, 2], "b": ["x", None]})
    frame = pd.DataFrame({"a": [1, 2], "b": ["x", None]}, index=[5, 6])
    polars = pl.DataFrame({"a": [1, 2], "b": ["x", None]})
    sources = {
        "list of dicts": lambda: table.to_pylist(),
        "list of models": lambda: [Row(a=1, b="x"), Row(a=2)],
        "one model": lambda: Row(a=1),
        "list of batches": lambda: table.to_batches(),
        "list of tables": lambda: [table],
        "tuple of dicts": lambda: tuple(table.to_pylist()),
        "list of frames": lambda: [frame],
        "table": lambda: table,
        "batch": lambda: table.to_batches()[0],
        "reader": lambda: table.to_reader(),
        "dataset": lambda: ds.dataset(table),
        "scanner": lambda: ds.dataset(table).scanner(),
        "frame": lambda: frame,
        "polars": lambda: polars,
        "lazy polars": lambda: polars.lazy(),
        "generator of dict lists": lambda: (x for x in [table.to_pylist(), table.to_pylist()]),
        "generator of batches": lambda: (x for x in table.to_batches()),
        "generator of tables": lambda: (x for x in [table, table]),
        "generator of frames": lambda: (x for x in [frame, frame]),
        "generator of polars": lambda: (x for x in [polars, polars]),
        "generator of models": lambda: (x for x in [[Row(a=1)], [Row(a=3, b="q")]]),
        "generator of dicts": lambda: (x for x in table.to_pylist()),
        "generator of single models": lambda: (x for x in [Row(a=1)]),
        "empty generator": lambda: (x for x in []),
        "iterator of batches": lambda: iter(table.to_batches()),
        "dict": lambda: {"a": 1},
        "dict of lists": lambda: {"a": [1]},
        "set": lambda: {1},
        "number": lambda: 1,
        "text": lambda: "abc",
        "numpy": lambda: np.zeros((2, 2)),
        "list of numbers": lambda: [1, 2],
        "list with None": lambda: [None],
        "mixed list": lambda: [{"a": 1}, Row(a=3)],
        "generator changing types": lambda: (x for x in [pa.table({"a": pa.array([1], pa.int64())}), pa.table({"a": pa.array([2], pa.int32())})]),
        "generator changing columns": lambda: (x for x in [pa.table({"a": [1]}), pa.table({"c": [2]})]),
        "array": lambda: pa.array([{"a": 1}]),
        "chunked": lambda: table["a"],
        "None": lambda: None,
    }
    better = {"list of batches", "list of tables", "tuple of dicts", "mixed list"}  # taken by Glaive everywhere
    odd = {"one model", "list of frames", "generator of dicts", "generator of single models", "empty generator", "dict", "dict of lists", "set", "number", "text", "numpy", "list of numbers", "list with None", "generator changing columns", "array", "chunked", "None"}
    for i, (name, source) in enumerate(sources.items()):
        level = "ours" if name in better else "raises" if name in odd else "same"
        if name == "None":
            level = "kind"
        for mode, schema in (("no", None), ("schema", pa.schema([("a", pa.int64()), ("b", pa.string())])), ("model", Row)):
            e.show(lambda: db.create_table(f"t{i}{mode}", source(), schema=schema).to_arrow(), level, f"create {name} {mode}")
        t = db.create_table(f"a{i}", schema=pa.schema([("a", pa.int64()), ("b", pa.string())]))
        e.show(lambda: t.add(source()), "raises" if name == "None" else level, f"add {name}")
        e.show(lambda: t.to_arrow(), "ours" if name in better else "same", f"after add {name}")


@program
def vector_inference(e):
    db = e.db()
    rows = {
        "floats": [{"vector": [1.0, 2.0]}, {"vector": [3.0, 4.0]}],
        "ints small": [{"vector": [1, 2]}, {"vector": [3, 255]}],
        "ints big": [{"vector": [1, 2]}, {"vector": [3, 256]}],
        "ints negative": [{"vector": [-1, 2]}],
        "Embedding": [{"myEmbeddings": [1.0, 2.0]}],
        "VECTOR": [{"VECTORs": [1.0, 2.0]}],
        "other name": [{"points": [1.0, 2.0]}],
        "nulls first": [{"vector": None}, {"vector": [1.0, 2.0]}],
        "all null": [{"vector": None}],
        "empty lists": [{"vector": []}],
        "uneven": [{"vector": [1.0]}, {"vector": [1.0, 2.0]}, {"vector": [1.0, 2.0]}],
        "nan": [{"vector": [1.0, float("nan")]}],
        "strings": [{"vector": ["a", "b"]}],
        "number": [{"vector": 5}],
        "text": [{"vector": "x"}],
        "nested": [{"vector": [[1.0, 2.0], [3.0, 4.0]]}],
        "numpy rows": [{"vector": np.array([1, 2], np.float32)}, {"vector": np.array([3, 4], np.float32)}],
        "numpy f64": [{"vector": np.array([1, 2], np.float64)}],
        "numpy f16": [{"vector": np.array([1, 2], np.float16)}],
        "numpy i32": [{"vector": np.array([1, 2], np.int32)}],
        "bools": [{"vector": [True, False]}],
        "inner null": [{"vector": [1.0, None]}],
        "struct": [{"meta": {"vector": [1.0, 2.0]}}],
    }
    for name, data in rows.items():
        e.show(lambda: db.create_table(re.sub("[^a-zA-Z]", "_", name), data).to_arrow(), "same", name)
    tables = {
        "list f32": pa.table({"vector": pa.array([[1, 2]], pa.list_(pa.float32()))}),
        "list f16": pa.table({"vector": pa.array([[1.0, 2.0]], pa.list_(pa.float16()))}),
        "list f64": pa.table({"vector": pa.array([[1, 2]], pa.list_(pa.float64()))}),
        "large list": pa.table({"vector": pa.array([[1, 2]], pa.large_list(pa.float64()))}),
        "fixed f64": pa.table({"vector": pa.array([[1, 2]], pa.list_(pa.float64(), 2))}),
        "fixed i8": pa.table({"vector": pa.array([[1, 2]], pa.list_(pa.int8(), 2))}),
        "list u8": pa.table({"vector": pa.array([[1, 2]], pa.list_(pa.uint8()))}),
        "list i64 big": pa.table({"vector": pa.array([[1, 2000]], pa.list_(pa.int64()))}),
        "no rows": pa.table({"vector": pa.array([], pa.list_(pa.float64()))}),
        "two": pa.table({"vector": pa.array([[1, 2]], pa.list_(pa.float64())), "x_embedding_y": pa.array([[1, 2, 3]], pa.list_(pa.float64()))}),
    }
    for name, data in tables.items():
        e.show(lambda: db.create_table("T" + name.replace(" ", "_"), data).to_arrow(), "ours" if name == "no rows" else "same", name)
    t = db.create_table("over", [{"a": 1}])
    e.show(lambda: t.add([{"vector": [1.0, 2.0]}], mode="overwrite"))
    e.show(lambda: t.to_arrow())
    e.show(lambda: t.add([{"vector": [1, 2]}], mode="OVERWRITE"), "kind")
    e.show(lambda: t.add([{"vector": [1, 2]}], mode="huh"), "kind")
    two = (x for x in [[{"vector": [1.0, 2.0]}], [{"vector": [1.0, 2.0, 3.0]}]])
    e.show(lambda: db.create_table("stream", two), "kind")


BAD = [[1.0, 2.0], None, [float("nan"), 1.0], [1.0], [3.0, 4.0], [5.0, 6.0, 7.0]]


@program
def bad_vectors(e):
    db = e.db()
    fixed = pa.schema([("k", pa.int64()), ("vector", pa.list_(pa.float32(), 2))])
    data = [{"k": i, "vector": v} for i, v in enumerate(BAD)]
    n = 0
    for policy in ("error", "drop", "fill", "null"):
        for schema in (None, fixed):
            for rows in (data, data[:2], data[2:3], data[3:5], data[::-1], data[1:3]):
                n += 1
                options = dict(on_bad_vectors=policy, fill_value=0.5)
                hopeless = schema is None and rows in (data[2:3], data[1:3]) and policy in ("drop", "null")  # no good vector
                e.show(lambda: db.create_table(f"t{n}", rows, schema=schema, **options).to_arrow(), "ours" if hopeless else "same", f"create {policy} {schema is not None} {n}")
                t = db.create_table(f"a{n}", schema=fixed)
                e.show(lambda: t.add(rows, **options), "same", f"add {policy} {n}")
                e.show(lambda: t.to_arrow(), "same", f"added {policy} {n}")
    e.show(lambda: db.create_table("f", data, on_bad_vectors="fill", fill_value=None))
    e.show(lambda: db.create_table("f", data, on_bad_vectors="nonsense"))
    e.show(lambda: db.create_table("f", [{"k": 1, "vector": [1.0, float("nan")]}]), "same")
    e.show(lambda: db.create_table("f", [{"k": 1, "vector": [1.0]}, {"k": 2, "vector": [1.0, 2.0]}, {"k": 2, "vector": [1.0, 2.0]}]), "same")
    t = db.create_table("g", schema=fixed)
    e.show(lambda: t.add([{"k": 1, "vector": [1.0, float("nan")]}]), "same")
    e.show(lambda: t.add([{"k": 1, "vector": [1.0]}]), "kind")
    e.show(lambda: t.add([{"k": 1, "vector": [1.0, float("nan")]}], on_bad_vectors="fill", fill_value=None), "kind")
    e.show(lambda: t.add([{"k": 5, "vector": [1, 2]}]))
    e.show(lambda: t.add([{"k": 5, "vector": ["a", "b"]}]), "kind")
    e.show(lambda: t.to_arrow())
    wide = [[float(i) for i in range(10)], [float("nan")] * 10, None]
    src = pa.table({"k": [1, 2, 3], "other": pa.array(wide, pa.list_(pa.float32(), 10)), "small": pa.array([[1.0, float("nan")], None, [1.0, 2.0]], pa.list_(pa.float32(), 2))})
    for policy in ("error", "drop", "fill", "null"):
        e.show(lambda: db.create_table(f"w{policy}", src, on_bad_vectors=policy).to_arrow(), "kind" if policy == "error" else "same")
        e.show(lambda: db.create_table(f"ws{policy}", src, schema=src.schema, on_bad_vectors=policy).to_arrow(), "kind" if policy == "error" else "same")
    parts = lambda: (x for x in [[{"vector": None}], [{"vector": [float("nan"), 1.0]}], [{"vector": [1.0, 2.0]}, {"vector": [1.0]}], [{"vector": [1.0, 2.0, 3.0]}]])
    for policy in ("drop", "fill", "null"):
        e.show(lambda: db.create_table(f"p{policy}", parts(), on_bad_vectors=policy).to_arrow(), "ours")
        e.show(lambda: db.create_table(f"ps{policy}", parts(), schema=pa.schema([("vector", pa.list_(pa.float32(), 2))]), on_bad_vectors=policy).to_arrow(), "ours")
    f16 = pa.schema([pa.field("k", pa.int64()), pa.field("vector", pa.list_(pa.float16(), 2))])
    for policy in ("drop", "fill", "null"):
        e.show(lambda: db.create_table(f"h{policy}", data, schema=f16, on_bad_vectors=policy, fill_value=0.5).to_arrow())


@program
def add_rules(e):
    db = e.db()
    schema = pa.schema([pa.field("id", pa.int64(), nullable=False), ("s", pa.string()), ("at", pa.struct([("x", pa.float32()), ("y", pa.float32())])), ("vector", pa.list_(pa.float32(), 2)), ("tags", pa.list_(pa.string()))])
    t = db.create_table("t", schema=schema)
    full = {"id": 1, "s": "a", "at": {"x": 1.0, "y": 2.0}, "vector": [1.0, 2.0], "tags": ["q"]}
    e.show(lambda: t.add([full]))
    e.show(lambda: t.add(pa.table({"id": pa.array([], pa.int64())})))
    e.show(lambda: t.add([{"id": 2}]))
    e.show(lambda: t.add([{"s": "x"}]), "kind")
    e.show(lambda: t.add([{"id": None, "s": "x"}]), "kind")
    e.show(lambda: t.add([{"id": 3, "nope": 1}]), "kind")
    e.show(lambda: t.add([{"vector": [3, 4], "id": 4}]))
    e.show(lambda: t.add([{"id": 5, "at": {"y": 1}}]))
    e.show(lambda: t.add([{"id": 6, "at": None}]))
    e.show(lambda: t.add([{"id": 7, "at": {"x": 1, "z": 1}}]), "kind")
    e.show(lambda: t.add([{"id": "8"}]), "kind")
    e.show(lambda: t.add([{"id": 9.0}]), "kind")
    e.show(lambda: t.add([{"id": 9.5}]), "kind")
    e.show(lambda: t.add([{"id": 10, "s": 5}]), "kind")
    e.show(lambda: t.add([{"id": True}]), "kind")
    e.show(lambda: t.add(pa.table({"id": pa.array([11], pa.int8()), "s": pa.array(["l"], pa.large_string())})))
    e.show(lambda: t.add(pa.table({"id": pa.array([12], pa.uint64()), "tags": pa.array([["m"]], pa.large_list(pa.large_string()))})), "kind")
    e.show(lambda: t.add(pa.table({"id": pa.array([13], pa.int64()), "vector": pa.array([[1, 2]], pa.list_(pa.float64(), 2))})))
    e.show(lambda: t.add(pa.table({"id": pa.array([14], pa.int64()), "vector": pa.array([[1, 2, 3]], pa.list_(pa.float64(), 3))})), "kind")
    e.show(lambda: t.add(pa.table({"id": pa.array([15], pa.int64()), "s": pa.array([None], pa.null())})))
    e.show(lambda: t.add(pa.table({"id": pa.array([16, None], pa.int64())})), "kind")
    e.show(lambda: t.add([full], mode="append", progress=lambda *_: None))
    e.show(lambda: t.count_rows())
    e.show(lambda: t.to_arrow().sort_by("id"))
    e.show(lambda: t.version)
    small = db.create_table("small", schema=pa.schema([("a", pa.int8()), ("f", pa.float16()), ("u", pa.uint8()), ("d", pa.date32()), ("ts", pa.timestamp("us"))]))
    e.show(lambda: small.add([{"a": 127}]))
    e.show(lambda: small.add([{"a": 128}]), "kind")
    e.show(lambda: small.add([{"u": -1}]), "kind")
    e.show(lambda: small.add([{"f": 0.5}]))
    e.show(lambda: small.add([{"d": dt.date(2020, 1, 2), "ts": dt.datetime(2020, 1, 2, 3)}]))
    e.show(lambda: small.add(pa.table({"ts": pa.array([dt.datetime(2020, 1, 2, 3)], pa.timestamp("ns"))})))
    e.show(lambda: small.to_arrow())
    e.show(lambda: [r for r in [small.add([{"a": 1}])]])
    e.show(lambda: small.add([{"a": 1}]).version)
    e.show(lambda: small.delete("a = 1"))
    e.show(lambda: (small.delete("a = 1").num_deleted_rows, small.version))
    e.show(lambda: small.delete("nokol = 1"), "kind")
    e.show(lambda: small.delete("a = "), "kind")
    e.show(lambda: small.delete(None), "kind")
    e.show(lambda: small.delete("true"))
    e.show(lambda: small.count_rows())
    e.show(lambda: small.add(pa.table({"a": pa.array([1], pa.int64())}), write_parallelism=2))
    d = db.create_table("dict", pa.table({"c": pa.array(["a", "b", "a"]).dictionary_encode()}))
    e.show(lambda: d.to_arrow().schema)
    e.show(lambda: d.add([{"c": "z"}]))
    e.show(lambda: d.to_arrow()["c"].to_pylist())


@program
def reading(e):
    db = e.db()
    t = db.create_table("t", sample())
    e.show(lambda: t.to_arrow())
    e.show(lambda: t.to_pandas())
    e.show(lambda: t.to_polars().collect())
    e.show(lambda: type(t.to_polars()).__name__)
    e.show(lambda: t.head())
    e.show(lambda: t.head(2))
    e.show(lambda: t.head(0))
    e.show(lambda: t.head(-1), "kind")
    e.show(lambda: t.count_rows("id > 2"))
    e.show(lambda: t.count_rows("id >"), "kind")
    e.show(lambda: t.count_rows("what = 1"), "kind")
    e.show(lambda: len(t))
    e.show(lambda: t.schema)
    e.show(lambda: t.stats())
    e.show(lambda: t.list_indices())
    e.show(lambda: t.index_stats("x"))
    e.show(lambda: [sorted(v) for v in t.list_versions()])
    e.show(lambda: [(v["version"], type(v["timestamp"]).__name__, v["timestamp"].tzinfo, v["metadata"]) for v in t.list_versions()])
    t.add(sample(2))
    e.show(lambda: [v["version"] for v in t.list_versions()])
    e.show(lambda: t.checkout(1))
    e.show(lambda: (t.version, t.count_rows()))
    e.show(lambda: t.add(sample(1)))
    e.show(lambda: t.delete("id = 1"))
    e.show(lambda: t.checkout(77))
    e.show(lambda: t.checkout("nope"))
    e.show(lambda: t.checkout(1.5), "kind")
    e.show(lambda: t.checkout(None), "kind")
    e.show(lambda: t.checkout(-1), "raises")
    e.show(lambda: t.version)
    e.show(lambda: t.checkout_latest())
    e.show(lambda: t.version)
    e.show(lambda: t.restore())
    e.show(lambda: t.restore(1))
    e.show(lambda: (t.version, t.count_rows()))
    t.checkout(2)
    e.show(lambda: t.restore())
    e.show(lambda: (t.version, t.count_rows()))
    e.show(lambda: t.restore(99))
    e.show(lambda: t.restore("nope"))
    e.show(lambda: t.tags.create("one", 1))
    e.show(lambda: {name: sorted(tag) for name, tag in t.tags.list().items()})
    e.show(lambda: t.tags.create("one", 1))
    e.show(lambda: t.tags.create("two", 99))
    e.show(lambda: t.tags.create("bad/name", 1), "kind")
    e.show(lambda: t.tags.create("", 1), "kind")
    e.show(lambda: t.tags.get_version("one"))
    e.show(lambda: t.tags.get_version("zero"))
    e.show(lambda: t.tags.update("one", 2))
    e.show(lambda: t.tags.update("one", 99))
    e.show(lambda: t.tags.update("zero", 1))
    e.show(lambda: t.tags.get_version("one"))
    e.show(lambda: t.checkout("one"))
    e.show(lambda: t.version)
    e.show(lambda: t.tags.create("three", 3))
    e.show(lambda: t.restore("one"))
    e.show(lambda: t.version)
    e.show(lambda: t.tags.delete("one"))
    e.show(lambda: t.tags.delete("one"))
    e.show(lambda: sorted(t.tags.list()))
    e.show(lambda: repr(t))
    t.checkout(1)
    e.show(lambda: repr(t))
    e.show(lambda: t.take_offsets([0]).to_list())
    t.checkout_latest()
    e.show(lambda: t.take_offsets([3, 1]).to_arrow())
    e.show(lambda: t.take_offsets([3, 1, 3]).to_arrow())
    e.show(lambda: t.take_offsets([3, 1]).select(["id"]).to_list())
    e.show(lambda: t.take_offsets([3, 1]).select({"i2": "id * 2"}).to_list(), "kind")
    e.show(lambda: t.take_offsets([3, 1]).with_row_id().to_list())
    e.show(lambda: t.take_offsets([3, 1]).to_pandas())
    e.show(lambda: t.take_offsets([3, 1]).to_polars())
    e.show(lambda: t.take_offsets([3, 1]).to_batches().read_all())
    e.show(lambda: t.take_offsets([3, 1]).output_schema())
    e.show(lambda: t.take_offsets([]).to_arrow())
    e.show(lambda: t.take_offsets([99]).to_arrow(), "kind")
    e.show(lambda: t.take_offsets([-1]).to_arrow(), "kind")
    e.show(lambda: t.take_offsets(["a"]), "kind")
    e.show(lambda: t.take_offsets(None), "kind")
    e.show(lambda: t.take_row_ids([3, 1]).to_arrow())
    e.show(lambda: t.take_row_ids([3, 1, 1]).select(["id"]).to_list())
    e.show(lambda: t.take_row_ids([99]).to_arrow(), "kind")
    e.show(lambda: t.take_row_ids([-1]), "kind")
    e.show(lambda: t.take_row_ids([0]).with_row_id().to_list())
    e.show(lambda: t.take_offsets([0]).to_query_object())
    e.show(lambda: t.__getitems__([3, 1]))
    e.show(lambda: t.__getitems__([3, 1, 3]), "kind")
    e.show(lambda: t.__getitems__([]), "ours")
    e.show(lambda: t.take_offsets([2]).select(["id", "_rowoffset"]).to_list())
    e.show(lambda: t.take_offsets([2]).select(["id", "_rowid"]).to_list())
    e.show(lambda: t.take_offsets([2]).select([]).to_list(), "ours")
    e.show(lambda: t.take_offsets([2]).select(["zzz"]).to_list(), "kind")
    e.show(lambda: t.search().select(["id", "_rowid", "_rowaddr"]).limit(2).to_arrow(), "kind")
    e.show(lambda: t.search().select(["id", "_rowoffset"]).limit(2).to_arrow(), "kind")


@program
def consistency(e):
    import time
    a, b = e.db(), e.db(read_consistency_interval=dt.timedelta(0))
    c = e.db(read_consistency_interval=dt.timedelta(seconds=0.2))
    t = a.create_table("t", sample())
    x, y, z = a.open_table("t"), b.open_table("t"), c.open_table("t")
    t.add(sample(1))
    e.show(lambda: (x.count_rows(), y.count_rows(), z.count_rows()))
    e.show(lambda: (x.version, y.version))
    time.sleep(0.3)
    e.show(lambda: (x.count_rows(), y.count_rows(), z.count_rows()))
    e.show(lambda: x.add(sample(1)))
    e.show(lambda: (x.count_rows(), y.count_rows()))
    e.show(lambda: y.checkout(1))
    t.add(sample(1))
    e.show(lambda: y.count_rows())
    e.show(lambda: y.checkout_latest())
    e.show(lambda: y.count_rows())
    e.show(lambda: (t.count_rows(), x.count_rows()))
    e.show(lambda: (x.checkout_latest(), x.count_rows())[1])
    a.create_table("t", [{"q": 1}], mode="overwrite")
    e.show(lambda: (x.schema, y.schema, y.count_rows()))
    a.drop_table("t")
    e.show(lambda: y.count_rows(), "raises")
    e.show(lambda: x.checkout_latest(), "raises")


@program
def queries(e):
    db = e.db()
    t = db.create_table("t", sample(30))
    s = t.search
    q = [3.2, 1.0]
    e.show(lambda: s(q).to_arrow())
    e.show(lambda: s(q).limit(2).to_list())
    e.show(lambda: s(tuple(q)).limit(1).to_list(), "ours")
    e.show(lambda: s(np.array(q)).limit(1).to_list())
    e.show(lambda: s(np.array(q, np.float16)).limit(1).to_list(), "kind")
    e.show(lambda: s(pa.array(q)).limit(1).to_list(), "ours")
    e.show(lambda: s(pa.chunked_array([q])).limit(1).to_list(), "ours")
    e.show(lambda: s([1, 2]).limit(1).to_list())
    e.show(lambda: s([q, [9.0, 1.0]]).limit(2).to_arrow())
    e.show(lambda: s(np.array([q, [9.0, 1.0]])).limit(1).to_arrow())
    e.show(lambda: s([np.array(q), np.array([9.0, 1.0])]).limit(1).to_arrow())
    e.show(lambda: s([q]).limit(1).to_arrow())
    e.show(lambda: s([q, [9.0, 1.0]]).limit(2).offset(1).to_arrow(), "kind")
    for bad in ([], [[]], [1.0], [1.0, 2.0, 3.0], ["a", "b"], "text", 5, {"a": 1}, [None, 1.0], [float("nan"), 1.0], object(), b"ab", [[1.0, 2.0], [1.0]], True, np.zeros((2, 2, 2)), np.array(5.0)):
        nan = type(bad) is list and len(bad) == 2 and bad[1] == 1.0  # nothing is near NaN; Glaive says so
        e.show(lambda: s(bad).limit(1).to_list(), "ours" if nan else "kind" if type(bad) is list and bad and bad != [[]] else "raises")
    e.show(lambda: s([1.0, 2.0, 3.0]).to_list(), "same")
    e.show(lambda: s("text", query_type="vector"), "same")
    e.show(lambda: s(5), "same")
    e.show(lambda: s(q, query_type="huh"), "same")
    e.show(lambda: s(q, query_type="fts"), "same")
    e.show(lambda: s(q, vector_column_name="nope").to_list(), "raises")
    e.show(lambda: s(q, vector_column_name="id").to_list(), "kind")
    e.show(lambda: s(q, vector_column_name="s").to_list(), "kind")
    e.show(lambda: s(q, "vector").limit(1).to_list())
    for n in (None, 0, -1, "x", 1.5):
        e.show(lambda: s(q).limit(n).to_list(), "same" if n in (None, 0, -1) else "raises")
        e.show(lambda: len(s().limit(n).to_list()), "same" if n in (None, 0, -1) else "raises")
    for n in (None, -1, "x", 1.5, 100):
        e.show(lambda: s(q).offset(n).limit(2).to_list(), "raises" if n in ("x", 1.5) else "ours" if n == -1 else "same")
        e.show(lambda: s().offset(n).limit(2).to_list(), "raises" if n in ("x", 1.5) else "ours" if n == -1 else "same")
    e.show(lambda: s(q).limit(2).offset(1).to_list())
    e.show(lambda: s().limit(2).offset(1).to_list())
    e.show(lambda: s().offset(28).to_list())
    e.show(lambda: len(s().to_list()))
    e.show(lambda: s().where("id < 3").to_arrow())
    e.show(lambda: s().where("id < 3").where("id > 1").to_list())
    e.show(lambda: s().where("id < 10 OR id > 20").where("id > 8 OR id < 0").select(["id"]).to_list())
    e.show(lambda: s(q).where("id > 10").limit(2).to_list())
    e.show(lambda: s(q).where("id > 10", prefilter=False).limit(2).to_list())
    e.show(lambda: s(q).where("id = 4", prefilter=False).limit(5).to_list())
    for bad in (None, "", 5, [], "id >", "zz = 1", "id"):
        e.show(lambda: s(q).where(bad).limit(1).to_list(), "raises" if bad in (5, []) else "kind")
        e.show(lambda: s().where(bad).limit(1).to_list(), "raises" if bad in (5, []) else "kind")
    e.show(lambda: s(q).select(["id"]).limit(1).to_arrow())
    e.show(lambda: s(q).select(["id", "_distance"]).limit(1).to_arrow())
    e.show(lambda: s(q).select(["_distance", "id"]).limit(1).to_arrow())
    e.show(lambda: s(q).select([]).limit(1).to_arrow(), "kind")
    e.show(lambda: s().select([]).limit(1).to_arrow(), "kind")
    e.show(lambda: s(q).select({"id2": "id * 2", "s": "s"}).limit(1).to_arrow(), "kind")
    e.show(lambda: s(q).select({"renamed": "id", "s": "s"}).limit(1).to_arrow())
    e.show(lambda: s().select({"renamed": "id"}).limit(1).to_arrow())
    e.show(lambda: s().select({"id2": "id * 2"}).limit(2).to_arrow(), "kind")
    e.show(lambda: s().select(["id", "id"]).limit(1).to_arrow(), "kind")
    e.show(lambda: s().select(["nope"]).limit(1).to_arrow(), "kind")
    e.show(lambda: s().select("id"), "same")
    e.show(lambda: s().select(None), "kind")
    e.show(lambda: s().select([5]).to_list(), "raises")
    e.show(lambda: s().select({"a": 5}).to_list(), "raises")
    e.show(lambda: s().select(("id",)), "kind")
    e.show(lambda: s(q).with_row_id(True).limit(1).to_arrow())
    e.show(lambda: s().with_row_id(True).limit(2).to_arrow())
    e.show(lambda: s().with_row_id(True).select(["id"]).limit(2).to_arrow())
    e.show(lambda: s(q).with_row_id(True).select(["id"]).limit(2).to_arrow())
    e.show(lambda: s().with_row_id(False).limit(2).to_arrow())
    e.show(lambda: s().with_row_address().limit(2).to_arrow(), "ours")
    e.show(lambda: s().select(["_rowid"]).limit(2).to_arrow())
    for m in ("l2", "cosine", "dot", "L2", "Cosine", "euclidean", "hamming", "huh", None, 5):
        e.show(lambda: [(r["id"], round(r["_distance"], 4)) for r in s(q).distance_type(m).limit(3).to_list()], "same" if m in ("l2", "cosine", "dot") else "raises" if m in (None, 5) else "kind")
    e.show(lambda: s(q).metric("dot").limit(1).to_list())
    e.show(lambda: s(q).distance_type("huh"), "kind")
    e.show(lambda: s(q).distance_range(0.1, 4.0).to_list())
    e.show(lambda: s(q).distance_range(upper_bound=1.0).to_list())
    e.show(lambda: [r["id"] for r in s(q).distance_range(lower_bound=600.0).to_list()])
    e.show(lambda: s([3.0, 1.0]).distance_range(0.0, 1.0).to_list())
    e.show(lambda: s([3.0, 1.0]).distance_range(upper_bound=0.0).to_list())
    e.show(lambda: s(q).distance_range("a", 1).to_list(), "raises")
    e.show(lambda: s(q).distance_range(5, 1).to_list(), "kind")
    e.show(lambda: s(q).bypass_vector_index().limit(1).to_list())
    e.show(lambda: s(q).nprobes(5).refine_factor(2).ef(10).limit(1).to_list())
    e.show(lambda: s(q).nprobes(0).limit(1).to_list())
    e.show(lambda: s(q).nprobes(-1).limit(1).to_list(), "kind")
    e.show(lambda: s(q).minimum_nprobes(0).limit(1).to_list())
    e.show(lambda: s(q).maximum_nprobes(5).limit(1).to_list())
    e.show(lambda: s(q).maximum_nprobes(0).limit(1).to_list())
    e.show(lambda: s(q).nprobes(30).maximum_nprobes(20).minimum_nprobes(20).limit(1).to_list())
    e.show(lambda: s(q).minimum_nprobes(30).limit(1).to_list())
    e.show(lambda: s(q).refine_factor(0).limit(1).to_list(), "kind")
    e.show(lambda: s(q).refine_factor(-1).limit(1).to_list(), "kind")
    e.show(lambda: s(q).ef(0).limit(1).to_list(), "kind")
    e.show(lambda: s(q).fast_search().limit(1).to_list(), "ours")
    e.show(lambda: s(q).limit(3).to_pandas())
    e.show(lambda: s(q).limit(3).to_df(), "kind")
    e.show(lambda: s(q).limit(3).to_polars())
    e.show(lambda: [b.num_rows for b in s().to_batches(10)])
    e.show(lambda: [b.num_rows for b in s(q).limit(20).to_batches(7)], "kind")
    e.show(lambda: type(s().to_batches()).__name__)
    e.show(lambda: s(q).limit(3).to_batches().read_all())
    e.show(lambda: s(q).output_schema())
    e.show(lambda: s(q).select(["id"]).output_schema())
    e.show(lambda: s().output_schema())
    e.show(lambda: s().select({"x": "id"}).with_row_id(True).output_schema())
    e.show(lambda: s(q).limit(5).where("id > 1").nprobes(5).to_query_object())
    e.show(lambda: s(q).limit(5).offset(3).select(["id"]).with_row_id(True).distance_type("cosine").distance_range(0.1, 2).bypass_vector_index().refine_factor(3).ef(7).where("a = 1", prefilter=False).where("b = 2").to_query_object())
    e.show(lambda: s().to_query_object())
    e.show(lambda: s().limit(5).offset(1).where("id > 1").select({"a": "b"}).to_query_object())
    e.show(lambda: s(q).to_query_object())
    e.show(lambda: type(s(q)).__name__)
    e.show(lambda: type(s()).__name__)
    e.show(lambda: s(q).to_arrow(timeout=dt.timedelta(0)))
    e.show(lambda: s().to_arrow(timeout=dt.timedelta(0)))
    e.show(lambda: s().limit(1).to_arrow(timeout=dt.timedelta(seconds=20)))
    e.show(lambda: s().limit(1).to_arrow(timeout=5), "kind")
    e.show(lambda: s().rerank(None), "kind")
    e.show(lambda: s().text("x"), "kind")
    e.show(lambda: s().vector([1.0]), "kind")
    e.show(lambda: isinstance(s(q).explain_plan(), str))
    e.show(lambda: isinstance(s(q).explain_plan(verbose=True), str))
    e.show(lambda: "KNN" in s(q).explain_plan())
    e.show(lambda: "GlobalLimitExec: skip=1, fetch=1" in s().limit(1).offset(1).explain_plan(), "kind")
    O = e.sub("query").ColumnOrdering
    e.show(lambda: [r["id"] for r in s().order_by([O(column_name="id", ascending=False)]).limit(3).to_list()], "ours")
    e.show(lambda: O(column_name="id"))
    empty = db.create_table("empty", schema=sample().schema)
    e.show(lambda: empty.search(q).to_arrow())
    e.show(lambda: empty.search().to_arrow())
    e.show(lambda: empty.search(q).select(["id"]).with_row_id(True).to_arrow())
    none = db.create_table("none", [{"a": 1}])
    e.show(lambda: none.search(q), "same")
    e.show(lambda: none.search(q).to_list(), "same")
    two = db.create_table("two", pa.table({"v1": flat([1.0, 2.0], 2), "v2": flat([1.0, 2.0], 2), "v3": flat([1.0, 2.0, 3.0], 3)}))
    e.show(lambda: two.search([1.0, 2.0]).to_list(), "same")
    e.show(lambda: two.search([1.0, 2.0, 3.0]).to_list(), "same")
    e.show(lambda: two.search([1.0, 2.0, 3.0, 4.0]).to_list(), "same")
    e.show(lambda: two.search([1.0, 2.0], "v2").to_list(), "same")


@program
def query_types(e):
    db = e.db()
    for i, ty in enumerate([pa.float16(), pa.float32(), pa.float64()]):
        t = db.create_table(f"f{i}", pa.table({"id": [0, 1, 2], "vector": pa.array([[1, 2], None, [3, 4]], pa.list_(ty, 2))}), on_bad_vectors="null")
        e.show(lambda: t.search([1.0, 2.5]).to_arrow())
        e.show(lambda: t.search(np.array([1.0, 2.5], np.float64)).to_arrow())
    u = db.create_table("u8", pa.table({"id": [0, 1], "vector": pa.array([[1, 255], [0, 0]], pa.list_(pa.uint8(), 2))}))
    e.show(lambda: u.search([1, 255]).distance_type("hamming").to_arrow())
    e.show(lambda: u.search(np.array([1, 255], np.uint8)).distance_type("hamming").to_arrow())
    e.show(lambda: u.search([1, 255]).to_arrow(), "kind")
    e.show(lambda: u.search([1, 256]).distance_type("hamming").to_arrow(), "ours")
    mv = db.create_table("mv", pa.table({"id": [0, 1, 2], "vector": pa.array([[[1, 2], [3, 4]], [[5, 6]], [[0, 1]]], pa.list_(pa.list_(pa.float32(), 2)))}))
    r = lambda x: [(y["id"], round(y["_distance"], 4)) for y in x.to_list()]
    e.show(lambda: r(mv.search([1.0, 2.0]).distance_type("cosine")))
    e.show(lambda: r(mv.search([[1.0, 2.0], [1.0, 2.0]]).distance_type("cosine")))
    e.show(lambda: mv.search([[1.0, 2.0], [1.0, 2.0]]).distance_type("cosine").output_schema())
    e.show(lambda: r(mv.search([[1.0, 2.0, 3.0]])), "kind")
    e.show(lambda: r(mv.search([[1.0, 2.0], [1.0]])), "kind")
    e.show(lambda: mv.search([]), "ours")
    nested = db.create_table("nested", pa.table({"m": pa.StructArray.from_arrays([pa.array([1, 2]), flat([1.0, 2.0, 3.0, 4.0], 2)], ["id", "vec"])}))
    e.show(lambda: nested.search([1.0, 2.0]).limit(1).to_list(), "kind")
    e.show(lambda: nested.search([1.0, 2.0], "m.vec").limit(1).to_list(), "kind")
    e.show(lambda: nested.search().select({"i": "m.id"}).to_arrow())
    e.show(lambda: nested.search().select(["m.id"]).to_arrow(), "kind")
    e.show(lambda: nested.to_pandas())
    e.show(lambda: nested.search().to_pandas(flatten=True))
    e.show(lambda: nested.search().to_pandas(flatten=1))
    e.show(lambda: nested.search().to_pandas(flatten=0))
    e.show(lambda: nested.search().to_pandas(flatten=-1))
    e.show(lambda: nested.search().to_pandas(flatten="x"), "kind")
    e.show(lambda: nested.search().to_pandas(blob_mode="huh"))
    e.show(lambda: nested.search().to_pandas(split_blocks=True))


@program
def asynchronous(e):
    L = e.lancedb

    async def go():
        db = await L.connect_async(e.folder)
        out = []

        async def show(call, level="same"):
            async def run():
                r = call()
                return await r if hasattr(r, "__await__") else r
            e._step += 1
            with warnings.catch_warnings(record=True):
                warnings.simplefilter("always")
                value = None
                try:
                    value = await run()
                    text, kind = describe(value), "value"
                except Exception as x:
                    text, kind = str(x), kinds(x)
            text = text.replace(e.folder, "<dir>").replace(f"{e.module}.", "<pkg>.")
            e._out.append({"program": e.name, "step": e._step, "level": level, "kind": kind, "outcome": text, "warnings": []})
            return value

        t = await show(lambda: db.create_table("t", sample()))
        await show(lambda: db.create_table("t", sample()))
        await show(lambda: db.create_table("t", sample(), exist_ok=True))
        await show(lambda: db.create_table("t2", sample(), mode="huh"), "kind")
        await show(lambda: db.create_table("t2"))
        await show(lambda: db.open_table("nope"))
        await show(lambda: db.table_names())
        await show(lambda: db.table_names(start_after="a", limit=1))
        await show(lambda: db.list_tables())
        await show(lambda: (t.name, t.is_open()))
        await show(lambda: t.schema())
        await show(lambda: t.version())
        await show(lambda: t.count_rows())
        await show(lambda: t.count_rows("id = 1"))
        await show(lambda: t.add(sample(1)))
        await show(lambda: t.add([{"zz": 1}]), "kind")
        await show(lambda: t.to_arrow())
        await show(lambda: t.to_pandas())
        await show(lambda: t.head(2))
        await show(lambda: t.delete("id = 0"))
        await show(lambda: t.uri())
        await show(lambda: t.stats())
        await show(lambda: t.embedding_functions())
        await show(lambda: t.query().limit(1).to_list())
        await show(lambda: t.query().where("id > 2").select(["id"]).to_arrow())
        await show(lambda: t.query().where("id > 2").where("id < 4").select(["id"]).to_arrow())
        await show(lambda: t.query().with_row_id().limit(2).to_arrow())
        await show(lambda: t.query().offset(1).limit(2).to_pandas())
        await show(lambda: t.query().limit(2).to_polars())
        await show(lambda: t.query().limit(-1).to_list(), "kind")
        await show(lambda: t.query().limit(None).to_list(), "kind")
        await show(lambda: t.query().limit(0).to_list(), "kind")
        await show(lambda: t.query().select("x"), "kind")
        await show(lambda: t.query().select({"a": "id"}).limit(1).to_list())
        await show(lambda: t.query().nearest_to([1.0, 1.0]).limit(2).to_arrow())
        await show(lambda: t.query().nearest_to([1.0, 1.0]).to_arrow())
        await show(lambda: t.query().nearest_to([[1.0, 1.0], [2.0, 1.0]]).limit(1).to_arrow())
        await show(lambda: t.query().nearest_to(np.array([1.0, 1.0])).column("vector").limit(1).to_list())
        await show(lambda: t.query().nearest_to(None), "kind")
        await show(lambda: t.query().nearest_to([]), "ours")
        await show(lambda: t.query().nearest_to([1.0]).to_list(), "kind")
        await show(lambda: t.vector_search([1.0, 1.0]).limit(1).to_list())
        await show(lambda: t.vector_search([1.0, 1.0]).distance_type("huh"), "kind")
        await show(lambda: t.vector_search([1.0, 1.0]).distance_type("cosine").limit(1).to_list(), "kind")
        await show(lambda: t.vector_search([1.0, 1.0]).distance_range(0.5, 5.0).to_list())
        await show(lambda: t.vector_search([1.0, 1.0]).nprobes(0))
        await show(lambda: t.vector_search([1.0, 1.0]).minimum_nprobes(0))
        await show(lambda: t.vector_search([1.0, 1.0]).maximum_nprobes(5))
        await show(lambda: t.vector_search([1.0, 1.0]).minimum_nprobes(30))
        await show(lambda: t.vector_search([1.0, 1.0]).nprobes(7).refine_factor(2).ef(5).bypass_vector_index().limit(1).to_list())
        await show(lambda: t.vector_search([1.0, 1.0]).where("id > 2").postfilter().limit(2).to_list())
        await show(lambda: t.vector_search([1.0, 1.0]).where("id > 2").limit(2).to_list())
        await show(lambda: t.vector_search([1.0, 1.0]).limit(2).to_query_object())
        await show(lambda: t.query().limit(2).to_query_object())
        await show(lambda: t.query().where("id > 2").to_query_object())
        await show(lambda: t.query().output_schema())
        await show(lambda: t.vector_search([1.0, 1.0]).output_schema())
        s = await t.search([1.0, 1.0])
        await show(lambda: type(s).__name__)
        await show(lambda: s.limit(1).to_list())
        await show(lambda: t.search(), "ours")
        await show(lambda: t.search("abc", query_type="vector"))
        await show(lambda: t.search(5), "raises")
        await show(lambda: t.search(query_type="huh"), "kind")

        async def batches():
            reader = await t.query().to_batches(max_batch_length=2)
            sizes = [b.num_rows async for b in reader]
            return [reader.schema, sum(sizes), max(sizes)]
        await show(batches)

        async def all_():
            reader = await t.query().to_batches()
            return [type(reader).__name__, [b.num_rows for b in await reader.read_all()]]
        await show(all_)
        await show(lambda: t.take_offsets([1, 0]).to_arrow())
        await show(lambda: t.take_row_ids([1]).select(["id"]).to_list())
        await show(lambda: t.take_offsets([1, 0]).with_row_id().to_list())
        await show(lambda: t.tags.create("x", 1))
        await show(lambda: t.tags.list(), "kind")
        await show(lambda: t.tags.get_version("x"))
        await show(lambda: t.tags.get_version("y"))
        await show(lambda: t.tags.update("x", 2))
        await show(lambda: t.checkout("x"))
        await show(lambda: t.add(sample(1)))
        await show(lambda: t.version())
        await show(lambda: t.checkout(1))
        await show(lambda: t.count_rows())
        await show(lambda: t.restore())
        await show(lambda: t.version())
        await show(lambda: t.restore(1))
        await show(lambda: t.checkout_latest())
        await show(lambda: t.restore())
        await show(lambda: t.tags.delete("x"))
        await show(lambda: [v["version"] for v in asyncio.get_event_loop() and []])
        await show(lambda: t.list_indices())
        await show(lambda: t.uses_v2_manifest_paths())
        await show(lambda: repr(t))
        await show(lambda: t.close())
        await show(lambda: t.is_open())
        await show(lambda: t.count_rows())
        await show(lambda: repr(t))
        await show(lambda: db.rename_table("t", "u"))
        await show(lambda: db.drop_table("t"))
        await show(lambda: db.drop_table("t"))
        await show(lambda: db.drop_table("t", ignore_missing=True))
        await show(lambda: db.drop_all_tables())
        with db as same:
            await show(lambda: same is db)
        await show(lambda: db.is_open())
        return out

    asyncio.run(go())


class Mood(str, enum.Enum):
    GOOD = "good"
    BAD = "bad"


class Level(enum.Enum):
    LOW = 1
    HIGH = 2


class Mixed(enum.Enum):
    A = "a"
    B = 2


@program
def models(e):
    import pydantic
    M = e.sub("pydantic")
    db = e.db()
    Vector, MultiVector, LanceModel = M.Vector, M.MultiVector, M.LanceModel

    class Inner(pydantic.BaseModel):
        x: int
        y: Optional[str] = None

    def check(label, make, level="same"):
        e.show(lambda: M.pydantic_to_schema(make()), level, label)

    def model(**fields):
        namespace = {"__annotations__": {k: (v[0] if isinstance(v, tuple) else v) for k, v in fields.items()}, "__module__": __name__}
        namespace.update({k: v[1] for k, v in fields.items() if isinstance(v, tuple)})
        return type("Model", (LanceModel,), namespace)

    simple = {
        "int": int, "float": float, "str": str, "bool": bool, "bytes": bytes, "date": dt.date, "datetime": dt.datetime,
        "list int": List[int], "list str": List[str], "tuple": Tuple[int, ...], "optional": Optional[int], "union none": Union[int, None], "pipe": int | None,
        "inner": Inner, "optional inner": Optional[Inner], "list inner": List[Inner], "optional list": Optional[List[int]], "list optional": List[Optional[int]],
        "optional list inner": Optional[List[Inner]], "pipe list": list[int] | None, "lower list": list[str], "list list": List[List[int]],
        "dict": dict, "Dict": Dict[str, int], "bare list": list, "bare List": List, "mood": Mood, "level": Level, "mixed": Mixed, "optional mood": Optional[Mood],
        "list mood": List[Mood], "any": object, "union": Union[int, str], "time": dt.time, "timedelta": dt.timedelta, "complex": complex,
        "vector": Vector(3), "vector f16": Vector(2, pa.float16()), "vector not null": Vector(2, pa.float32(), False), "vector f64": Vector(2, value_type=pa.float64(), nullable=True),
        "optional vector": Optional[Vector(2)], "multi": MultiVector(2), "multi not null": MultiVector(2, nullable=False), "optional multi": Optional[MultiVector(2)],
        "list vector": List[Vector(2)], "literal": __import__("typing").Literal["a", "b"], "uuid": __import__("uuid").UUID, "decimal": __import__("decimal").Decimal, "np": np.ndarray,
        "tuple two": Tuple[int, str], "tuple same": Tuple[int, int], "set": set, "frozenset": frozenset,
    }
    for label, annotation in simple.items():
        check(label, lambda: model(f=annotation), "kind" if label in ("any", "np", "literal", "union", "set", "frozenset", "time", "timedelta", "complex", "uuid", "decimal", "dict", "Dict", "bare list", "bare List", "bad") else "same")
    check("dict text", lambda: model(f=dict))
    check("bare list text", lambda: model(f=list))
    check("uuid text", lambda: model(f=__import__("uuid").UUID))
    check("bare vector", lambda: model(f=Vector))
    check("tz", lambda: model(f=(dt.datetime, pydantic.Field(json_schema_extra={"tz": "America/New_York"}))))
    check("default", lambda: model(f=(int, 5)))
    check("default none", lambda: model(f=(Optional[int], None)))
    check("alias", lambda: model(f=(int, pydantic.Field(alias="g"))))
    e.show(lambda: Vector(3))
    e.show(lambda: Vector(3).__name__)
    e.show(lambda: (Vector(3).dim(), Vector(3).value_arrow_type(), Vector(3).nullable(), issubclass(Vector(3), M.FixedSizeListMixin)))
    e.show(lambda: MultiVector(3))
    e.show(lambda: (MultiVector(3).dim(), MultiVector(3).value_arrow_type(), MultiVector(3).is_multi_vector()), "same")
    e.show(lambda: Vector("x"), "ours")
    e.show(lambda: Vector(0), "ours")
    e.show(lambda: M.vector(3))
    V = model(v=Vector(2))
    e.show(lambda: V(v=[1, 2]))
    e.show(lambda: V(v=[1]), "same")
    e.show(lambda: V(v=[1, 2, 3]), "kind")
    e.show(lambda: V(v=None), "same")
    e.show(lambda: V(v=["a", "b"]), "kind")
    e.show(lambda: V(v=[1.5, 2]))
    e.show(lambda: V(v=(1.5, 2)), "same")
    e.show(lambda: V(v=np.array([1.5, 2])), "same")
    e.show(lambda: V.model_json_schema())
    W = model(v=MultiVector(2))
    e.show(lambda: W(v=[[1, 2]]))
    e.show(lambda: W(v=[[1]]), "kind")
    e.show(lambda: W(v=[]))
    e.show(lambda: W(v=None), "same")
    e.show(lambda: W.model_json_schema())
    N = model(v=Vector(2, nullable=False))
    e.show(lambda: N(v=None), "kind")
    X = model(v=Optional[Vector(2)])
    e.show(lambda: X(v=None))

    class Doc(LanceModel):
        id: int
        name: Optional[str] = None
        inner: Optional[Inner] = None
        mood: Mood = Mood.GOOD
        vector: Vector(2)

    e.show(lambda: Doc.to_arrow_schema())
    e.show(lambda: Doc.field_names())
    e.show(lambda: list(Doc.safe_get_fields()))
    e.show(lambda: Doc.parse_embedding_functions())
    t = e.show(lambda: db.create_table("t", schema=Doc))
    e.show(lambda: t.schema)
    e.show(lambda: t.add([Doc(id=1, vector=[1, 2]), Doc(id=2, name="x", inner=Inner(x=1), mood=Mood.BAD, vector=[3, 4])]))
    e.show(lambda: t.to_arrow().to_pylist())
    e.show(lambda: t.search().to_pydantic(Doc))
    e.show(lambda: t.search([1.0, 2.0]).limit(1).to_pydantic(Doc))
    e.show(lambda: t.search().to_pydantic(dict), "kind")
    e.show(lambda: t.search().to_pydantic(V), "kind")
    e.show(lambda: db.create_table("t2", [Doc(id=1, vector=[1, 2])]).schema)
    e.show(lambda: db.create_table("t3", [Doc(id=1, vector=[1, 2])], schema=Doc).schema)
    e.show(lambda: db.create_table("t4", schema=Doc.to_arrow_schema()).schema == t.schema)
    e.show(lambda: db.create_table("t5", schema=Inner), "kind")
    e.show(lambda: db.create_table("t6", [Inner(x=1)]), "raises")

    class Book(LanceModel):
        title: str = pydantic.Field(alias="name")
        pages: int

    b = db.create_table("b", schema=Book)
    e.show(lambda: b.add([Book(name="x", pages=1)]))
    e.show(lambda: b.to_arrow())
    e.show(lambda: b.search().to_pydantic(Book), "ours")
    e.show(lambda: M.model_to_dict(Book(name="x", pages=1)))


@program
def package(e):
    L = e.lancedb
    e.show(lambda: L.vector(5))
    e.show(lambda: L.vector(5, pa.float16()))
    e.show(lambda: L.sanitize_uri("~/x").startswith("/"), "kind")
    s = e.show(lambda: type(L.Session()).__name__)
    e.show(lambda: (L.Session(1000, 1000).approx_num_items,))
    e.show(lambda: type(L.Session().size_bytes).__name__)
    e.show(lambda: L.connect(e.folder, session=L.Session()).create_table("s", [{"a": 1}]).count_rows())
    U = e.sub("util")
    for v in ("it's", b"ab", 1, 1.5, True, None, dt.date(2020, 1, 2), dt.datetime(2020, 1, 2, 3, 4, 5, 6), [1, 2], [1.5, "a"], np.array([1, 2]), {"a": 1, "b": "x"}, np.float32(1.5), np.int64(3), pa.scalar(5), object(), np.bool_(True), (1, 2)):
        e.show(lambda: U.value_to_sql(v), "kind" if type(v) is object else "same")
    e.show(lambda: U.join_uri("/a/b", "c", "d"))
    e.show(lambda: U.join_uri("s3://a/b", "c"))
    e.show(lambda: U.get_uri_scheme("s3://a"))
    e.show(lambda: U.get_uri_scheme("/a"))
    e.show(lambda: U.get_uri_scheme("C:\\a"))
    e.show(lambda: U.get_uri_location("file:///a/b"))
    e.show(lambda: U.validate_table_name("a b"))
    e.show(lambda: U.validate_table_name(""))
    e.show(lambda: U.flatten_columns(pa.table({"a": [{"x": 1, "y": {"z": 2}}]}), True))
    e.show(lambda: U.flatten_columns(pa.table({"a": [{"x": 1, "y": {"z": 2}}]}), 1))
    e.show(lambda: U.flatten_columns(pa.table({"a": [{"x": 1}]}), 0))
    e.show(lambda: U.infer_vector_column_name(sample().schema, "vector", [1.0, 2.0], None))
    e.show(lambda: U.infer_vector_column_name(sample().schema, "fts", "x", None))
    e.show(lambda: U.inf_vector_column_query(sample().schema))
    e.show(lambda: U.inf_vector_column_query(pa.schema([("a", pa.int8())])))


def main(argv):
    module, wanted = argv[1], argv[2:]
    out = []
    for name, function in PROGRAMS.items():
        if wanted and name not in wanted:
            continue
        with tempfile.TemporaryDirectory() as folder:
            try:
                function(Env(module, name, folder, out))
            except Exception as x:
                import traceback
                traceback.print_exc()
                out.append({"program": name, "step": "end", "level": "same", "kind": ["crash"], "outcome": f"{type(x).__name__}: {x}", "warnings": []})
    for line in out:
        print(json.dumps(line))


if __name__ == "__main__":
    main(sys.argv)
