"""Modules that programs written for the LanceDB API import: they are there, and say what they cannot do when it is used."""

import importlib
import json
import os
import pathlib
import pickle
import subprocess
import sys

import glaive
import pytest
from glaive import _not_built

ROOT = pathlib.Path(__file__).resolve().parents[2]
UPSTREAM = ROOT / ".venv-upstream" / "bin" / "python"


def run(code, *paths, python=sys.executable):
    environ = dict(os.environ, PYTHONPATH=os.pathsep.join(str(ROOT / p) for p in paths))
    done = subprocess.run([str(python), "-c", code], capture_output=True, text=True, timeout=120, env=environ)
    assert done.returncode == 0, done.stderr[-4000:]
    return done.stdout


@pytest.mark.parametrize("module", sorted(_not_built.MODULES))
def test_importing_works_and_use_names_itself(module):
    loaded = importlib.import_module(f"glaive.{module}")
    for name in _not_built.MODULES[module].split():
        thing = getattr(loaded, name)
        if getattr(thing, "__doc__", "") is None or "Not supported yet" not in (thing.__doc__ or ""):
            continue  # built meanwhile
        with pytest.raises(NotImplementedError, match=name):
            thing()


def test_placeholder_classes_may_be_derived_from_and_decorate_nothing():
    from glaive.rerankers import Reranker
    from glaive.rerankers.base import Reranker as Same

    assert Reranker is Same

    class Mine(Reranker):
        def rerank_hybrid(self, query, vector_results, fts_results):
            return vector_results

    assert not isinstance(1, Mine)
    with pytest.raises(NotImplementedError, match="Mine.*Reranker"):
        Mine()


def test_unknown_names_and_modules_stay_unknown():
    with pytest.raises(ImportError):
        importlib.import_module("glaive.rerankers.nothing")
    with pytest.raises(AttributeError, match="Nothing"):
        importlib.import_module("glaive.rerankers").Nothing
    with pytest.raises(AttributeError):
        glaive.query.Nothing


NAMES = """
import importlib, inspect, json, pkgutil
out = {}
for package in ("lancedb", "lance"):
    top = importlib.import_module(package)
    out[package] = sorted(n for n in getattr(top, "__all__", []))
    for found in pkgutil.walk_packages(top.__path__, package + ".", onerror=lambda name: None):
        try:
            module = importlib.import_module(found.name)
        except Exception:
            continue
        out[found.name] = sorted(
            n for n, v in vars(module).items() if not n.startswith("_") and inspect.isclass(v) and v.__module__ == found.name
        )
print(json.dumps(out))
"""
# Test support of the package itself, and the insides of its compiled part.
INSIDE = ("conftest", "_datagen", "_dataset", "_arrow", "_wal_hybrid", "lance.lance", "gte_mlx_model", "bench_utils")


@pytest.mark.skipif(not UPSTREAM.exists(), reason="needs .venv-upstream")
def test_every_module_and_class_of_the_real_packages_can_be_imported():
    real = json.loads(run(NAMES, python=UPSTREAM))
    wanted = {m: names for m, names in real.items() if not any(part in m for part in INSIDE)}
    assert len(wanted) > 90 and "lancedb.rerankers.rrf" in wanted and "lance.sampler" in wanted
    code = f"""
import importlib
wanted = {wanted!r}
missing = []
for module, names in wanted.items():
    try:
        loaded = importlib.import_module(module)
    except ImportError as e:
        missing.append(f"{{module}}: {{e}}")
        continue
    missing += [f"{{module}}.{{name}}" for name in names if not hasattr(loaded, name)]
print(missing)
"""
    missing = run(code, "python/dropin", "python").strip()
    assert missing == "[]", missing


# --- what is built ------------------------------------------------------------------------------------------


def test_index_descriptions_have_the_fields_and_defaults_of_the_real_package():
    code = """
import dataclasses, {0}.index as m
print(sorted((n, [(f.name, repr(f.default).partition(':')[0]) for f in dataclasses.fields(c)]) for n, c in vars(m).items()
             if dataclasses.is_dataclass(c)))
"""
    ours = run(code.format("glaive"), "python")
    assert "num_sub_vectors" in ours and "ef_construction" in ours
    if UPSTREAM.exists():
        assert ours == run(code.format("lancedb"), python=UPSTREAM)


FULL_TEXT = """
from {0}.query import *
from {0}.query import BooleanQuery, BoostQuery, DocumentGranularity, FullTextOperator, MatchQuery, MultiMatchQuery, Occur, PhraseQuery
q = MatchQuery("caf\u00e9 noir", "text")
for x in (
    q,
    MatchQuery("a", "b", boost=2, fuzziness=None, max_expansions=7, operator=FullTextOperator.AND, prefix_length=1),
    MatchQuery("x", "t", document_granularity=DocumentGranularity.LIST_ELEMENT),
    PhraseQuery("a b", "t", slop=2),
    BoostQuery(q, PhraseQuery("x", "t"), negative_boost=0.25),
    MultiMatchQuery("a", ["x", "y"], boosts=[1, 2]),
    q & PhraseQuery("z", "t"),
    q | q,
    BooleanQuery([(Occur.MUST_NOT, q), (Occur.SHOULD, q | q)]),
):
    print(repr(x), x.query_type().value, x.to_json())
"""


def test_full_text_queries_print_and_serialize_as_in_the_real_package():
    ours = run(FULL_TEXT.replace("fuzziness=None", "fuzziness=2").format("glaive"), "python")
    assert '{"match":{"column":"text","terms":"café noir","boost":1.0,' in ours
    if UPSTREAM.exists():
        assert ours == run(FULL_TEXT.replace("fuzziness=None", "fuzziness=2").format("lancedb"), python=UPSTREAM)


def test_full_text_queries_check_what_they_are_made_of():
    from glaive.query import BooleanQuery, BoostQuery, MatchQuery, MultiMatchQuery

    for wrong in (
        lambda: MatchQuery(1, "t"),
        lambda: MatchQuery("a", "t", operator="XOR"),
        lambda: BoostQuery("a", "b"),
        lambda: BooleanQuery([("SOMETIMES", MatchQuery("a", "t"))]),
        lambda: BooleanQuery([("MUST", "a")]),
        lambda: MultiMatchQuery("a", []).to_json(),
        lambda: MultiMatchQuery("a", ["x"], boosts=[1, 2]).to_json(),
    ):
        with pytest.raises(ValueError):
            wrong()


def test_client_errors_survive_pickling():
    from glaive.remote.errors import HttpError, LanceDBClientError, RetryError

    for error in (
        LanceDBClientError("a", "r1"),
        HttpError("not there", "r2", 404),
        RetryError("gave up", "r3", 1, 2, 3, 4, 5, 6, 503),
    ):
        copy = pickle.loads(pickle.dumps(error))
        assert type(copy) is type(error) and str(copy) == str(error) and vars(copy) == vars(error)
        assert isinstance(copy, RuntimeError)


def test_client_settings():
    from datetime import timedelta

    from glaive.remote import ClientConfig, OAuthConfig, TimeoutConfig
    from glaive.remote.header import OAuthProvider, StaticHeaderProvider

    config = ClientConfig(retry_config={"retries": 3}, timeout_config={"read_timeout": 2.5}, tls_config={"cert_file": "c"})
    assert config.retry_config.retries == 3 and config.timeout_config.read_timeout == timedelta(seconds=2.5)
    assert config.tls_config.assert_hostname is True
    with pytest.raises(ValueError, match="timeout"):
        TimeoutConfig(timeout="soon")
    assert "hidden" not in repr(OAuthConfig("i", "c", [], client_secret="hidden"))
    assert StaticHeaderProvider({"a": "b"}).get_headers() == {"a": "b"}
    answers = iter([{"access_token": "one", "expires_in": 1}, {"access_token": "two"}, {}])
    provider = OAuthProvider(lambda: next(answers), refresh_buffer_seconds=5)
    assert [provider.get_headers()["Authorization"] for _ in range(3)] == ["Bearer one", "Bearer two", "Bearer two"]
    with pytest.raises(ValueError, match="access_token"):
        OAuthProvider(lambda: {}).get_headers()


def test_optional_packages_are_told_without_importing_them():
    code = """
import sys, glaive.dependencies as d
assert d._NUMPY_AVAILABLE and not d._TENSORFLOW_AVAILABLE and "pandas" not in sys.modules
assert not d._check_for_pandas([1])
frame = d.pandas.DataFrame({"a": [1]})
assert d._check_for_pandas(frame) and not d._check_for_polars(frame) and "pandas" in sys.modules
try:
    d.tensorflow.constant
except ModuleNotFoundError as e:
    print(e)
"""
    assert "tensorflow" in run(code, "python")
