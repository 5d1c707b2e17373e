"""Requests that differ in values alone are checked once for all."""

from __future__ import annotations

import numpy as np
import pytest

from core.tests.model.test_request_check import BATCH, FIXED, SINK, check_of
from tritonpy.ipc.blocks import PlacedInputs
from tritonpy.ipc.signatures import Known, Written
from tritonpy.ipc.tensors import pack, unpack
from tritonpy.model.input_rule import InputRule
from tritonpy.types import DTYPES, InferRequest, OutputSpec, Tensor


def alike(*values, wanted=None):
    """Requests as they come from another process: their inputs lie in one block."""
    inputs = [[Tensor.from_numpy(name, np.full((2, 3), value, np.int32)) for name in "AB"] for value in values]
    words, parts, _ = pack(inputs, [None] * len(inputs), written := Written())
    known = Known(DTYPES)
    known.learn(written.news())
    payload = np.frombuffer(b"".join(parts), np.uint8)
    rows, _ = unpack(words, 0, payload, known, Tensor, PlacedInputs)
    outputs = None if wanted is None else {name: OutputSpec(name) for name in wanted}
    return [InferRequest("m", row, SINK, outputs=outputs) for row in rows]


def test_alike_requests_get_what_each_would_get():
    check = check_of(BATCH + " dynamic_batching { priority_levels: 3 default_priority_level: 2 }")
    for _ in range(2):  # what was checked once is remembered
        requests = alike(1, 2, 3, wanted=[])
        assert check.check_alike(requests)
        assert [(each.batch_size, each.priority, each.outputs) for each in requests] == [(2, 2, None)] * 3


def test_what_alike_inputs_were_is_remembered_and_outputs_are_looked_at_each_time(monkeypatch):
    check = check_of(BATCH)
    requests = alike(1, 2)
    assert check.check_alike(requests)
    monkeypatch.setattr(InputRule, "fits", None)
    monkeypatch.setattr(check, "_check_thoroughly", None)
    monkeypatch.setattr(check, "_rules", None)
    again = [InferRequest("m", each.inputs, SINK, outputs={"OUT": OutputSpec("OUT")}) for each in requests]
    assert check.check_alike(again)
    assert [each.batch_size for each in again] == [2, 2]
    other = [InferRequest("m", each.inputs, SINK, outputs={"NONE": OutputSpec("NONE")}) for each in requests]
    assert not check.check_alike(other)


@pytest.mark.parametrize(
    "text",
    [
        FIXED,
        BATCH + " sequence_batching { }",
        BATCH.replace("dims: 3 }]", "dims: 3 reshape { shape: [3, 1] } }]"),
    ],
)
def test_alike_requests_that_have_to_be_looked_at_one_by_one_are_left_as_they_are(text):
    requests = alike(1, 2)
    before = [each.inputs for each in requests]
    assert not check_of(text).check_alike(requests)
    assert [each.inputs for each in requests] == before


def test_shapes_without_end_are_not_remembered_without_end():
    check = check_of(BATCH)
    for _ in range(200):
        assert check.check_alike(alike(1))  # each time from another connection
    assert len(check._fitting) <= 64
