from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tritonpy.batching.ragged import flatten_ragged
from tritonpy.types import Tensor


def numbers(*shape: int) -> Tensor:
    return Tensor.from_numpy("IN", np.arange(np.prod(shape), dtype=np.int32).reshape(shape))


@given(st.lists(st.tuples(st.integers(1, 2), st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=5))
def test_elements_of_any_shapes_are_concatenated(shapes: list[tuple[int, ...]]) -> None:
    tensors = [numbers(*shape) for shape in shapes]
    flat = flatten_ragged(tensors, tensors[0])
    assert (flat.name, flat.datatype) == ("IN", "INT32")
    assert flat.numpy().tolist() == [number for tensor in tensors for number in tensor.numpy().ravel().tolist()]
    assert flat.shape == (sum(tensor.numpy().size for tensor in tensors),)


def test_a_single_tensor_is_not_copied() -> None:
    one = numbers(2, 3)
    flat = flatten_ragged([one], one)
    assert flat.shape == (6,)
    assert np.shares_memory(flat.data, one.data)


def test_bytes_tensors_are_flattened() -> None:
    one, two = (Tensor.from_numpy("IN", np.array([words], object)) for words in ([b"a", b"bc"], [b""]))
    flat = flatten_ragged([one, None, two], one)
    assert (flat.shape, flat.strings()) == ((5,), [b"a", b"bc", b"", b"", b""])


def test_a_slot_without_data_is_a_row_of_zeros() -> None:
    one = numbers(1, 2)
    assert flatten_ragged([None, one], one).numpy().tolist() == [0, 0, 0, 1]


@pytest.mark.parametrize("count", [1, 2])
def test_the_copy_is_written_to_the_memory_of_out(count: int) -> None:
    memory = np.full(3 * count, -1, np.int32)
    calls = []

    def out(name: str, datatype: str, shape: tuple[int, ...]) -> np.ndarray:
        calls.append((name, datatype, shape))
        return memory

    flat = flatten_ragged([numbers(1, 3)] * count, numbers(1, 3), out)
    assert calls == [("IN", "INT32", (3 * count,))]
    assert np.shares_memory(flat.data, memory)
    assert memory.tolist() == [0, 1, 2] * count
