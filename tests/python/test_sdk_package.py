"""The package itself: quick import, the surface of the LanceDB API, the names lancedb and lance."""

import importlib
import inspect
import json
import os
import pathlib
import subprocess
import sys

import glaive
import glaive.pydantic
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
UPSTREAM = ROOT / ".venv-upstream" / "bin" / "python"


def child(code, *paths, python=sys.executable):
    environ = dict(os.environ, PYTHONPATH=os.pathsep.join(map(str, paths)))
    done = subprocess.run([str(python), "-c", code], capture_output=True, text=True, timeout=120, env=environ)
    assert done.returncode == 0, done.stderr[-4000:]
    return done.stdout.strip()


def test_import_brings_nothing_heavy():
    heavy = "pandas polars pydantic pyarrow numpy asyncio torch duckdb tqdm lance lancedb".split()
    assert child(f"import sys, glaive; print([m for m in {heavy} if m in sys.modules])", ROOT / "python") == "[]"


def test_import_brings_few_modules():
    # What it takes in time is measured in bench/ (at most 150 ms); what makes it take longer is seen here.
    code = "import sys; before = set(sys.modules); import glaive; print(len(set(sys.modules) - before))"
    assert int(child(code, ROOT / "python")) <= 130


def test_all_names_exist():
    for name in glaive.__all__:
        assert getattr(glaive, name) is not None
    assert child("from glaive import *; print(Table.__name__, connect.__name__)", ROOT / "python") == "Table connect"


SURFACE = """
import importlib, inspect, json
out = {}
for module, name in %r:
    cls = getattr(importlib.import_module(module), name)
    out[module + name] = {}
    for member in dir(cls):
        if member.startswith("_") and member not in ("__init__", "__len__", "__getitem__", "__contains__", "__getitems__"): continue
        value = inspect.getattr_static(cls, member)
        if isinstance(value, (classmethod, staticmethod)): value = value.__func__
        if hasattr(value, "__wrapped__") and not inspect.isfunction(value): value = value.__wrapped__
        if not inspect.isfunction(value):
            out[module + name][member] = None
            continue
        # functions made by decorators show the signature of what they wrap
        out[module + name][member] = [[p.name, str(p.kind), repr(p.default)] for p in inspect.signature(value).parameters.values()]
        out[module + name][member].append(inspect.iscoroutinefunction(value))
print(json.dumps(out))
"""

CLASSES = [
    ("lancedb", "AsyncJob"),
    ("lancedb", "DBConnection"),
    ("lancedb", "Job"),
    ("lancedb._blob", "BlobFile"),
    ("lancedb.db", "LanceDBConnection"),
    ("lancedb.db", "AsyncConnection"),
    ("lancedb.integrations.pyarrow", "PyarrowDatasetAdapter"),
    ("lancedb.integrations.pyarrow", "PyarrowScannerAdapter"),
    ("lancedb.merge", "LanceMergeInsertBuilder"),
    ("lancedb.namespace", "AsyncLanceNamespaceDBConnection"),
    ("lancedb.namespace", "LanceNamespaceDBConnection"),
    ("lancedb.table", "LanceTable"),
    ("lancedb.table", "AsyncTable"),
    ("lancedb.table", "Table"),
    ("lancedb.table", "Tags"),
    ("lancedb.table", "AsyncTags"),
    ("lancedb.query", "LanceVectorQueryBuilder"),
    ("lancedb.query", "LanceEmptyQueryBuilder"),
    ("lancedb.query", "LanceTakeQueryBuilder"),
    ("lancedb.query", "AsyncQuery"),
    ("lancedb.query", "AsyncVectorQuery"),
    ("lancedb.query", "AsyncTakeQuery"),
    ("lance", "LanceDataset"),
    ("lance", "LanceFragment"),
    ("lance", "LanceScanner"),
    ("lance.blob", "BlobFile"),
    ("lance.dataset", "MergeInsertBuilder"),
    ("lance.dataset", "ScannerBuilder"),
    ("lance.dataset", "Tags"),
    ("lance.file", "LanceFileReader"),
    ("lance.file", "LanceFileWriter"),
    ("lance.optimize", "Compaction"),
]
# Ways into the inside of the package, which differ, and a coroutine that is none there by mistake.
INSIDE = {("LanceTable", "from_inner")} | {
    (name, "__init__")
    for name in ("AsyncConnection", "AsyncJob", "AsyncTable", "BlobFile", "Job", "LanceMergeInsertBuilder", "LanceScanner", "MergeInsertBuilder", "Tags")
}
# The base class there knows arguments that no local table has.
BASE = {("Table", "take_offsets"), ("Table", "take_row_ids"), ("Table", "to_polars")}
COROUTINES = {("AsyncConnection", "drop_database")}


# Optional keywords of ours that the real packages do not have.
MORE_KEYWORDS = {"checkpoint_lsm": ("timeout", "progress"), "mem_wal_writer": ("durability", "write_generation")}


@pytest.fixture(scope="module")
def surface():
    if not UPSTREAM.exists():
        pytest.skip("needs .venv-upstream")
    return json.loads(child(SURFACE % (CLASSES,), python=UPSTREAM))


def is_refusal(function):
    return function.__doc__ is not None and function.__doc__.startswith("Not supported yet")


@pytest.mark.parametrize("module,name", CLASSES)
def test_members_and_signatures(surface, module, name):
    ours_in = module.replace("lancedb", "glaive") if module.startswith("lancedb") else f"glaive.{module}"
    cls = getattr(importlib.import_module(ours_in), name)
    wrong = []
    for member, expected in surface[module + name].items():
        if (name, member) in INSIDE | BASE:
            continue
        if not hasattr(cls, member):
            wrong.append(f"{member} is missing")
            continue
        ours = inspect.getattr_static(cls, member)
        if isinstance(ours, (classmethod, staticmethod)):
            ours = ours.__func__
        if expected is None or not inspect.isfunction(ours) or is_refusal(ours):
            continue
        *parameters, coroutine = expected
        more = MORE_KEYWORDS.get(member, ())
        # Code in C has no names for the receiver.
        expected_names = [[n, "POSITIONAL_OR_KEYWORD" if n == "self" else k, d] for n, k, d in parameters]
        got = [[p.name, "POSITIONAL_OR_KEYWORD" if p.name == "self" else str(p.kind), repr(p.default)] for p in inspect.signature(ours).parameters.values() if p.name not in more]
        if got != expected_names:
            wrong.append(f"{member}: {got} instead of {parameters}")
        if inspect.iscoroutinefunction(ours) != coroutine and (name, member) not in COROUTINES:
            wrong.append(f"{member}: coroutine or not")
    assert not wrong, "\n".join(wrong)


FUNCTIONS = """
import inspect, json, lancedb, lancedb.pydantic
show = lambda f: [[p.name, str(p.kind), repr(p.default)] for p in inspect.signature(f).parameters.values()]
print(json.dumps([show(f) for f in (lancedb.connect, lancedb.connect_async, lancedb.deserialize_conn, lancedb.vector, lancedb.pydantic.Vector, lancedb.pydantic.MultiVector)]))
"""


def test_functions():
    if not UPSTREAM.exists():
        pytest.skip("needs .venv-upstream")
    ours = json.loads(child(FUNCTIONS.replace("lancedb", "glaive"), ROOT / "python"))
    assert ours == json.loads(child(FUNCTIONS, python=UPSTREAM))


def test_what_is_not_built_says_so():
    for name in ("tokenize", "udf", "connect_catalog"):
        with pytest.raises(NotImplementedError, match=f"^{name} is not supported yet"):
            getattr(glaive, name)("x")
    with pytest.raises(NotImplementedError, match="db://"):
        glaive.connect("db://x", api_key="k")


def test_the_names_lancedb_and_lance():
    code = """
import sys
sys.modules["no"] = None
import lancedb, glaive, lancedb.pydantic, glaive.pydantic
from lancedb.query import Query
from lancedb.pydantic import LanceModel, Vector
from lancedb import connect, vector, Table
import lancedb.db, lancedb.table
assert lancedb.pydantic is glaive.pydantic and connect is glaive.connect and Query is glaive.query.Query
assert lancedb.table.LanceTable is glaive.table.LanceTable and glaive.pydantic.__spec__.name == "glaive.pydantic"
assert lancedb.__version__ == glaive.__version__ and "connect_async" in dir(lancedb)
try:
    import lancedb.nothing
except ModuleNotFoundError as e:
    print("fine")
"""
    assert child(code, ROOT / "python", ROOT / "python" / "dropin") == "fine"


def test_lance_stands_for_the_dataset_level():
    code = "import lance, glaive.lance; assert lance.dataset is glaive.lance.dataset; print('fine')"
    assert child(code, ROOT / "python", ROOT / "python" / "dropin") == "fine"
