"""Shapes of results: members of structs in takes, pieces of streams, facts about tags and indices, as upstream has them."""

import random

import pyarrow as pa
import pyarrow.compute
import pytest
from testing import SEED

NESTED = pa.table(
    {
        "i": range(6),
        "s": [{"a": i, "b": {"c": str(i), "d": None}, "j": i % 2 == 0} if i != 3 else None for i in range(6)],
    },
    schema=pa.schema(
        {
            "i": pa.int64(),
            "s": pa.struct({"a": pa.int32(), "b": pa.struct({"c": pa.string(), "d": pa.float32()}), "j": pa.bool_()}),
        }
    ),
)
COLUMNS = [
    ["s.a"],
    ["s.b.c", "i"],
    ["s.j", "i", "s.a"],
    ["s.a", "s"],
    ["s", "s.a"],
    ["s.b.d", "s.b"],
    ["i", "_rowid"],
    {"x": "s.a", "y": "i + 1"},
    None,
]


@pytest.mark.parametrize("version", ["2.0", "2.2"])
def test_members_of_structs_in_takes(sides, tmp_path, version):
    uri = str(tmp_path / "t.lance")
    # Version 2.0 stores no null structs.
    data = NESTED.filter(pa.compute.field("i") != 3) if version == "2.0" else NESTED
    sides["ours"].run("lance.write_dataset(data, uri, data_storage_version=version)", data=data, uri=uri, version=version)
    for columns in COLUMNS:
        for code in (
            "return lance.dataset(uri).take([4, 0, 3], columns=columns)",
            "return lance.dataset(uri)._take_rows([4, 0, 3], columns=columns)",
            "return lance.dataset(uri).get_fragments()[0].take([0, 3, 4], columns=columns)",
            "return lance.dataset(uri).to_table(columns=columns)",
        ):
            # Fragments of upstream give members in the order of the names, and no row ids.
            if "fragments" in code and (isinstance(columns, dict) or columns in (["s.j", "i", "s.a"], ["s.b.d", "s.b"], ["i", "_rowid"])):
                continue
            mine, right = (side.run(code, uri=uri, columns=columns) for side in (sides["ours"], sides["theirs"]))
            assert mine.schema.equals(right.schema), (columns, code, mine.schema, right.schema)
            assert mine.to_pylist() == right.to_pylist(), (columns, code)


def test_pieces_of_streams(sides, tmp_path):
    """`batch_size` rows of one fragment, less those that the filter drops."""
    rng = random.Random(SEED)
    uri = str(tmp_path / "t.lance")
    data = pa.table({"i": range(5000), "s": [f"{i:05}" for i in range(5000)]})
    sides["theirs"].run("lance.write_dataset(data, uri, max_rows_per_file=rows)", data=data, uri=uri, rows=rng.randrange(900, 2500))
    code = """
        stream = lance.dataset(uri).to_batches(columns=columns, filter=filter, limit=limit, offset=offset, batch_size=size)
        return [b.num_rows for b in stream], lance.dataset(uri).count_rows()
    """
    for step in range(2):
        for _ in range(12):
            limit = rng.choice([None, rng.randrange(1, 4000)])
            options = {
                "size": rng.choice([1000, 100, 7000, rng.randrange(50, 3000)]),
                "limit": limit,
                "offset": rng.choice([None, rng.randrange(1, 3000)]) if limit is not None else None,
                "filter": None if limit is not None else rng.choice([None, "i % 3 = 0", "i % 700 < 200"]),
            }
            # Upstream reads columns that the filter does not need in a second step, which puts pieces together.
            options["columns"] = rng.choice([["i"], ["s", "i"], ["_rowid"]]) if options["filter"] is None else ["i"]
            mine, right = (side.run(code, uri=uri, **options) for side in (sides["ours"], sides["theirs"]))
            right = ([n for n in right[0] if n > 0], right[1])
            assert mine == right, (SEED, step, options)
        low = rng.randrange(4000)
        sides["theirs"].run("lance.dataset(uri).delete(p)", uri=uri, p=f"i > {low} and i < {low + 800} or i % 7 = 3")


def test_facts_about_tags(sides, tmp_path):
    uri = str(tmp_path / "t.lance")
    sides["ours"].run("lance.write_dataset(data, uri)", data=NESTED, uri=uri)
    for name, side in sides.items():
        side.run("lance.dataset(uri).tags.create(name, 1)", uri=uri, name=name)
    sides["ours"].run("lance.write_dataset(data, uri, mode='append')", data=NESTED, uri=uri)
    sides["theirs"].run("lance.dataset(uri).tags.update('ours', 2)", uri=uri)
    sides["ours"].run("lance.dataset(uri).tags.update('theirs', 2)", uri=uri)
    code = "return lance.dataset(uri).tags.list()"
    mine, right = (side.run(code, uri=uri) for side in (sides["ours"], sides["theirs"]))
    assert mine == right and set(mine) == {"ours", "theirs"}
    for facts in mine.values():
        assert list(facts) == list(right["ours"])
        assert facts["created_at"] < facts["updated_at"] and facts["version"] == 2 and facts["manifest_size"] > 100
    through_tables = "return dict(lancedb.connect(folder).open_table('t').tags.list())"
    mine, right = (side.run(through_tables, folder=str(tmp_path)) for side in (sides["ours"], sides["theirs"]))
    assert mine == right


def test_number_of_indices(sides, tmp_path):
    stats = "return lancedb.connect(folder).open_table('t').stats()['num_indices']"
    index = """
        t = lancedb.connect(folder).create_table('t', data)
        t.create_scalar_index('i')
        t.create_scalar_index('k', index_type='BITMAP')
        t.add(data)
        # A second segment of each index: still two.
        lance.dataset(folder + '/t.lance').optimize.optimize_indices(num_indices_to_merge=0)
    """
    data = pa.table({"i": range(300), "k": [i % 5 for i in range(300)]})
    sides["theirs"].run(index, folder=str(tmp_path), data=data)
    assert [side.run(stats, folder=str(tmp_path)) for side in sides.values()] == [2, 2]
    sides["ours"].run("lance.write_dataset(data, uri, mode='append')", data=data, uri=str(tmp_path / "t.lance"))
    assert [side.run(stats, folder=str(tmp_path)) for side in sides.values()] == [2, 2]
    sides["ours"].run("lance.write_dataset(data, uri, mode='overwrite')", data=data, uri=str(tmp_path / "t.lance"))
    assert [side.run(stats, folder=str(tmp_path)) for side in sides.values()] == [0, 0]
