"""The comparison and the generator themselves: they must see a difference when there is one."""

import random

import arrays
import pyarrow as pa
import pytest
from same import assert_same, is_same


def test_sees_values_types_nulls_and_signs():
    base = pa.table({"a": pa.array([1.0, float("nan"), 0.0, None])})
    assert is_same(base, pa.table({"a": pa.chunked_array([[1.0, float("nan")], [0.0, None]])}))
    for other in [
        pa.array([1.0, float("nan"), -0.0, None]),
        pa.array([1.0, 2.0, 0.0, None]),
        pa.array([1.0, float("nan"), 0.0, 0.0]),
        pa.array([1.0, float("nan"), 0.0]),
        pa.array([1.0, float("nan"), 0.0, None], pa.float32()),
    ]:
        assert not is_same(base, pa.table({"a": other}))
    with pytest.raises(AssertionError, match="columns"):
        assert_same(base, base.rename_columns(["b"]))


@pytest.mark.parametrize("name", arrays.TYPES)
def test_generator_makes_valid_arrays(name, seed):
    rng = random.Random(seed)
    for nulls in arrays.NULLS:
        array = arrays.random_array(rng, arrays.TYPES[name], 41, nulls)
        array.validate(full=True)
        assert array.type == arrays.TYPES[name] and len(array) == 41
        if nulls == "none" and name != "null":
            assert array.null_count == 0
        if nulls == "all":
            assert array.null_count == 41 or pa.types.is_null(array.type)
        table = pa.table({"a": array})
        assert is_same(table, pa.table({"a": pa.chunked_array([array[:7], array[7:]], array.type)}))
        if nulls == "none" and name != "null":
            assert not is_same(table, pa.table({"a": array[1:]}))
