"""What a scheduler added to batches."""

from __future__ import annotations

import numpy as np
import pytest

from tritonpy.ipc.laden import read_laden
from tritonpy.runners.workers.laden import is_laden, laden_words
from tritonpy.types import Batch, CallbackSink, InferRequest, SequenceInfo, Tensor

START = Tensor.from_numpy("START", np.ones((2, 1), np.int32))
STATE = Tensor.from_numpy("STATE", np.ones((2, 1), np.int32))


def request(**said):
    return InferRequest("m", {}, CallbackSink(lambda *_: None), **said)


@pytest.mark.parametrize(
    "more", [{"slots": [None]}, {"controls": [START]}, {"states": [STATE]}, {"state_outputs": ["S"]}]
)
def test_whatever_a_scheduler_adds_makes_a_batch_laden(more) -> None:
    assert not is_laden(Batch([request()]))
    assert is_laden(Batch([request()], **more))


def test_a_sequence_makes_a_batch_laden() -> None:
    assert is_laden(Batch([request(), request(sequence=SequenceInfo(1))]))


def test_each_batch_says_its_slots_its_sequences_and_its_tensors() -> None:
    first, second = request(sequence=SequenceInfo(7, start=True)), request(sequence=SequenceInfo("s", end=True))
    holed = Batch(
        [first, second], slots=[None, first, None, second], controls=[START], states=[STATE], state_outputs=["OUT"]
    )
    words, extras, rows = laden_words([Batch([request()]), holed])
    assert extras == {"sequences": {"2": "s"}, "state_outputs": {"1": ["OUT"]}}
    assert [[tensor.name for tensor in row] for row in rows] == [["START", "STATE"]]
    executions, at = read_laden(words, 0, [1, 2], extras["sequences"])
    assert at == len(words)
    assert executions == [
        ((0, 0, 0), [(0, False, False, 0)]),
        ((4, 1, 1), [(7, True, False, 1), ("s", False, True, 3)]),
    ]
