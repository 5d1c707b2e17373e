"""Scheduler data of batches."""

from __future__ import annotations

import numpy as np
import pytest

from tritonpy_ipc.sequence_frame import read_sequence_frame
from tritonpy_types import Batch, CallbackSink, InferRequest, SequenceInfo, Tensor
from tritonpy_workers.sequence_frame import needs_sequence_frame, sequence_frame_parts

START = Tensor.from_numpy("START", np.ones((2, 1), np.int32))
STATE = Tensor.from_numpy("STATE", np.ones((2, 1), np.int32))


def request(**message):
    return InferRequest("m", {}, CallbackSink(lambda *_: None), **message)


@pytest.mark.parametrize(
    "more",
    [{"slots": [None]}, {"controls": [START]}, {"states": [STATE]}, {"state_outputs": ["S"]}],
)
def test_scheduler_data_needs_a_sequence_frame(more) -> None:
    assert not needs_sequence_frame(Batch([request()]))
    assert needs_sequence_frame(Batch([request()], **more))


def test_a_sequence_needs_a_sequence_frame() -> None:
    assert needs_sequence_frame(Batch([request(), request(sequence=SequenceInfo(1))]))


def test_each_batch_has_its_slots_sequences_and_tensors() -> None:
    first, second = (
        request(sequence=SequenceInfo(7, start=True)),
        request(sequence=SequenceInfo("s", end=True)),
    )
    holed = Batch(
        [first, second],
        slots=[None, first, None, second],
        controls=[START],
        states=[STATE],
        state_outputs=["OUT"],
    )
    words, extras, rows = sequence_frame_parts([Batch([request()]), holed])
    assert extras == {"sequences": {"2": "s"}, "state_outputs": {"1": ["OUT"]}}
    assert [[tensor.name for tensor in row] for row in rows] == [["START", "STATE"]]
    executions, at = read_sequence_frame(words, 0, [1, 2], extras["sequences"])
    assert at == len(words)
    assert executions == [
        ((0, 0, 0), [(0, False, False, 0)]),
        ((4, 1, 1), [(7, True, False, 1), ("s", False, True, 3)]),
    ]
