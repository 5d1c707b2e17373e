from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tritonpy import Batch, InferRequest, Tensor
from tritonpy_batching_sequence.state import ImplicitStates, SequenceState
from tritonpy_testing import RecordingSink, model_config

NUMBERS = 'state { input_name: "S" output_name: "T" data_type: TYPE_INT32 dims: [2] %s }'
TEXTS = 'state { input_name: "A" output_name: "B" data_type: TYPE_STRING dims: [-1] }'
SAME = "use_same_buffer_for_input_output: true"


def states(*texts: str, max_batch_size: int = 8) -> ImplicitStates:
    config = model_config(
        f"max_batch_size: {max_batch_size} sequence_batching {{ {' '.join(texts)} }}"
    )
    return ImplicitStates(config, Path())


def executed_batch(*outputs: Tensor) -> Batch:
    request = InferRequest("m", {}, RecordingSink().sink)
    return Batch([request], new_states={tensor.name: tensor for tensor in outputs})


def values(state: SequenceState) -> list[Any]:
    return [tensor.numpy().tolist() for tensor in state]


def new(*rows: Sequence[int]) -> Tensor:
    return Tensor.from_numpy("T", np.array(rows, np.int32))


def test_a_model_without_states_has_none() -> None:
    none = states()
    assert not none
    assert none.outputs == ()


def test_a_sequence_keeps_its_row_of_the_new_states() -> None:
    implicit = states(NUMBERS % "")
    first, second = implicit.start(), implicit.start()
    batch = executed_batch(new([1, 2], [3, 4], [5, 6]))
    implicit.update(first, batch, 0)
    implicit.update(second, batch, 2)
    assert (values(first), values(second)) == ([[[1, 2]]], [[[5, 6]]])
    assert values(implicit.start()) == [[[0, 0]]]


def test_stored_states_are_not_views_of_the_batch() -> None:
    implicit = states(NUMBERS % "", TEXTS)
    state = implicit.start()
    numbers = new([1, 2], [3, 4])
    texts = Tensor.from_numpy("B", np.array([[b"a"], [b"b"]], object))
    implicit.update(state, executed_batch(numbers, texts), 1)
    assert not any(
        np.shares_memory(tensor.data, whole.data)
        for tensor, whole in zip(state, (numbers, texts), strict=True)
    )


def test_a_state_that_the_backend_left_out_stays() -> None:
    implicit = states(NUMBERS % "", TEXTS)
    state = implicit.start()
    implicit.update(
        state, executed_batch(Tensor.from_numpy("B", np.array([[b"a", b"bc"]], object))), 0
    )
    assert values(state) == [[[0, 0]], [[b"a", b"bc"]]]


def test_slots_without_data_have_zero_rows() -> None:
    implicit = states(NUMBERS % "", TEXTS)
    one, two = implicit.start(), implicit.start()
    implicit.update(
        one,
        executed_batch(new([1, 2]), Tensor.from_numpy("B", np.array([[b"x", b"yz"]], object))),
        0,
    )
    implicit.update(
        two, executed_batch(new([3, 4]), Tensor.from_numpy("B", np.array([[b"", b"w"]], object))), 0
    )
    numbers, texts = implicit.rows([None, one, None, two])
    assert (numbers.name, numbers.shape, texts.name, texts.shape) == ("S", (4, 2), "A", (4, 2))
    assert numbers.numpy().tolist() == [[0, 0], [1, 2], [0, 0], [3, 4]]
    assert texts.numpy().tolist() == [[b"", b""], [b"x", b"yz"], [b"", b""], [b"", b"w"]]


def test_a_single_row_is_not_copied() -> None:
    implicit = states(NUMBERS % "")
    state = implicit.start()
    assert implicit.rows([state])[0] is state[0]


def test_a_backend_cannot_write_to_a_state_that_is_not_its_buffer() -> None:
    implicit = states(NUMBERS % "", TEXTS)
    one, two = implicit.start(), implicit.start()
    implicit.update(one, executed_batch(new([1, 2])), 0)
    for tensors in (implicit.rows([one]), implicit.rows([two]), implicit.rows([one, two])):
        assert not any(tensor.data.flags.writeable for tensor in tensors)


def test_an_in_place_buffer_keeps_its_address() -> None:
    implicit = states(NUMBERS % SAME)
    state, other = implicit.start(), implicit.start()
    address = state[0].data.ctypes.data
    assert not np.shares_memory(state[0].data, other[0].data)
    implicit.update(state, executed_batch(new([9, 9], [1, 2])), 1)
    assert (values(state), state[0].data.ctypes.data) == ([[[1, 2]]], address)
    (given_to_backend,) = implicit.rows([state])
    given_to_backend.data[:] += 1
    implicit.update(state, executed_batch(Tensor.from_numpy("T", given_to_backend.data)), 0)
    assert (values(state), state[0].data.ctypes.data) == ([[[2, 3]]], address)


def test_an_in_place_buffer_is_replaced_if_its_size_changes() -> None:
    implicit = states(NUMBERS.replace("[2]", "[-1]") % SAME)
    state = implicit.start()
    implicit.update(state, executed_batch(new([1, 2, 3])), 0)
    assert (values(state), state[0].data.flags.writeable) == ([[[1, 2, 3]]], True)


def test_initial_states_are_not_changed_by_earlier_sequences() -> None:
    implicit = states(NUMBERS % SAME)
    state = implicit.start()
    implicit.rows([state])[0].data[:] = 5
    assert values(implicit.start()) == [[[0, 0]]]


def test_sequences_with_equal_state_shapes_share_a_batch() -> None:
    fixed, varying = states(NUMBERS % ""), states(TEXTS)
    assert fixed.shapes(fixed.start()) == ()
    one, two = varying.start(), varying.start()
    assert varying.shapes(one) == varying.shapes(two) == varying.shapes(None)
    varying.update(two, executed_batch(Tensor.from_numpy("B", np.array([[b"x", b"y"]], object))), 0)
    assert varying.shapes(one) != varying.shapes(two)


@pytest.mark.parametrize("same", ["", SAME])
def test_a_model_without_batches_keeps_the_whole_tensor(same: str) -> None:
    implicit = states(NUMBERS % same, TEXTS, max_batch_size=0)
    state = implicit.start()
    assert values(state) == [[0, 0], [b""]]
    texts = Tensor.from_numpy("B", np.array([b"x", b"yz"], object))
    implicit.update(
        state, executed_batch(Tensor.from_numpy("T", np.array([3, 4], np.int32)), texts), 0
    )
    assert [tensor.numpy().tolist() for tensor in implicit.rows([state])] == [[3, 4], [b"x", b"yz"]]


@given(
    st.lists(st.lists(st.integers(0, 3), min_size=1, max_size=4, unique=True), max_size=12),
    st.booleans(),
    st.integers(0, 4),
)
def test_every_sequence_sees_its_last_state(
    batches: list[list[int]], same: bool, holes: int
) -> None:
    """Each of four sequences adds its number to its state in every batch.

    The first `holes` slots stay empty.
    """
    implicit = states(NUMBERS % (SAME if same else ""))
    live, expected = [implicit.start() for _ in range(4)], [0] * 4
    for members in batches:
        (given_to_backend,) = implicit.rows([None] * holes + [live[member] for member in members])
        assert given_to_backend.numpy()[holes:, 0].tolist() == [
            expected[member] for member in members
        ]
        assert not given_to_backend.numpy()[:holes].any()
        numbers = np.array([[0]] * holes + [[member + 1] for member in members], np.int32)
        batch = executed_batch(Tensor.from_numpy("T", given_to_backend.numpy() + numbers))
        for row, member in enumerate(members, holes):
            implicit.update(live[member], batch, row)
            expected[member] += member + 1
    assert [state[0].numpy()[0, 1] for state in live] == expected
