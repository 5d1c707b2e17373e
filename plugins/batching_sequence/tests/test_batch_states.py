from __future__ import annotations

from pathlib import Path

import numpy as np

from tritonpy import Batch, InferRequest, SequenceInfo, Tensor
from tritonpy.testing import Witness, model_config
from tritonpy_batching_sequence.batch_states import BatchStates
from tritonpy_batching_sequence.live_sequence import LiveSequence
from tritonpy_batching_sequence.state import ImplicitStates

CONFIG = """
max_batch_size: 8
sequence_batching { state { input_name: "S" output_name: "T" data_type: TYPE_INT32 dims: 1 } }
"""


def batch_states() -> BatchStates:
    return BatchStates(ImplicitStates(model_config(CONFIG), Path()))


def request(start: bool = False) -> InferRequest:
    return InferRequest("m", {}, Witness().sink, sequence=SequenceInfo(1, start))


def made(batch: Batch, *values: int) -> None:
    """What the execution made of the states."""
    batch.new_states["T"] = Tensor.from_numpy("T", np.array([[value] for value in values], np.int32))


def seen(batch: Batch) -> list[int]:
    return [row[0] for row in batch.states[0].numpy().tolist()]


def test_states_go_to_the_batch_and_come_back() -> None:
    states, sequences = batch_states(), [LiveSequence(number) for number in range(2)]
    for expected in ([0, 0], [5, 6]):
        requests = [request(), request()]
        batch = Batch(requests)
        states.add(batch, sequences, requests)
        assert (seen(batch), batch.state_outputs) == (expected, ("T",))
        made(batch, 5, 6)
        for sequence, each in zip(sequences, requests, strict=True):
            states.take_back(sequence, each)


def test_a_hole_shifts_nobody() -> None:
    states, sequence, one = batch_states(), LiveSequence(1), request()
    batch = Batch([one], slots=[None, one])
    states.add(batch, [None, sequence], [None, one])
    made(batch, 8, 9)
    states.take_back(sequence, one)
    again = request()
    batch = Batch([again])
    states.add(batch, [sequence], [again])
    assert seen(batch) == [9]


def test_start_begins_anew() -> None:
    states, sequence = batch_states(), LiveSequence(1)
    for _ in range(2):
        first = request(start=True)
        batch = Batch([first])
        states.add(batch, [sequence], [first])
        assert seen(batch) == [0]
        made(batch, 5)
        states.take_back(sequence, first)


def test_a_request_that_is_handed_back_brings_its_state_though_it_has_no_batch_any_more() -> None:
    states, sequence, one = batch_states(), LiveSequence(1), request(start=True)
    batch = one.batch = Batch([one])
    states.add(batch, [sequence], [one])
    made(batch, 4)
    one.batch = None
    states.take_back(sequence, one)
    one.sequence = SequenceInfo(1)
    batch = Batch([one])
    states.add(batch, [sequence], [one])
    assert seen(batch) == [4]


def test_what_never_ran_changes_nothing() -> None:
    states, sequence = batch_states(), LiveSequence(1)
    states.take_back(sequence, request())
    assert sequence.state is None


def test_a_failed_execution_leaves_the_state_as_it_was() -> None:
    states, sequence, one, two = batch_states(), LiveSequence(1), request(), request()
    batch = Batch([one])
    states.add(batch, [sequence], [one])
    made(batch, 3)
    states.take_back(sequence, one)
    states.add(Batch([two]), [sequence], [two])
    states.take_back(sequence, two)
    assert sequence.state is not None
    assert sequence.state[0].numpy().tolist() == [[3]]
