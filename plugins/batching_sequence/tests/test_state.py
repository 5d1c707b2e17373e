from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tritonpy import Batch, InferRequest, Tensor
from tritonpy.testing import Witness, model_config
from tritonpy_batching_sequence.state import ImplicitStates, SequenceState

NUMBERS = 'state { input_name: "S" output_name: "T" data_type: TYPE_INT32 dims: [2] %s }'
TEXTS = 'state { input_name: "A" output_name: "B" data_type: TYPE_STRING dims: [-1] }'
SAME = "use_same_buffer_for_input_output: true"


def states(*texts: str, max_batch_size: int = 8) -> ImplicitStates:
    config = model_config(f"max_batch_size: {max_batch_size} sequence_batching {{ {' '.join(texts)} }}")
    return ImplicitStates(config, Path())


def done(*outputs: Tensor) -> Batch:
    request = InferRequest("m", {}, Witness().sink)
    return Batch([request], new_states={tensor.name: tensor for tensor in outputs})


def values(state: SequenceState) -> list[Any]:
    return [tensor.numpy().tolist() for tensor in state]


def new(*rows: Sequence[int]) -> Tensor:
    return Tensor.from_numpy("T", np.array(rows, np.int32))


def test_a_model_without_states_has_none() -> None:
    none = states()
    assert not none
    assert none.outputs == ()


def test_a_sequence_keeps_its_row_of_what_the_model_made() -> None:
    kept = states(NUMBERS % "")
    first, second = kept.start(), kept.start()
    batch = done(new([1, 2], [3, 4], [5, 6]))
    kept.take_back(first, batch, 0)
    kept.take_back(second, batch, 2)
    assert (values(first), values(second)) == ([[[1, 2]]], [[[5, 6]]])
    assert values(kept.start()) == [[[0, 0]]]


def test_what_is_kept_is_no_view_on_the_batch() -> None:
    kept = states(NUMBERS % "", TEXTS)
    state = kept.start()
    numbers = new([1, 2], [3, 4])
    texts = Tensor.from_numpy("B", np.array([[b"a"], [b"b"]], object))
    kept.take_back(state, done(numbers, texts), 1)
    assert not any(
        np.shares_memory(tensor.data, whole.data) for tensor, whole in zip(state, (numbers, texts), strict=True)
    )


def test_a_state_that_the_backend_left_out_stays() -> None:
    kept = states(NUMBERS % "", TEXTS)
    state = kept.start()
    kept.take_back(state, done(Tensor.from_numpy("B", np.array([[b"a", b"bc"]], object))), 0)
    assert values(state) == [[[0, 0]], [[b"a", b"bc"]]]


def test_rows_are_those_of_the_slots_with_zeros_where_there_is_no_data() -> None:
    kept = states(NUMBERS % "", TEXTS)
    one, two = kept.start(), kept.start()
    kept.take_back(one, done(new([1, 2]), Tensor.from_numpy("B", np.array([[b"x", b"yz"]], object))), 0)
    kept.take_back(two, done(new([3, 4]), Tensor.from_numpy("B", np.array([[b"", b"w"]], object))), 0)
    numbers, texts = kept.rows([None, one, None, two])
    assert (numbers.name, numbers.shape, texts.name, texts.shape) == ("S", (4, 2), "A", (4, 2))
    assert numbers.numpy().tolist() == [[0, 0], [1, 2], [0, 0], [3, 4]]
    assert texts.numpy().tolist() == [[b"", b""], [b"x", b"yz"], [b"", b""], [b"", b"w"]]


def test_one_row_is_passed_on_as_it_is() -> None:
    kept = states(NUMBERS % "")
    state = kept.start()
    assert kept.rows([state])[0] is state[0]


def test_a_backend_cannot_write_to_a_state_that_is_not_its_buffer() -> None:
    kept = states(NUMBERS % "", TEXTS)
    one, two = kept.start(), kept.start()
    kept.take_back(one, done(new([1, 2])), 0)
    for tensors in (kept.rows([one]), kept.rows([two]), kept.rows([one, two])):
        assert not any(tensor.data.flags.writeable for tensor in tensors)


def test_one_buffer_stays_the_same_whoever_fills_it() -> None:
    kept = states(NUMBERS % SAME)
    state, other = kept.start(), kept.start()
    address = state[0].data.ctypes.data
    assert not np.shares_memory(state[0].data, other[0].data)
    kept.take_back(state, done(new([9, 9], [1, 2])), 1)
    assert (values(state), state[0].data.ctypes.data) == ([[[1, 2]]], address)
    (given_to_backend,) = kept.rows([state])
    given_to_backend.data[:] += 1
    kept.take_back(state, done(Tensor.from_numpy("T", given_to_backend.data)), 0)
    assert (values(state), state[0].data.ctypes.data) == ([[[2, 3]]], address)


def test_one_buffer_is_replaced_where_the_size_changes() -> None:
    kept = states(NUMBERS.replace("[2]", "[-1]") % SAME)
    state = kept.start()
    kept.take_back(state, done(new([1, 2, 3])), 0)
    assert (values(state), state[0].data.flags.writeable) == ([[[1, 2, 3]]], True)


def test_a_start_is_not_changed_by_the_sequence_before() -> None:
    kept = states(NUMBERS % SAME)
    state = kept.start()
    kept.rows([state])[0].data[:] = 5
    assert values(kept.start()) == [[[0, 0]]]


def test_shapes_tell_which_sequences_share_a_batch() -> None:
    fixed, varying = states(NUMBERS % ""), states(TEXTS)
    assert fixed.shapes(fixed.start()) == ()
    one, two = varying.start(), varying.start()
    assert varying.shapes(one) == varying.shapes(two) == varying.shapes(None)
    varying.take_back(two, done(Tensor.from_numpy("B", np.array([[b"x", b"y"]], object))), 0)
    assert varying.shapes(one) != varying.shapes(two)


@pytest.mark.parametrize("same", ["", SAME])
def test_a_model_without_batches_keeps_the_whole_tensor(same: str) -> None:
    kept = states(NUMBERS % same, TEXTS, max_batch_size=0)
    state = kept.start()
    assert values(state) == [[0, 0], [b""]]
    texts = Tensor.from_numpy("B", np.array([b"x", b"yz"], object))
    kept.take_back(state, done(Tensor.from_numpy("T", np.array([3, 4], np.int32)), texts), 0)
    assert [tensor.numpy().tolist() for tensor in kept.rows([state])] == [[3, 4], [b"x", b"yz"]]


@given(
    st.lists(st.lists(st.integers(0, 3), min_size=1, max_size=4, unique=True), max_size=12),
    st.booleans(),
    st.integers(0, 4),
)
def test_every_sequence_sees_what_it_made_last(batches: list[list[int]], same: bool, holes: int) -> None:
    """Each of four sequences adds its number to its state whenever it is in a batch; `holes` slots stay empty in front."""
    kept = states(NUMBERS % (SAME if same else ""))
    live, expected = [kept.start() for _ in range(4)], [0] * 4
    for members in batches:
        (given_to_backend,) = kept.rows([None] * holes + [live[member] for member in members])
        assert given_to_backend.numpy()[holes:, 0].tolist() == [expected[member] for member in members]
        assert not given_to_backend.numpy()[:holes].any()
        numbers = np.array([[0]] * holes + [[member + 1] for member in members], np.int32)
        batch = done(Tensor.from_numpy("T", given_to_backend.numpy() + numbers))
        for row, member in enumerate(members, holes):
            kept.take_back(live[member], batch, row)
            expected[member] += member + 1
    assert [state[0].numpy()[0, 1] for state in live] == expected
