"""Records what the tokenizers of the real pylance make of texts, in each setting: tokens.json.

    .venv-upstream/bin/python tests/golden/text/make_tokens.py

An index is made over the texts, and its files are taken apart (tests/interop/fts_files.py).
"""

import json
import pathlib
import random
import re
import shutil
import sys
import tempfile

import lance
import pyarrow as pa

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent.parent / "interop"))
import fts_files  # noqa: E402

LANGUAGES = ("Arabic Danish Dutch English Finnish French German Greek Hungarian Italian Norwegian Portuguese Romanian Russian "
             "Spanish Swedish Tamil Turkish").split()
STOP_WORDS = HERE.parent.parent.parent / "src/index/text/stop_words.cc"

TEXTS = [
    "The running dogs aren't quick: they RUN!",
    "x86-64 costs $3.14, e.g. 10% of stop_words",
    "  \t two\u00a0spaces\u2003wide\x0bvertical\nline\x1fseparators ",
    "naïve Café ÆSIR œuvre straße ŁÓDŹ Đorđe þing ħ ŋ ĸ ſ ﬁnal ﬃ ½ ² ㎏ Ⅷ ①",
    "İstanbul ISPARTA ıssız ΣΊΣΥΦΟΣ Ǆungla ǅ ẞ K Å",
    "e\u0301cole n\u0303 a\u0308\u0323 \u0301lone Zo\u00eb",
    "日本語の文章 です。 中文 字符 한국어 단어들 ไทย हिन्दी শব্দ தமிழ்",
    "emoji 😀 flags 🇩🇪 family 👨‍👩‍👧 math 𝐇𝐞𝐥𝐥𝐨 𝟙𝟚 old 𐐀𐐁 \U0001f100",
    "user@example.com https://example.com/a?b=c&d=e #tag @name C++ C# .NET",
    "a" * 39 + " " + "b" * 40 + " " + "é" * 19 + " " + "é" * 20 + " " + "c" * 300,
    "", " ", "...", "the", "no not nor never",
    "١٢٣ ４５６ Ⅻ ๑๒ ⅕",
    "zero\u200bwidth soft\u00adhyphen joiner\u200dtest \ufeffbom",
    "Internationalization nationally hopping hoped hoping sky skies news emergency added ebb",
]

SETTINGS = [
    {},
    {"stem": False},
    {"stem": False, "remove_stop_words": False},
    {"stem": False, "remove_stop_words": False, "ascii_folding": False},
    {"stem": False, "remove_stop_words": False, "ascii_folding": False, "lower_case": False},
    {"lower_case": False},
    {"max_token_length": None},
    {"max_token_length": 4, "stem": False},
    {"max_token_length": 1},
    {"custom_stop_words": ["run", "QUICK", "dog", "école", "ecole", ""]},
    {"custom_stop_words": []},
    {"custom_stop_words": ["run"], "remove_stop_words": False},
    {"base_tokenizer": "whitespace"},
    {"base_tokenizer": "whitespace", "stem": False, "remove_stop_words": False, "max_token_length": None},
    {"base_tokenizer": "raw"},
    {"base_tokenizer": "raw", "stem": False, "remove_stop_words": False, "max_token_length": None, "lower_case": False},
    {"base_tokenizer": "ngram"},
    {"base_tokenizer": "ngram", "min_ngram_length": 1, "max_ngram_length": 2},
    {"base_tokenizer": "ngram", "min_ngram_length": 2, "max_ngram_length": 5, "prefix_only": True},
    {"base_tokenizer": "ngram", "min_ngram_length": 2, "max_ngram_length": 2, "stem": True, "remove_stop_words": True},
]


def index_tokens(texts, params):
    """([[[position, token]] per text], the params that the index file names)"""
    directory = tempfile.mkdtemp()
    try:
        dataset = lance.write_dataset(pa.table({"text": pa.array(texts, pa.string())}), directory + "/t",
                                     max_rows_per_file=1 << 22)
        dataset.create_scalar_index("text", "INVERTED", name="f", with_position=True, **params)
        read = fts_files.read_index(fts_files.index_directory(directory + "/t", "f"))
        found = {row: tokens for part in read["parts"] for row, tokens in part["texts"].items()}
        return [found.get(i, []) for i in range(len(texts))], json.loads(read["metadata"]["params"])
    finally:
        shutil.rmtree(directory)


def words_of(language):
    source = STOP_WORDS.read_text(encoding="utf-8")
    body = re.search(r"k%s\[\] = \{(.*?)\};" % language, source, re.S)[1]
    return re.findall(r'"([^"]*)"', body)


def random_texts(rng):
    """Characters of all kinds beside each other."""
    ranges = [(0x20, 0x7E), (0x20, 0x7E), (0xA0, 0x24F), (0x250, 0x58F), (0x590, 0x9FF), (0xA00, 0x1FFF), (0x2000, 0x2BFF),
              (0x3000, 0x30FF), (0x4E00, 0x9FFF), (0xA640, 0xABFF), (0xF900, 0xFFFD), (0x10000, 0x1FAFF), (0x20000, 0x323AF)]
    for _ in range(40):
        yield "".join(chr(rng.randint(*rng.choice(ranges))) if rng.random() < 0.8 else " " for _ in range(rng.randint(1, 60)))


def main():
    rng = random.Random(20261201)
    cases = []

    def record(texts, params):
        tokens, full = index_tokens(texts, params)
        cases.append({"params": full, "texts": texts, "tokens": tokens})

    texts = TEXTS + list(random_texts(rng))
    for params in SETTINGS:
        record(texts, params)
    # Words with the endings of each language, and its stop words as they are.
    pieces = {language: words_of(language) for language in LANGUAGES}
    for language in LANGUAGES:
        own = pieces[language]
        words = [" ".join("".join(rng.choice(own) for _ in range(rng.randint(1, 3))) for _ in range(12)) for _ in range(25)]
        words.append(" ".join(rng.sample(own, 20)))
        words.append(" ".join(w.upper() for w in rng.sample(own, 20)))
        record(words + TEXTS[:6], {"language": language})
        record(words[-2:], {"language": language, "stem": False, "ascii_folding": False})
    (HERE / "tokens.json").write_text(json.dumps(cases, ensure_ascii=False, separators=(",", ":")) + "\n", encoding="utf-8")
    print(len(cases), "cases")


if __name__ == "__main__":
    main()
