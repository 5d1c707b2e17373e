from __future__ import annotations

from pathlib import Path

import numpy as np

from tritonpy import Batch, InferRequest, SequenceInfo, Tensor
from tritonpy_batching_sequence.batch_states import BatchStates
from tritonpy_batching_sequence.live_sequence import LiveSequence
from tritonpy_batching_sequence.state import ImplicitStates
from tritonpy_testing import RecordingSink, model_config

CONFIG = """
max_batch_size: 8
sequence_batching { state { input_name: "S" output_name: "T" data_type: TYPE_INT32 dims: 1 } }
"""


def batch_states() -> BatchStates:
    return BatchStates(ImplicitStates(model_config(CONFIG), Path()))


def request(start: bool = False) -> InferRequest:
    return InferRequest("m", {}, RecordingSink().sink, sequence=SequenceInfo(1, start))


def set_new_states(batch: Batch, *values: int) -> None:
    """Set the new states as an execution would."""
    batch.new_states["T"] = Tensor.from_numpy(
        "T", np.array([[value] for value in values], np.int32)
    )


def state_values(batch: Batch) -> list[int]:
    return [row[0] for row in batch.states[0].numpy().tolist()]


def test_states_are_added_to_the_batch_and_collected() -> None:
    states, sequences = batch_states(), [LiveSequence(number) for number in range(2)]
    for expected in ([0, 0], [5, 6]):
        requests = [request(), request()]
        batch = Batch(requests)
        states.add(batch, sequences, requests)
        assert (state_values(batch), batch.state_outputs) == (expected, ("T",))
        set_new_states(batch, 5, 6)
        for sequence, each in zip(sequences, requests, strict=True):
            states.collect(sequence, each)


def test_an_empty_slot_does_not_shift_rows() -> None:
    states, sequence, one = batch_states(), LiveSequence(1), request()
    batch = Batch([one], slots=[None, one])
    states.add(batch, [None, sequence], [None, one])
    set_new_states(batch, 8, 9)
    states.collect(sequence, one)
    again = request()
    batch = Batch([again])
    states.add(batch, [sequence], [again])
    assert state_values(batch) == [9]


def test_start_resets_the_state() -> None:
    states, sequence = batch_states(), LiveSequence(1)
    for _ in range(2):
        first = request(start=True)
        batch = Batch([first])
        states.add(batch, [sequence], [first])
        assert state_values(batch) == [0]
        set_new_states(batch, 5)
        states.collect(sequence, first)


def test_a_rescheduled_request_without_a_batch_keeps_its_state() -> None:
    states, sequence, one = batch_states(), LiveSequence(1), request(start=True)
    batch = one.batch = Batch([one])
    states.add(batch, [sequence], [one])
    set_new_states(batch, 4)
    one.batch = None
    states.collect(sequence, one)
    one.sequence = SequenceInfo(1)
    batch = Batch([one])
    states.add(batch, [sequence], [one])
    assert state_values(batch) == [4]


def test_a_request_that_never_ran_changes_no_state() -> None:
    states, sequence = batch_states(), LiveSequence(1)
    states.collect(sequence, request())
    assert sequence.state is None


def test_a_failed_execution_leaves_the_state_as_it_was() -> None:
    states, sequence, one, two = batch_states(), LiveSequence(1), request(), request()
    batch = Batch([one])
    states.add(batch, [sequence], [one])
    set_new_states(batch, 3)
    states.collect(sequence, one)
    states.add(Batch([two]), [sequence], [two])
    states.collect(sequence, two)
    assert sequence.state is not None
    assert sequence.state[0].numpy().tolist() == [[3]]
