"""Tokens that our writer makes of texts, against the real tokenizers: random characters, settings and words of all languages.
What was recorded of the same kind stands in tests/golden/text."""

import json
import pathlib
import random
import re

import pyarrow as pa
import pytest
from testing import SOAK

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
SHARD = "aa48498d-ac91-59e2-8452-69f46010ace2"
LANGUAGES = ("Arabic Danish Dutch English Finnish French German Greek Hungarian Italian Norwegian Portuguese Romanian Russian "
             "Spanish Swedish Tamil Turkish").split()

GOLDEN = f"import sys\nsys.path.insert(0, {str(ROOT / 'tests/golden/text')!r})\nimport make_tokens\n"

EXPECTED = GOLDEN + "return make_tokens.index_tokens(texts, params)[0]"

CREATE = """
key = {"lance-schema:unenforced-primary-key": "true"}
schema = pa.schema([pa.field("id", pa.int64(), False, key), pa.field("text", pa.string())])
ds = lance.write_dataset(pa.Table.from_pylist([{"id": -1, "text": "base"}], schema=schema), path)
ds.create_scalar_index("text", "INVERTED", name="words", with_position=True, **params)
ds.initialize_mem_wal(unsharded=True, maintained_indexes=["words"])
"""

WRITE = """
ds = lance.dataset(path)
with ds.mem_wal_writer(shard) as writer:
    writer.put(pa.Table.from_pylist([{"id": i, "text": t} for i, t in enumerate(texts)], schema=ds.schema))
"""

WRITTEN = f"import sys\nsys.path.insert(0, {str(ROOT / 'tests/interop')!r})\n" + """
import fts_files, glob
[generation] = glob.glob(f"{path}/_mem_wal/{shard}/*_gen_*")
return fts_files.read_index(fts_files.index_directory(generation, "words"))["parts"][0]["texts"]
"""


def stop_words():
    source = (ROOT / "src/index/text/stop_words.cc").read_text(encoding="utf-8")
    return {name: re.findall(r'"([^"]*)"', body) for name, body in re.findall(r"k(\w+)\[\] = \{(.*?)\};", source, re.S)}


def words(rng, own):
    """With the endings of a language."""
    return "".join(rng.choice(own) for _ in range(rng.randrange(1, 4)))


def any_text(rng, own):
    if rng.random() < 0.5:
        out = [words(rng, own) for _ in range(rng.randrange(12))]
        return " ".join(w.upper() if rng.random() < 0.2 else w for w in out)
    codes = [(0x20, 0x7E), (0xA0, 0x24F), (0x250, 0x1FFF), (0x2000, 0x33FF), (0x4E00, 0x9FFF), (0xA000, 0xD7FF), (0xE000, 0xFFFD),
             (0x10000, 0x10FFFF)]
    return "".join(" " if rng.random() < 0.2 else chr(rng.randint(*rng.choice(codes))) for _ in range(rng.randrange(40)))


def any_params(rng, language):
    params = {"language": language}
    for name, values in {
        "base_tokenizer": ["simple", "simple", "whitespace", "raw", "ngram"], "stem": [True, False], "lower_case": [True, False],
        "remove_stop_words": [True, False], "ascii_folding": [True, False], "max_token_length": [None, 40, 6],
    }.items():
        if rng.random() < 0.6:
            params[name] = rng.choice(values)
    if params.get("base_tokenizer") == "ngram":
        least = rng.randrange(1, 4)
        params |= {"min_ngram_length": least, "max_ngram_length": least + rng.randrange(3), "prefix_only": rng.random() < 0.5}
    return params


@pytest.mark.parametrize("number", range(60 if SOAK else 6))
def test_tokens_of_random_texts(sides, seed, tmp_path, number):
    rng = random.Random(f"{seed} {number}")
    language = rng.choice(LANGUAGES)
    params = any_params(rng, language)
    own = stop_words()[language]
    texts = ["base"] + [any_text(rng, own) for _ in range(150)]
    path = str(tmp_path / "t")
    want = sides["theirs"].run(EXPECTED, texts=texts, params=params)
    sides["theirs"].run(CREATE, path=path, params=params)
    sides["ours"].run(WRITE, path=path, shard=SHARD, texts=texts)
    got = sides["theirs"].run(WRITTEN, path=path, shard=SHARD)
    for i, text in enumerate(texts):
        assert got.get(i, []) == want[i], (params, text)


def test_stop_words_are_those_of_the_real_package(theirs):
    """Each language, over the words of all of them."""
    lists = stop_words()
    assert sorted(lists) == LANGUAGES
    every = sorted(set().union(*lists.values()) | {"no", "not", "nor", "nicht", "kein", "dog"})
    for language in LANGUAGES:
        params = {"language": language, "base_tokenizer": "raw", "stem": False, "ascii_folding": False, "max_token_length": None}
        tokens = theirs.run(EXPECTED, texts=every, params=params)
        assert [w for w, found in zip(every, tokens) if not found] == sorted(lists[language])


def test_golden_answers_are_those_of_the_real_package(theirs):
    cases = json.loads((ROOT / "tests/golden/text/tokens.json").read_text(encoding="utf-8"))
    for case in random.Random(1).sample(cases, 5):
        params = {k: v for k, v in case["params"].items() if k not in ("lance_tokenizer", "with_position") and "_length" not in k}
        params |= {k: v for k, v in case["params"].items() if "ngram_length" in k or k == "max_token_length"}
        tokens = theirs.run(EXPECTED, texts=case["texts"], params=params)
        assert [[list(t) for t in found] for found in tokens] == case["tokens"]
