from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tritonpy_load_generator.inputs.tensor import from_bytes, from_values, stack_batch
from tritonpy_load_generator.options import BadUsage


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
    with pytest.raises(BadUsage, match=r"shape \[2, 2\] takes 4 elements, got 3"):
        from_values("A", "FP32", [2, 2], [1, 2, 3])
    with pytest.raises(BadUsage, match="takes 2 elements, got 1"):
        from_values("T", "BYTES", [2], ["x"])


def test_values_of_another_type_are_rejected():
    with pytest.raises(BadUsage, match="input 'A' do not have its type INT32"):
        from_values("A", "INT32", [1], ["x"])
    with pytest.raises(BadUsage, match="unknown type FP8"):
        from_values("A", "FP8", [1], [1])


def test_the_number_of_bytes_must_fit_the_shape():
    assert from_bytes("A", "INT16", [2], b"\1\0\2\0").as_json() == [1, 2]
    with pytest.raises(BadUsage, match="takes 4 bytes, got 3"):
        from_bytes("A", "INT16", [2], b"123")


def test_json_does_not_support_half_precision():
    with pytest.raises(BadUsage, match="--input-tensor-format binary"):
        from_values("H", "FP16", [1], [1]).as_json()


def test_a_batch_concatenates_its_elements():
    elements = [from_values("A", "INT32", [2], values) for values in ([1, 2], [3, 4], [5, 6])]
    joined = stack_batch(elements)
    assert (joined.shape, joined.as_json()) == ((3, 2), [1, 2, 3, 4, 5, 6])
    with pytest.raises(BadUsage, match="in one batch"):
        stack_batch([elements[0], from_values("A", "INT32", [1], [1])])
