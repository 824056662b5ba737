"""Type × null pattern × slice × file version × operation: each side reads what the other wrote.

What was written is what must be read (views come back as what they view), by both readers from both
writers, and after each changed the other's table. Where the real packages refuse to write a type, or
panic, ours may refuse it or must read its own file back.
"""

import random
import zlib

import arrays
import pyarrow as pa
import pytest
from same import assert_same
from upstream import SideError

VERSIONS = ["2.0", "2.1", "2.2"]

WRITE = "return lance.write_dataset(data, uri, mode=mode, data_storage_version=version).version"
READ = "return lance.dataset(uri).to_table()"
# The real reader refuses to read fixed-size lists of structs together with other columns.
READ_EACH = """
d = lance.dataset(uri)
return pa.table({name: d.to_table(columns=[name])[name] for name in d.schema.names}, schema=d.schema)
"""
SCAN = "return lance.dataset(uri).to_table(columns=columns, filter=filter, limit=limit, offset=offset)"
TAKE = "return lance.dataset(uri).take(rows, columns=columns)"
DELETE = "d = lance.dataset(uri)\nd.delete(predicate)\nreturn lance.dataset(uri).count_rows()"
COUNT = "return lance.dataset(uri).count_rows(filter)"


def rng_for(seed, *parts):
    return random.Random(zlib.crc32(repr((seed, parts)).encode()))


def make_table(rng, t, rows, patterns):
    names, columns = ["id"], [pa.array(range(rows), pa.int64())]
    for nulls, inner in patterns:
        names.append(f"{nulls}_{inner}")
        columns.append(arrays.random_array(rng, t, rows, nulls, inner))
    return pa.table(dict(zip(names, columns)))


def cut(name, table):
    if name == "whole":
        return table
    if name == "slice":
        return table.slice(5, len(table) - 12)
    if name == "chunks":
        third = len(table) // 3
        return pa.concat_tables([table.slice(0, 1), table.slice(1, third), table.slice(1 + third)])
    return table.slice(7, 0)


def attempt(side, code, **args):
    try:
        return side.run(code, **args), None
    except SideError as error:
        return None, error


def stored_type(t):
    """Views come back as what they view; everything else as it went in.

    The name of a vector's type has no place for "items are never null".
    """
    if pa.types.is_fixed_size_list(t) and not pa.types.is_struct(t.value_type):
        return pa.list_(stored_type(t.value_type), t.list_size)
    return {pa.string_view(): pa.utf8(), pa.binary_view(): pa.binary()}.get(t, t)


def stored(table):
    fields = [pa.field(f.name, stored_type(f.type), f.nullable) for f in table.schema]
    return table.cast(pa.schema(fields)) if fields != list(table.schema) else table


def compact(table):
    """The same rows in buffers of their own, without offsets into longer ones."""
    return table.take(pa.array(range(len(table)), pa.int64()))


class Reads:
    """Runs one read on every (writer, reader); what the real packages cannot do with their own
    file (some reads of nested fixed-size lists panic) they need not do with ours."""

    def __init__(self, sides, uris):
        self.sides, self.uris = sides, uris

    def check(self, expected, what, code, **args):
        waived = each_waived = False
        for writer in sorted(self.uris, reverse=True):  # theirs first
            for reader, side in self.sides.items():
                label = f"{writer} wrote, {reader} {what}"
                try:
                    found = side.run(code, uri=self.uris[writer], **args)
                except SideError as error:
                    if side.name == "theirs" and (writer == "theirs" or waived):
                        waived = True
                        if code != READ:
                            continue
                        found, refused = attempt(side, READ_EACH, uri=self.uris[writer])
                        if refused is not None and (writer == "theirs" or each_waived):
                            each_waived = True
                            continue
                        assert refused is None, f"{label} column by column: {refused}"
                    else:
                        raise AssertionError(f"{label}: {error}") from error
                if isinstance(expected, pa.Table):
                    assert_same(found, expected, label)
                else:
                    assert found == expected, label


PATTERNS = [("none", "none"), ("some", "some"), ("all", "none"), ("first_half", "none"), ("alternate", "all"),
            ("one_valid", "some")]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", arrays.TYPES)
def test_every_operation(name, version, sides, ours, theirs, seed, soak, tmp_path):
    rng = rng_for(seed, name, version)
    rows = rng.choice([64, 203, 1025]) if not soak else rng.choice([203, 1025, 5000])
    patterns = PATTERNS if soak else [PATTERNS[0], PATTERNS[1], rng.choice(PATTERNS[2:])]
    table = make_table(rng, arrays.TYPES[name], rows, patterns)
    for shape in "whole", "slice", "chunks", "empty":
        data = cut(shape, table)
        expected = stored(data)
        uris = {side: str(tmp_path / f"{side}-{shape}.lance") for side in sides}
        _, refused = attempt(theirs, WRITE, data=data, uri=uris["theirs"], mode="create", version=version)
        _, error = attempt(ours, WRITE, data=data, uri=uris["ours"], mode="create", version=version)
        if refused is not None:
            del uris["theirs"]
            # What the real packages cannot store we may refuse, or store so that it reads back.
            if error is None:
                assert_same(ours.run(READ, uri=uris["ours"]), expected, f"{shape}: ours alone")
            else:
                assert ours.name == "theirs" or error.kind != "PanicException", str(error)
            continue
        assert error is None, f"{shape}: upstream writes it, we do not: {error}"
        reads = Reads(sides, uris)
        reads.check(expected, f"read ({shape})", READ)
        if shape == "whole":
            check_reads(reads, expected, rng)
            check_changes(reads, expected, table, version, rng)


def check_reads(reads, expected, rng):
    rows = len(expected)
    column = expected.schema.names[-1]
    picks = [rng.randrange(rows) for _ in range(9)] + [rows - 1, 0]
    reads.check(expected.take(pa.array(picks)), f"took {picks}", TAKE, rows=picks, columns=None)
    one = expected.select([column]).take(pa.array(picks[:1]))
    reads.check(one, "took one value", TAKE, rows=picks[:1], columns=[column])
    offset, limit = rng.randrange(rows // 2), rng.randrange(1, rows)
    window = expected.select([column, "id"]).slice(offset, limit)
    reads.check(window, f"scanned {offset}+{limit}", SCAN, columns=[column, "id"], filter=None, limit=limit,
                offset=offset)
    low, high = sorted(rng.sample(range(rows), 2))
    reads.check(expected.slice(low, high - low), "filtered", SCAN, columns=None,
                filter=f"id >= {low} AND id < {high}", limit=None, offset=None)
    reads.check(expected[column].null_count, "counted nulls", COUNT, filter=f"`{column}` IS NULL")


def check_changes(reads, expected, table, version, rng):
    """Each table is appended to by the other side; then both delete, and both read."""
    sides, uris = reads.sides, reads.uris
    extra = compact(stored(table.slice(3, len(table) // 2)))
    drops = [sorted(rng.sample(range(len(table)), 5)), sorted(rng.sample(range(len(table)), 5))]
    for writer, uri in uris.items():
        other = next(name for name in sides if name != writer)
        sides[other].run(WRITE, data=extra, uri=uri, mode="append", version=version)
        order = list(sides)
        rng.shuffle(order)
        for deleter, ids in zip(order, drops):
            sides[deleter].run(DELETE, uri=uri, predicate=f"id IN ({', '.join(map(str, ids))})")
    rest = pa.concat_tables([expected, extra])
    gone = set(drops[0]) | set(drops[1])
    keep = pa.array([i for i, row in enumerate(rest["id"].to_pylist()) if row not in gone])
    rest = rest.take(keep)
    reads.check(rest, "read after changes", READ)
    picks = [0, 5, len(rest) - 1]
    reads.check(rest.take(pa.array(picks)), f"took {picks} after changes", TAKE, rows=picks, columns=None)
