"""Data on its way in: rows, casts, vector types, bad vectors. Compared with values written out or with a plain model."""

import datetime as dt
import math
import random

import glaive
import numpy as np
import pyarrow as pa
import pytest
from glaive import _fit, _ingest, _rows, _vectors
from glaive.exceptions import InvalidInputError, InvalidTypeError, SchemaMismatchError
from testing import SEED

NAN = float("nan")


def as_table(incoming):
    payload = incoming.payload()
    return payload if isinstance(payload, pa.Table) else payload.read_all()


def new_table(data, schema=None, policy="error", fill=0.0):
    return as_table(_ingest.for_new_table(data, schema, policy, fill))


# --- rows ---------------------------------------------------------------------------------------------------


def test_keys_of_all_rows_become_columns():
    got = _rows.rows_to_table([{"a": 1}, {"b": "x", "a": 2}, {}], None)
    assert got.to_pylist() == [{"a": 1, "b": None}, {"a": 2, "b": "x"}, {"a": None, "b": None}]


def test_columns_of_none_take_the_type_of_the_table():
    struct = pa.struct([("w", pa.int32()), ("unit", pa.string())])
    schema = pa.schema([("n", pa.int64()), ("size", struct), ("tags", pa.list_(pa.string())), ("deep", pa.list_(struct))])
    got = _rows.rows_to_table([{"n": 1, "size": None, "tags": None, "deep": [{"w": None}]}], schema)
    assert got.schema.field("size").type == struct and got.schema.field("tags").type == pa.list_(pa.string())
    assert got.schema.field("deep").type == pa.list_(pa.struct([("w", pa.int32())]))


def test_unknown_members_of_structs_are_not_lost():
    schema = pa.schema([("s", pa.struct([("x", pa.int8())]))])
    got = _rows.rows_to_table([{"s": {"x": 1, "z": 2}}], schema)
    assert got.to_pylist() == [{"s": {"x": 1, "z": 2}}]
    with pytest.raises(SchemaMismatchError, match="'z'"):
        _fit.fit_batch(got.to_batches()[0], schema)


@pytest.mark.parametrize("data", [{"a": 1}, [5], [None], "text", b"bytes", 5, None, {1}, np.zeros((2, 2)), pa.array([1]), object(), [[1]], [{3: 1}]])
def test_what_is_no_data_is_refused(data):
    with pytest.raises((TypeError, ValueError)) as e:
        new_table(data)
    assert isinstance(e.value, (InvalidInputError, InvalidTypeError))


def test_iterators_keep_their_exceptions():
    class Mine(Exception):
        pass

    def parts():
        yield [{"a": 1}]
        raise Mine("stop")

    incoming = _ingest.for_new_table(parts(), None, "error", 0.0)
    with pytest.raises(Mine, match="stop"):
        incoming.send(lambda payload: payload.read_all())


def test_iterators_are_drawn_batch_by_batch():
    drawn = []

    def parts():
        for i in range(100):
            drawn.append(i)
            yield [{"a": i, "vector": [float(i), 0.0]}]

    reader = _ingest.for_new_table(parts(), None, "error", 0.0).payload()
    assert len(drawn) <= 2
    next(iter(reader))
    assert len(drawn) <= 3


def test_the_first_item_fixes_the_schema():
    items = iter([pa.table({"a": [1], "b": ["x"]}), pa.table({"b": ["y"], "a": pa.array([2], pa.int8())})])
    assert new_table(items).to_pylist() == [{"a": 1, "b": "x"}, {"a": 2, "b": "y"}]
    with pytest.raises(SchemaMismatchError, match="'c'"):
        new_table(iter([pa.table({"a": [1]}), pa.table({"c": [1]})]))


def test_a_table_that_fits_is_passed_on_as_it_is():
    table = pa.table({"a": [1, 2], "vector": pa.array([[1, 2], [3, 4]], pa.list_(pa.float32(), 2))})
    assert _ingest.for_new_table(table, None, "error", 0.0).payload() is table
    assert _ingest.for_new_table(table, table.schema, "error", 0.0).payload() is table
    assert _ingest.for_append(table, table.schema, "error", 0.0).payload() is table


# --- schema given -------------------------------------------------------------------------------------------


def test_the_given_schema_decides_order_types_and_nullability():
    schema = pa.schema(
        [
            pa.field("id", pa.int32(), nullable=False),
            pa.field("s", pa.struct([pa.field("a", pa.int8(), nullable=False), pa.field("b", pa.string())])),
            pa.field("l", pa.large_list(pa.struct([("x", pa.int16()), ("y", pa.float32())]))),
        ],
        metadata={"k": "v"},
    )
    rows = [{"l": [{"y": 1.5, "x": 2}], "s": {"b": "q", "a": 1}, "id": 7}, {"l": None, "s": None, "id": 8}, {"l": [], "s": {"a": 3}, "id": 9}]
    got = new_table(rows, schema)
    assert got.schema.equals(schema, check_metadata=True)
    assert got.to_pylist() == [
        {"id": 7, "s": {"a": 1, "b": "q"}, "l": [{"x": 2, "y": 1.5}]},
        {"id": 8, "s": None, "l": None},
        {"id": 9, "s": {"a": 3, "b": None}, "l": []},
    ]


@pytest.mark.parametrize(
    "rows,message",
    [
        ([{"id": None, "v": 1}], "`id` contained null values even though the field is marked non-null in the schema"),
        ([{"id": 1}], "different number of columns"),
        ([{"id": 1, "v": 1, "zz": 2}], "'zz' not found in target schema"),
        ([{"id": 1, "v": 300}], "'v'"),
        ([{"id": 1, "v": "abc"}], "'v'"),
        ([{"id": 1, "v": 1.5}], "'v'"),
        ([{"id": 1, "v": [1]}], "'v'"),
    ],
)
def test_rows_that_do_not_fit_the_schema(rows, message):
    schema = pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("v", pa.int8())])
    with pytest.raises(ValueError, match=message):
        new_table(rows, schema)


def test_text_becomes_dates_and_dictionaries():
    schema = pa.schema([("d", pa.date32()), ("c", pa.dictionary(pa.int32(), pa.utf8())), ("u", pa.large_utf8())])
    got = new_table(pa.table({"d": ["2020-02-29"], "c": ["x"], "u": ["y"]}), schema)
    assert got.schema == schema and got.to_pylist() == [{"d": dt.date(2020, 2, 29), "c": "x", "u": "y"}]


@pytest.mark.parametrize("kind", [pa.list_, pa.large_list])
def test_sliced_lists_of_structs_are_fitted(kind):
    found = kind(pa.struct([("b", pa.int64()), ("a", pa.int32())]))
    wanted = kind(pa.struct([("a", pa.int64()), ("b", pa.int64()), ("c", pa.string())]))
    values = [[{"b": 1, "a": 2}], None, [], [{"b": 3, "a": 4}, None, {"b": None, "a": 5}], [{"b": 9, "a": 9}]]
    array = pa.array(values, found)
    for start in range(5):
        for length in range(5 - start):
            got = _fit.fit_array(array.slice(start, length), pa.field("x", wanted))
            expected = [None if v is None else [None if s is None else {"a": s["a"], "b": s["b"], "c": None} for s in v] for v in values[start : start + length]]
            assert got.type == wanted and got.to_pylist() == expected
            got.validate(full=True)


# --- types of vector columns --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "column,expected",
    [
        ({"vector": [[1.0, 2.0]]}, pa.list_(pa.float32(), 2)),
        ({"my_Embedding": [[1.0, 2.0, 3.0]]}, pa.list_(pa.float32(), 3)),
        ({"vector": [[1, 255]]}, pa.list_(pa.uint8(), 2)),
        ({"vector": [[1, 256]]}, pa.list_(pa.float32(), 2)),
        ({"vector": [[-1, 0]]}, pa.list_(pa.float32(), 2)),
        ({"vector": [["a"]]}, pa.list_(pa.string())),
        ({"vector": [[[1.0]]]}, pa.list_(pa.list_(pa.float64()))),
        ({"points": [[1.0, 2.0]]}, pa.list_(pa.float64())),
        ({"vector": pa.array([[1, 2]], pa.list_(pa.float64(), 2))}, pa.list_(pa.float64(), 2)),
        ({"vector": pa.array([[1, 2]], pa.large_list(pa.float16()))}, pa.list_(pa.float32(), 2)),
    ],
)
def test_inferred_types(column, expected):
    assert new_table(pa.table(column)).schema.field(0).type == expected


def test_the_most_frequent_length_is_the_dimension():
    assert _vectors.common_length(pa.chunked_array([[[1.0], [1.0, 2.0]], [[3.0, 4.0], None, []]])) == 2
    assert _vectors.common_length(pa.array([None, []], pa.list_(pa.float32()))) is None


def test_the_dimension_is_learned_from_the_first_vectors_there_are():
    parts = ([{"k": i, "vector": None if i < 3 else [1.0, 2.0, 3.0]}] for i in range(5))
    assert new_table(parts, policy="null")["vector"].to_pylist() == [None] * 3 + [[1.0, 2.0, 3.0]] * 2
    typed = (pa.table({"vector": pa.array([v], pa.list_(pa.float64()))}) for v in (None, None, [1.0, 2.0]))
    got = new_table(typed, policy="null")
    assert got.schema.field(0).type == pa.list_(pa.float32(), 2)
    assert got["vector"].to_pylist() == [None, None, [1.0, 2.0]]


# --- bad vectors --------------------------------------------------------------------------------------------


def model(vectors, dim, policy, fill):
    """The policies in plain Python; None for "error" when a vector is bad."""
    out = []
    for v in vectors:
        bad = v is None or len(v) != dim or any(x is not None and math.isnan(x) for x in v)
        if not bad:
            out.append(v)
        elif policy == "error":
            return None
        elif policy == "null":
            out.append(None)
        elif policy == "fill":
            known = [fill if x is None or math.isnan(x) else x for x in (v or [])[:dim]]
            out.append(known + [fill] * (dim - len(known)))
    return out


def random_vector(rng, dim, fixed):
    kind = rng.random()
    if kind < 0.15:
        return None
    length = dim if fixed or kind < 0.8 else rng.randrange(0, dim + 3)
    return [NAN if rng.random() < 0.06 else float(rng.randrange(-8, 8)) for _ in range(length)]


@pytest.mark.parametrize("value_type", [pa.float16(), pa.float32(), pa.float64()])
@pytest.mark.parametrize("shape", ["list", "large_list", "fixed"])
@pytest.mark.parametrize("policy", ["error", "drop", "fill", "null"])
@pytest.mark.parametrize("seed", [1, SEED])
def test_policies_against_a_model(value_type, shape, policy, seed):
    rng = random.Random(f"{seed} {value_type} {shape} {policy}")
    for _ in range(25):
        dim, rows = rng.randrange(1, 6), rng.randrange(0, 30)
        vectors = [random_vector(rng, dim, shape == "fixed") for _ in range(rows)]
        if rng.random() < 0.3:
            vectors = [[0.0] * dim if v is None or len(v) != dim or any(map(math.isnan, v)) else v for v in vectors]
        column_type = {"list": pa.list_(value_type), "large_list": pa.large_list(value_type), "fixed": pa.list_(value_type, dim)}[shape]
        start = rng.randrange(0, rows + 1)
        batch = pa.record_batch({"k": pa.array(range(rows)), "vector": pa.array(vectors, column_type)}).slice(start)
        expected = model(vectors[start:], dim, policy, 0.5)
        call = lambda: _vectors.handle_batch(batch, "vector", policy, 0.5, dim, pa.float32())
        if expected is None:
            with pytest.raises(ValueError, match="has variable length vectors|has NaNs"):
                call()
            continue
        got = call()
        got.validate(full=True)
        assert got.schema.field("vector").type == pa.list_(pa.float32(), dim)
        assert got["vector"].to_pylist() == expected
        if policy != "drop":
            assert got["k"].to_pylist() == list(range(start, rows))


def test_infinities_are_no_nan():
    batch = pa.record_batch({"vector": pa.array([[math.inf, -math.inf], [1.0, 2.0]], pa.list_(pa.float32(), 2))})
    assert _vectors.handle_batch(batch, "vector", "error", 0.0, 2, pa.float32()) is batch


def test_nan_behind_a_null_is_no_nan():
    values = pa.array([1.0, 2.0, NAN, NAN], pa.float32())
    column = pa.FixedSizeListArray.from_arrays(values, 2, mask=pa.array([False, True]))
    filled = _vectors.handle_batch(pa.record_batch({"vector": column}), "vector", "drop", 0.0, 2, pa.float32())
    assert filled["vector"].to_pylist() == [[1.0, 2.0]]
    assert _vectors._rows_with_nan(column) is None
    assert _vectors._rows_with_nan(pa.FixedSizeListArray.from_arrays(values, 2)).tolist() == [False, True]


def test_missing_members_are_filled_but_are_no_reason_to_drop():
    batch = pa.record_batch({"vector": pa.array([[1.0, None], [NAN, None]], pa.list_(pa.float32()))})
    assert _vectors.handle_batch(batch, "vector", "fill", 9.0, 2, pa.float32())["vector"].to_pylist() == [[1.0, 9.0], [9.0, 9.0]]
    assert _vectors.handle_batch(batch, "vector", "drop", 9.0, 2, pa.float32())["vector"].to_pylist() == [[1.0, None]]


def test_integer_vectors_have_policies_too():
    schema = pa.schema([("k", pa.int64()), ("vector", pa.list_(pa.uint8(), 2))])
    rows = [{"k": 0, "vector": [1, 2]}, {"k": 1, "vector": [1]}, {"k": 2, "vector": None}, {"k": 3, "vector": [7, 8, 9]}]
    get = lambda policy: new_table(rows, schema, policy, 5)["vector"].to_pylist()
    assert get("drop") == [[1, 2]]
    assert get("fill") == [[1, 2], [1, 5], [5, 5], [7, 8]]
    assert get("null") == [[1, 2], None, None, None]
    with pytest.raises(ValueError, match="variable length"):
        get("error")


def test_the_dimension_holds_for_the_whole_stream():
    parts = lambda: iter([[{"vector": [1.0, 2.0]}], [{"vector": [1.0, 2.0, 3.0]}, {"vector": [3.0, 4.0]}], [{"vector": [NAN, 1.0]}]])
    get = lambda policy: new_table(parts(), None, policy, 0.0)["vector"].to_pylist()
    assert get("drop") == [[1.0, 2.0], [3.0, 4.0]]
    assert get("fill") == [[1.0, 2.0], [1.0, 2.0], [3.0, 4.0], [0.0, 1.0]]
    assert get("null") == [[1.0, 2.0], None, [3.0, 4.0], None]


def test_unknown_policies_are_refused():
    for call in (lambda: new_table([{"a": 1}], policy="huh"), lambda: _ingest.for_append([{"a": 1}], pa.schema([("a", pa.int64())]), "huh", 0.0)):
        with pytest.raises(ValueError, match="on_bad_vectors: huh"):
            call()


def test_wide_batches_are_filled_in_pieces():
    vectors = [[float(i), float(i)] if i % 3 else None for i in range(20000)]
    got = new_table(pa.table({"vector": pa.array(vectors, pa.list_(pa.float32()))}), None, "fill", 1.0)
    assert got["vector"].to_pylist() == [v or [1.0, 1.0] for v in vectors]


def test_metadata_must_be_text():
    with pytest.raises(ValueError, match="utf8"):
        new_table([{"a": 1}], pa.schema([("a", pa.int64())], metadata={b"k": b"\xff"}))
    with pytest.raises(ValueError, match="utf8"):
        new_table([{"a": 1}], pa.schema([pa.field("a", pa.int64(), metadata={b"\xfe": b"x"})]))


# --- vectors in lists of any length -------------------------------------------------------------------------


def list_table(db, **columns):
    return db.create_table("lists", schema=pa.schema([pa.field(name, pa.list_(kind)) for name, kind in columns.items()]))


def reader_of(*batches):
    batches = [pa.record_batch({name: pa.array(v, pa.list_(pa.float32())) for name, v in b.items()}) for b in batches]
    return pa.RecordBatchReader.from_batches(batches[0].schema, batches)


def test_a_list_column_named_vector_goes_by_its_usual_length():
    db = glaive.connect("memory://")
    table = list_table(db, vector=pa.float32())
    table.add([{"vector": [1.0, 2.0]}, {"vector": [3.0]}, {"vector": [4.0, 5.0]}, {"vector": [NAN, 1.0]}], on_bad_vectors="drop")
    assert table.schema.field("vector").type == pa.list_(pa.float32())
    assert table.to_arrow()["vector"].to_pylist() == [[1, 2], [4, 5]]
    table.add([{"vector": [6.0, 7.0]}, {"vector": [8.0]}, {"vector": [9.0, 9.0]}], on_bad_vectors="fill", fill_value=0.5)
    assert table.to_arrow()["vector"].to_pylist()[2:] == [[6, 7], [8, 0.5], [9, 9]]
    other = list_table(glaive.connect("memory://"), history=pa.float32())
    other.add([{"history": [1.0, 2.0]}, {"history": [3.0]}], on_bad_vectors="drop")
    assert other.to_arrow()["history"].to_pylist() == [[1, 2], [3]]


def test_the_length_is_that_of_the_first_vectors_that_stay():
    table = list_table(glaive.connect("memory://"), vector=pa.float32())
    batches = {"vector": [[NAN] * 3, [NAN] * 3]}, {"vector": [[1, 2], [3, 4], [5]]}, {"vector": [[6], [7], [8, 9]]}
    table.add(reader_of(*batches), on_bad_vectors="drop")
    assert table.to_arrow()["vector"].to_pylist() == [[1, 2], [3, 4], [8, 9]]
    table = list_table(glaive.connect("memory://"), vector=pa.float32())
    table.add(reader_of({"vector": [[], []]}, {"vector": [[1, 2], []]}), on_bad_vectors="drop")
    assert table.to_arrow()["vector"].to_pylist() == [[], [], [1, 2]]


def test_vectors_of_fixed_length_for_a_list_column():
    for policy, expected in (("drop", [[1.0] * 16]), ("fill", [[2.0] * 16, [1.0] * 16]), ("null", [None, [1.0] * 16])):
        table = list_table(glaive.connect("memory://"), feature=pa.float32())
        data = pa.table({"feature": pa.array([[NAN] * 16, [1.0] * 16], pa.list_(pa.float32(), 16))})
        table.add(data, on_bad_vectors=policy, fill_value=2.0)
        assert table.to_arrow()["feature"].to_pylist() == expected


def test_rows_that_say_none_for_each_vector_have_no_bad_ones():
    schema = pa.schema([pa.field("vector", pa.list_(pa.float32(), 2))])
    table = glaive.connect("memory://").create_table("t", schema=schema)
    table.add([{"vector": None}, {"vector": None}], on_bad_vectors="drop")
    assert table.to_arrow()["vector"].to_pylist() == [None, None]
    table.add([{"vector": None}, {"vector": [1.0, 2.0]}], on_bad_vectors="drop")
    assert table.to_arrow()["vector"].to_pylist() == [None, None, [1, 2]]
