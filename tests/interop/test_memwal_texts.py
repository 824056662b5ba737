"""Maintained full-text indices: what we write into a generation is what the real writer makes of the same rows, list by list,
and searches of the real packages find the same rows with the same scores; both ways."""

import pathlib
import random

import glaive
import pyarrow as pa
import pytest
from glaive import LsmWriteSpec
from testing import SEED, SOAK

SHARD = "aa48498d-ac91-59e2-8452-69f46010ace2"
OPTIONS = {"lsm_upkeep": "false"}

CREATE = """
ds = lance.write_dataset(pa.Table.from_pylist(rows, schema=schema), path, data_storage_version=storage)
ds.create_scalar_index(column, "INVERTED", name="words", **params)
if maintained != "none":
    ds.initialize_mem_wal(unsharded=True, maintained_indexes=maintained)
"""

# Opens a writer, runs the calls, each of which becomes a generation, and closes it.
WRITE = """
for kind, value in calls:
    ds = lance.dataset(path)
    writer = ds.mem_wal_writer(shard, max_wal_flush_interval_ms=5)
    if kind == "put":
        writer.put(pa.Table.from_pylist(value, schema=ds.schema))
    else:
        writer.delete(pa.table({"id": pa.array(value, pa.int64())}, schema=pa.schema([ds.schema.field("id")])))
    writer.close()
"""

GENERATIONS = """
import glob
paths = sorted(glob.glob(f"{path}/_mem_wal/{shard}/*_gen_*"), key=lambda p: int(p.rsplit("_", 1)[1]))
"""

FILES = f"import sys\nsys.path.insert(0, {str(pathlib.Path(__file__).parent)!r})\nimport fts_files\n"

# Everything that the files of each generation's index say, by token.
READ = FILES + GENERATIONS + """
import json
out = []
for each in paths:
    found = [i for i in lance.dataset(each).list_indices() if i["name"] == "words"]
    if not found:
        out.append(None)
        continue
    [index] = found
    read = fts_files.read_index(fts_files.index_directory(each, "words"))
    [part] = read["parts"]
    lists = {token: part["rows"][number] for token, number in part["tokens"].items()}
    metadata = {k: v for k, v in read["metadata"].items() if k != "partitions"}
    metadata["params"] = json.loads(metadata["params"])
    if not metadata["params"]["lance_tokenizer"]:  # theirs leaves it to be guessed
        metadata["params"]["lance_tokenizer"] = "text"
    entry = {k: v for k, v in index.items() if k != "uuid"}
    entry["fragment_ids"] = sorted(entry["fragment_ids"])
    out.append({"metadata": metadata, "parts": part["metadata"], "docs": part["docs"], "lists": lists, "texts": part["texts"], "entry": entry})
return out
"""

# Rows and scores that each generation, taken as a dataset, finds for each query.
SEARCH = GENERATIONS + """
from lance.query import FullTextOperator, MatchQuery, PhraseQuery
out = []
for each in paths:
    ds = lance.dataset(each)
    for kind, words in queries:
        if kind == "phrase":
            query = PhraseQuery(words, column)
        elif kind == "fuzzy":
            query = MatchQuery(words, column, fuzziness=1)
        else:
            query = MatchQuery(words, column, operator=FullTextOperator[kind])
        if not [i for i in ds.list_indices() if i["name"] == "words"] and kind == "phrase":
            continue
        table = ds.to_table(columns=["id", "_score"], full_text_query=query, limit=1000)
        out.append(sorted(zip(table["id"].to_pylist(), table["_score"].to_pylist())))
return out
"""

LSM_SEARCH = """
t = lancedb.connect(path.rsplit("/", 1)[0]).open_table("t")
out = []
for words in queries:
    found = t.search(words, query_type="fts", fts_columns=["text"]).limit(1000).to_list()
    out.append(sorted((r["id"], r["_score"], r["text"]) for r in found))
return out
"""

PLAIN = "return sorted(lancedb.connect(path.rsplit('/', 1)[0]).open_table('t').search().limit(100000).to_list(), key=lambda r: r['id'])"

WORDS = ("dog dogs running run Ocean lamp été café naïve straße the of and river banana bananas quickly foo bar hopping 日本 über "
         "x86 3.14 internationalization İstanbul nation national").split()


def schema_of(column=None, stored="text"):
    key = {"lance-schema:unenforced-primary-key": "true"}
    return pa.schema([pa.field("id", pa.int64(), False, key), pa.field(stored, column or pa.string())])


def text(rng, most=14):
    if rng.random() < 0.12:
        return rng.choice([None, "", "the of", "..."])
    return rng.choice([" ", ", ", " - "]).join(rng.choice(WORDS) for _ in range(rng.randrange(1, most)))


def draw(rng, key, shape=lambda t: t, stored="text"):
    return {"id": key, stored: shape(text(rng))}


def calls_of(rng, number, make, spread=60):
    """Puts and deletes, keys among them that come twice."""
    out = []
    for _ in range(number):
        keys = [rng.randrange(spread) for _ in range(rng.randrange(1, 40))]
        out.append(("put", [make(key) for key in keys]) if rng.random() < 0.75 else ("delete", sorted(set(keys))))
    return out


def play(model, calls):
    for kind, value in calls:
        if kind == "put":
            model.update((row["id"], row) for row in value)
        else:
            for key in value:
                model.pop(key, None)


QUERIES = [("OR", w) for w in ("dogs", "banana Ocean", "the été", "missing", "lamp lamp", "national running", "日本", "straße")]
QUERIES += [("AND", "banana ocean"), ("AND", "dog run"), ("fuzzy", "bananna")]
PHRASES = [("phrase", w) for w in ("dogs running", "Ocean lamp", "running of dogs", "foo bar")]


def near(a, b):
    assert len(a) == len(b)
    for x, y in zip(a, b):
        assert [r[0] for r in x] == [r[0] for r in y]
        assert [r[1] for r in x] == pytest.approx([r[1] for r in y], rel=1e-5)


SETTINGS = [
    {},
    {"with_position": True},
    {"with_position": True, "stem": False, "remove_stop_words": False, "ascii_folding": False},
    {"with_position": True, "language": "German"},
    {"language": "Turkish", "max_token_length": 8},
    {"base_tokenizer": "whitespace", "with_position": True, "lower_case": False},
    {"base_tokenizer": "raw", "stem": False},
    {"base_tokenizer": "ngram", "min_ngram_length": 2, "max_ngram_length": 4},
    {"base_tokenizer": "ngram", "prefix_only": True},
]


def compare(theirs, one, other, column="text", positions=False):
    """Two tables with the same rows in their generations."""
    mine, real = (theirs.run(READ, path=path, shard=SHARD) for path in (one, other))
    assert len(mine) == len(real)
    for a, b in zip(mine, real):
        if b is None:
            assert a is None
            continue
        for name in ("metadata", "parts", "docs", "texts", "entry"):
            assert a[name] == b[name]
        assert sorted(a["lists"]) == sorted(b["lists"])
        for token, row in a["lists"].items():
            # The rounding of scores aside: the last bits depend on the order of operations.
            assert row["_max_score"] == pytest.approx(b["lists"][token]["_max_score"], rel=1e-6)
            for name in row:
                if name == "_posting":
                    assert [block[4:] for block in row[name]] == [block[4:] for block in b["lists"][token][name]]
                elif name != "_max_score":
                    assert row[name] == b["lists"][token][name], (token, name)
    queries = QUERIES + (PHRASES if positions else [])
    near(*(theirs.run(SEARCH, path=path, shard=SHARD, column=column, queries=queries) for path in (one, other)))


@pytest.mark.parametrize("number", range(len(SETTINGS)))
def test_generations_are_those_of_the_real_writer(sides, seed, tmp_path, number):
    params = SETTINGS[number]
    rng = random.Random(f"{seed} {number}")
    rows = [draw(rng, key) for key in range(40)]
    calls = calls_of(rng, 12 if SOAK else 4, lambda key: draw(rng, key))
    calls.append(("put", [{"id": 1000, "text": None}, {"id": 1001, "text": ""}]))  # without a token there is no index, but for raw
    for name, side in sides.items():
        path = str(tmp_path / name / "t.lance")
        sides["theirs"].run(CREATE, path=path, rows=rows, schema=schema_of(), storage=rng.choice(["2.0", "2.1", "2.2"]), column="text",
                            params=params, maintained=["words"] if number % 2 else None)
        side.run(WRITE, path=path, shard=SHARD, calls=calls)
    compare(sides["theirs"], *(str(tmp_path / name / "t.lance") for name in ("ours", "theirs")), positions=params.get("with_position"))
    if not number % 2:
        return  # lancedb 0.40 knows only indices that are named
    queries = ["dogs", "banana Ocean", "the été", "national", "missing"]
    mine, real = (sides["theirs"].run(LSM_SEARCH, path=str(tmp_path / name / "t.lance"), queries=queries) for name in ("ours", "theirs"))
    near(mine, real)
    assert [[r[2] for r in found] for found in mine] == [[r[2] for r in found] for found in real]


@pytest.mark.parametrize("kind", ["large", "list", "large list", "raw list", "struct"])
def test_columns_of_all_kinds(sides, seed, tmp_path, kind):
    rng = random.Random(f"{seed} {kind}")
    column, stored, types = "text", "text", {"large": pa.large_string(), "list": pa.list_(pa.string()), "raw list": pa.list_(pa.string()), "large list": pa.large_list(pa.large_string())}
    shape = lambda t: t
    if "list" in kind:
        shape = lambda t: None if rng.random() < 0.1 else [t, None, text(rng)][: rng.randrange(4)]
    if kind == "struct":
        column, stored, types["struct"] = "s.t", "s", pa.struct([pa.field("n", pa.int32()), pa.field("t", pa.string())])
        shape = lambda t: None if rng.random() < 0.1 else {"n": 1, "t": t}
    make = lambda key: draw(rng, key, shape, stored)
    rows, calls = [make(key) for key in range(30)], calls_of(rng, 3, make)
    for name, side in sides.items():
        path = str(tmp_path / name / "t.lance")
        sides["theirs"].run(CREATE, path=path, rows=rows, schema=schema_of(types[kind], stored), storage="2.1", column=column,
                            params={"with_position": True, "base_tokenizer": "raw" if kind == "raw list" else "simple"}, maintained=["words"])
        side.run(WRITE, path=path, shard=SHARD, calls=calls)
    compare(sides["theirs"], *(str(tmp_path / name / "t.lance") for name in ("ours", "theirs")), column=column, positions=True)


def test_long_lists(sides, seed, tmp_path):
    """Many blocks, more than one group of them, and documents with more than 128 positions of a token."""
    rng = random.Random(seed)
    rows = [{"id": key, "text": "base"} for key in range(5)]
    many = [{"id": key, "text": " ".join(["every"] * rng.choice([1, 1, 2, 300]) + [f"w{rng.randrange(50)}", "row" * (key % 2)])} for key in range(4500)]
    for name, side in sides.items():
        path = str(tmp_path / name / "t.lance")
        sides["theirs"].run(CREATE, path=path, rows=rows, schema=schema_of(), storage="2.2", column="text",
                            params={"with_position": True}, maintained=["words"])
        side.run(WRITE, path=path, shard=SHARD, calls=[("put", many)])
    compare(sides["theirs"], *(str(tmp_path / name / "t.lance") for name in ("ours", "theirs")), positions=True)


def test_custom_stop_words_stay(sides, tmp_path):
    """The real writer knows an index by its manifest entry alone, where they are not; ours asks the index."""
    if sides["ours"].name == "theirs":
        pytest.skip("the real writer forgets them")
    path = str(tmp_path / "t.lance")
    rows = [{"id": 0, "text": "base"}]
    theirs = sides["theirs"]
    theirs.run(CREATE, path=path, rows=rows, schema=schema_of(), storage="2.2", column="text",
               params={"custom_stop_words": ["dog", "café"]}, maintained=["words"])
    sides["ours"].run(WRITE, path=path, shard=SHARD, calls=[("put", [{"id": 1, "text": "the dogs at the café run"}])])
    [found] = theirs.run(READ, path=path, shard=SHARD)
    assert found["texts"] == {0: ["at", "run", "the", "the"]}
    assert found["metadata"]["params"]["custom_stop_words"] == ["dog", "café"]


@pytest.mark.parametrize("params", [{"format_version": 1}, {"block_size": 256}], ids=str)
def test_indices_of_other_versions_are_maintained_in_version_2(sides, seed, tmp_path, params):
    if sides["ours"].name == "theirs":
        pytest.skip("the real writer keeps the version of the base's index")
    rng = random.Random(seed)
    path = str(tmp_path / "t.lance")
    rows = [draw(rng, key) for key in range(30)]
    theirs = sides["theirs"]
    theirs.run(CREATE, path=path, rows=rows, schema=schema_of(), storage="2.2", column="text", params=dict(params, with_position=True), maintained=["words"])
    calls = calls_of(rng, 3, lambda key: draw(rng, key))
    sides["ours"].run(WRITE, path=path, shard=SHARD, calls=calls)
    for found in theirs.run(READ, path=path, shard=SHARD):
        assert found is None or found["metadata"]["format_version"] == "2"
    model = {row["id"]: row for row in rows}
    play(model, calls)
    [got] = theirs.run(LSM_SEARCH, path=path, queries=["banana"])
    assert [r[0] for r in got] == sorted(k for k, r in model.items() if r["text"] and "banana" in r["text"])


@pytest.mark.parametrize("seed", [5, SEED] if not SOAK else [SEED + i for i in range(20)])
@pytest.mark.parametrize("order", ["ours", "theirs", "mixed"])
def test_rows_are_found_before_and_after_compaction(sides, tmp_path, seed, order):
    """Generations of either writer, merged into the base by us: nothing is lost on the way for the real LSM search."""
    rng = random.Random(f"{seed} {order}")
    theirs = sides["theirs"]
    path = str(tmp_path / "t.lance")
    rows = [draw(rng, key) for key in range(50)]
    theirs.run(CREATE, path=path, rows=rows, schema=schema_of(), storage="2.2", column="text", params={"with_position": True}, maintained=["words"])
    model = {row["id"]: row for row in rows}
    table = glaive.connect(str(tmp_path), storage_options=OPTIONS).open_table("t")

    def check():
        want = [model[k] for k in sorted(model)]
        assert sorted(table.to_arrow().to_pylist(), key=lambda r: r["id"]) == want
        assert theirs.run(PLAIN, path=path) == want
        queries = ["banana", "dogs", "Ocean lamp"]
        for words, got in zip((["banana"], ["dog"], ["ocean", "lamp"]), theirs.run(LSM_SEARCH, path=path, queries=queries)):
            hits = sorted(k for k, r in model.items() if r["text"] and any(w in r["text"].lower() for w in words))
            assert [r[0] for r in got] == hits
            assert all(r[2] == model[r[0]]["text"] for r in got)

    for turn in range(3):
        side = sides[order if order != "mixed" else rng.choice(["ours", "theirs"])]
        calls = calls_of(rng, 2, lambda key: draw(rng, key))
        side.run(WRITE, path=path, shard=SHARD, calls=calls)
        play(model, calls)
        check()
        if rng.random() < 0.6:
            assert table.checkpoint_lsm().converged
            check()
            if rng.random() < 0.5:
                theirs.run("lance.dataset(path).optimize.optimize_indices()", path=path)
                check()


def test_through_the_table_api(sides, tmp_path):
    theirs = sides["theirs"]
    path = str(tmp_path / "t.lance")
    rows = [{"id": k, "text": f"row {k} of dogs"} for k in range(20)]
    theirs.run(CREATE, path=path, rows=rows, schema=schema_of(), storage="2.2", column="text", params={}, maintained="none")
    table = glaive.connect(str(tmp_path), storage_options=OPTIONS).open_table("t")
    table.set_lsm_write_spec(LsmWriteSpec.unsharded().with_maintained_indexes(["words"]))
    assert table.get_lsm_write_spec().maintained_indexes == ["words"]
    fresh = pa.Table.from_pylist([{"id": k, "text": "cats only" if k % 2 else "cats and dogs"} for k in range(15, 25)], schema=schema_of())
    table.merge_insert("id").when_matched_update_all().when_not_matched_insert_all().execute(fresh)
    table.close_lsm_writers()
    assert [i["name"] for i in theirs.run(READ, path=path, shard=SHARD)[0]["entry"] and [{"name": "words"}]] == ["words"]
    dogs, cats = theirs.run(LSM_SEARCH, path=path, queries=["dog", "cat"])
    assert [r[0] for r in dogs] == list(range(15)) + [16, 18, 20, 22, 24]
    assert [r[0] for r in cats] == list(range(15, 25))
    # Our own searches by words are still to come.
    with pytest.raises(NotImplementedError):
        table.search("dogs", query_type="fts").to_list()


SPECS = [[], ["BTREE"], ["INVERTED"], ["INVERTED", "BTREE"], ["BITMAP"], ["INVERTED", "BITMAP"]]


@pytest.mark.parametrize("params, name", [({"base_tokenizer": "icu"}, "icu"), ({"base_tokenizer": "code"}, "code")])
def test_what_cannot_be_maintained_is_named(sides, tmp_path, params, name):
    if sides["ours"].name == "theirs":
        pytest.skip("the real writer maintains them")
    rows = [{"id": 1, "text": "words"}]
    theirs, ours = sides["theirs"], sides["ours"]
    for maintained in (["words"], None):
        path = str(tmp_path / str(maintained) / "t.lance")
        theirs.run(CREATE, path=path, rows=rows, schema=schema_of(), storage="2.2", column="text", params=params, maintained="none")
        install = "lance.dataset(path).initialize_mem_wal(unsharded=True, maintained_indexes=maintained)"
        if maintained:
            with pytest.raises(Exception, match=f"words.*{name}") as refused:
                ours.run(install, path=path, maintained=maintained)
            assert refused.value.kind == "NotImplementedError" or "NotImplementedError" in refused.value.bases
            theirs.run(install, path=path, maintained=maintained)
            with pytest.raises(Exception, match=f"words.*{name}"):
                ours.run(WRITE, path=path, shard=SHARD, calls=[("put", rows)])
        else:
            ours.run(install, path=path, maintained=maintained)
            ours.run(WRITE, path=path, shard=SHARD, calls=[("put", rows)])
            assert theirs.run(READ, path=path, shard=SHARD) == [None]


def test_specs_name_what_the_table_has(sides, tmp_path):
    """Without a list, a spec records the names of all indices, and is refused when one of them cannot be maintained."""
    sides["theirs"].run(
        """
        for name, kinds in tables.items():
            ds = lance.write_dataset(pa.Table.from_pylist(rows, schema=schema), f"{path}/{name}.lance")
            for kind in kinds:
                ds.create_scalar_index("id" if kind == "BTREE" else "text", kind, name=kind.lower() + "_index")
        """,
        path=str(tmp_path), rows=[{"id": k, "text": f"t{k}"} for k in range(5)], schema=schema_of(),
        tables={f"{side}{i}": kinds for side in ("ours", "theirs") for i, kinds in enumerate(SPECS)},
    )  # fmt: skip
    found = {}
    for side, runner in sides.items():
        found[side] = runner.run(
            """
            out = []
            for i in range(number):
                t = lancedb.connect(path).open_table(f"{side}{i}")
                try:
                    t.set_lsm_write_spec(lancedb.LsmWriteSpec.unsharded())
                    out.append(t.get_lsm_write_spec().maintained_indexes)
                except Exception as error:
                    out.append((type(error).__name__, isinstance(error, ValueError), str(error)))
            return out
            """,
            path=str(tmp_path), side=side, number=len(SPECS),
        )  # fmt: skip
    for mine, real in zip(found["ours"], found["theirs"]):
        if isinstance(real, list):
            assert mine == real
            continue
        assert mine[1] and real[1]
        for part in ("Invalid input, cannot maintain every index on this table: ", "'bitmap_index' has type /lance.table.BitmapIndexDetails",
                     "Set maintained_indexes explicitly to choose from [" + real[2].rsplit("[", 1)[1]):
            assert part in mine[2] and part in real[2]
