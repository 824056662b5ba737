"""Embedding functions: registry, metadata, vectors computed on writing and on searching."""

import json
import os
import pathlib
import subprocess
import threading
from typing import Optional

import glaive
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from glaive.embeddings import EmbeddingFunctionConfig, EmbeddingFunctionRegistry, TextEmbeddingFunction, get_registry, register
from glaive.pydantic import LanceModel, Vector

ROOT = pathlib.Path(__file__).resolve().parents[2]
UPSTREAM = ROOT / ".venv-upstream" / "bin" / "python"


@register("counts")
class Counts(TextEmbeddingFunction):
    """How often each of the first letters comes in a text."""

    letters: int = 4
    secret: Optional[str] = None

    @staticmethod
    def sensitive_keys():
        return ["secret"]

    def ndims(self):
        return self.letters

    def generate_embeddings(self, texts):
        return [np.array([text.count(chr(97 + i)) for i in range(self.letters)], "f4") for text in texts]


@register("odd")
class Odd(TextEmbeddingFunction):
    """Gives what a model that misbehaves gives, as the text says."""

    def ndims(self):
        return 2

    def generate_embeddings(self, texts):
        answers = {"none": None, "short": [1.0], "empty": [], "nan": [float("nan"), 1.0]}
        return [answers.get(text, [float(len(text)), 0.0]) for text in texts]


def model_of(function):
    class Note(LanceModel):
        id: int
        text: str = function.SourceField()
        vec: Vector(function.ndims()) = function.VectorField(default=None)

    return Note


@pytest.fixture
def db():
    return glaive.connect("memory://")


def vectors(table):
    return {row["text"]: row["vec"] for row in table.to_arrow().to_pylist()}


def test_vectors_are_computed_for_rows_that_lack_them(db):
    function = get_registry().get("counts").create()
    Note = model_of(function)
    table = db.create_table("t", schema=Note)
    assert table.schema.field("vec").type == pa.list_(pa.float32(), 4)
    table.add([{"id": 1, "text": "abba"}, {"id": 2, "text": "d"}])
    table.add(pd.DataFrame({"id": [3], "text": ["cc"]}))
    table.add(iter([pa.table({"text": ["dada"], "id": [4]}).to_batches()[0]]))
    table.add([Note(id=5, text="aaa"), Note(id=6, text="bb")])
    table.add([{"id": 7, "text": "given", "vec": [9, 9, 9, 9]}])
    table.add(pa.table({"id": [8], "text": ["null"], "vec": pa.nulls(1)}))
    assert vectors(table) == {
        "abba": [2, 2, 0, 0],
        "d": [0, 0, 0, 1],
        "cc": [0, 0, 2, 0],
        "dada": [2, 0, 0, 2],
        "aaa": [3, 0, 0, 0],
        "bb": [0, 2, 0, 0],
        "given": [9, 9, 9, 9],
        "null": [0, 0, 0, 0],
    }
    assert table.search("abab").limit(2).to_arrow()["text"].to_pylist()[0] == "abba"
    assert table.search("abab").limit(3).to_arrow() == table.search([2, 2, 0, 0]).limit(3).to_arrow()
    assert table.search("ccc", query_type="vector", vector_column_name="vec").limit(1).to_list()[0]["text"] == "cc"


def test_functions_given_to_create_table(db):
    conf = EmbeddingFunctionConfig(vector_column="vec", source_column="text", function=Counts.create(letters=2))
    table = db.create_table("t", [{"text": "ab"}, {"text": "b"}], embedding_functions=[conf])
    assert table.schema.field("vec").type == pa.list_(pa.float32(), 2)
    assert vectors(table) == {"ab": [1, 1], "b": [0, 1]}
    assert table.embedding_functions == {"vec": conf}
    with pytest.raises(ValueError, match="'text'.*neither"):
        db.create_table("t2", [{"other": 1}], embedding_functions=[conf])
    empty = db.create_table("t3", schema=pa.schema({"text": pa.string()}), embedding_functions=[conf])
    empty.add([{"text": "aa"}])
    assert vectors(empty) == {"aa": [2, 0]}


@pytest.mark.parametrize("bad", ["none", "short", "empty", "nan"])
def test_bad_answers_of_a_function_go_by_the_policy(db, bad):
    table = db.create_table("t", schema=model_of(Odd.create(max_retries=0)))
    rows = [{"id": 1, "text": "fine"}, {"id": 2, "text": bad}]
    with pytest.raises(ValueError, match="vec"):
        table.add(rows)
    assert table.version == 1
    table.add(rows, on_bad_vectors="drop")
    assert vectors(table) == {"fine": [4, 0]}
    table.add(rows, on_bad_vectors="null", mode="append")
    assert vectors(table) == {"fine": [4, 0], bad: None}


def test_variables_and_secrets():
    registry = get_registry()
    assert registry is EmbeddingFunctionRegistry.get_instance()
    with pytest.raises(ValueError, match="Variable 'unset' not found in registry"):
        Counts.create(letters="$var:unset")
    assert Counts.create(letters="$var:unset:7").letters == 7
    registry.set_var("token", "hidden")
    function = Counts.create(secret="$var:token")
    assert function.secret == "hidden" and function.safe_model_dump() == {"secret": "$var:token"}
    with pytest.raises(ValueError, match="Sensitive key 'secret' cannot be set to a hardcoded value"):
        Counts.create(secret="hidden")
    conf = EmbeddingFunctionConfig(vector_column="v", source_column="t", function=function)
    text = registry.get_table_metadata([conf])["embedding_functions"]
    assert "hidden" not in text and json.loads(text)[0]["model"] == {"secret": "$var:token"}
    parsed = registry.parse_functions({b"embedding_functions": text.encode()})
    assert parsed["v"].function.secret == "hidden"
    assert registry.get_table_metadata([]) is None and registry.parse_functions(None) == {}
    with pytest.raises(KeyError):
        registry.get("nobody")
    with pytest.raises(TypeError):
        registry.register("x")(int)
    with pytest.raises(NotImplementedError, match="OpenAIEmbeddings"):
        registry.get("openai").create(name="x")


def test_a_table_whose_function_is_not_here_takes_rows_that_bring_vectors(db):
    metadata = [{"name": "elsewhere", "model": {}, "source_column": "text", "vector_column": "vec"}]
    schema = pa.schema({"text": pa.string(), "vec": pa.list_(pa.float32(), 2)}, {"embedding_functions": json.dumps(metadata)})
    table = db.create_table("t", schema=schema)
    table.add([{"text": "a", "vec": [1, 2]}])
    assert vectors(table) == {"a": [1, 2]}
    with pytest.raises(KeyError, match="elsewhere"):
        table.add([{"text": "b"}])
    assert table.count_rows() == 1


def test_failing_calls_are_tried_again(db, monkeypatch):
    monkeypatch.setattr("time.sleep", lambda seconds: None)
    failures = [RuntimeError("busy"), RuntimeError("busy")]

    @register("shaky")
    class Shaky(Counts):
        def generate_embeddings(self, texts):
            if failures:
                raise failures.pop()
            return super().generate_embeddings(texts)

    table = db.create_table("t", schema=model_of(Shaky.create()))
    table.add([{"id": 1, "text": "ad"}])
    assert vectors(table) == {"ad": [1, 0, 0, 1]} and not failures
    failures.extend([RuntimeError("busy")] * 3)
    table = db.create_table("t2", schema=model_of(Shaky.create(max_retries=1)))
    with pytest.raises(Exception, match="retries"):
        table.add([{"id": 1, "text": "ad"}])
    assert len(failures) == 1 and table.count_rows() == 0


def test_async_search_computes_on_threads_of_its_own():
    import asyncio

    names = []

    @register("spy")
    class Spy(Counts):
        def compute_query_embeddings(self, query, *args, **kwargs):
            names.append(threading.current_thread().name)
            return super().compute_query_embeddings(query)

    async def main():
        db = await glaive.connect_async("memory://")
        table = await db.create_table("t", schema=model_of(Spy.create()))
        await table.add([{"id": 1, "text": "a"}, {"id": 2, "text": "b"}])
        assert (await table.embedding_functions())["vec"].source_column == "text"
        found = await (await table.search("bb")).limit(1).to_list()
        assert found[0]["text"] == "b"

    asyncio.run(main())
    assert len(names) == 1 and "embedding" in names[0]


@pytest.mark.skipif(not UPSTREAM.exists(), reason="needs .venv-upstream")
def test_the_real_package_reads_and_feeds_such_a_table(tmp_path):
    db = glaive.connect(tmp_path)
    table = db.create_table("t", schema=model_of(Counts.create(letters=3)))
    table.add([{"id": 1, "text": "abc"}])
    code = f"""
import lancedb
from lancedb.embeddings import TextEmbeddingFunction, register
@register("counts")
class Counts(TextEmbeddingFunction):
    letters: int = 4
    def ndims(self): return self.letters
    def generate_embeddings(self, texts): return [[float(t.count(chr(97 + i))) for i in range(self.letters)] for t in texts]
t = lancedb.connect({str(tmp_path)!r}).open_table("t")
t.add([{{"id": 2, "text": "ccc"}}])
print(t.search("abc").limit(1).to_list()[0]["id"], t.embedding_functions["vec"].function.letters)
"""
    done = subprocess.run([str(UPSTREAM), "-c", code], capture_output=True, text=True, env=dict(os.environ, PYTHONPATH=""))
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["1", "3"]
    table.checkout_latest()
    assert vectors(table) == {"abc": [1, 1, 1], "ccc": [0, 0, 3]}
