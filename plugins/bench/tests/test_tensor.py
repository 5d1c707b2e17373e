from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tritonpy_bench.inputs.tensor import batched, from_bytes, from_values
from tritonpy_bench.options import BadUsage


@given(st.lists(st.integers(-(2**31), 2**31 - 1), min_size=1))
def test_numbers_survive_as_bytes_and_as_json(values):
    made = from_values("A", "INT32", [len(values)], values)
    assert made.content == np.array(values, np.int32).tobytes()
    assert made.as_json() == values


@given(st.lists(st.text()))
def test_texts_survive_as_json(values):
    values = [value.encode("utf-8", "ignore").decode() for value in values]
    assert from_values("T", "BYTES", [len(values)], values).as_json() == values


def test_nested_values_are_flattened_and_counted():
    assert from_values("A", "FP32", [2, 2], [[1, 2], [3, 4]]).as_json() == [1, 2, 3, 4]
    with pytest.raises(BadUsage, match=r"shape \[2, 2\] takes 4 elements, there are 3"):
        from_values("A", "FP32", [2, 2], [1, 2, 3])
    with pytest.raises(BadUsage, match="takes 2 elements, there are 1"):
        from_values("T", "BYTES", [2], ["x"])


def test_values_of_another_type_are_refused_by_name():
    with pytest.raises(BadUsage, match="input 'A' are not of its type INT32"):
        from_values("A", "INT32", [1], ["x"])
    with pytest.raises(BadUsage, match="type FP8, which is not known"):
        from_values("A", "FP8", [1], [1])


def test_bytes_must_be_as_many_as_the_shape_takes():
    assert from_bytes("A", "INT16", [2], b"\1\0\2\0").as_json() == [1, 2]
    with pytest.raises(BadUsage, match="takes 4 bytes, there are 3"):
        from_bytes("A", "INT16", [2], b"123")


def test_json_cannot_carry_half_precision():
    with pytest.raises(BadUsage, match="--input-tensor-format binary"):
        from_values("H", "FP16", [1], [1]).as_json()


def test_a_batch_is_its_elements_one_after_the_other():
    elements = [from_values("A", "INT32", [2], values) for values in ([1, 2], [3, 4], [5, 6])]
    joined = batched(elements)
    assert (joined.shape, joined.as_json()) == ((3, 2), [1, 2, 3, 4, 5, 6])
    with pytest.raises(BadUsage, match="in one batch"):
        batched([elements[0], from_values("A", "INT32", [1], [1])])
