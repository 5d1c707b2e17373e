"""Coalesced requests, which differ only in values, are checked once."""

from __future__ import annotations

import numpy as np
import pytest

from core.tests.model.test_request_check import BATCH, FIXED, SINK, check_of
from tritonpy.model.request_check import InputRule
from tritonpy_ipc.blocks import BlockInputs
from tritonpy_ipc.signatures import SignatureReader, SignatureWriter
from tritonpy_ipc.tensors import pack, unpack
from tritonpy_types import DTYPES, InferRequest, OutputSpec, Tensor


def coalesced(*values, output_names=None):
    """Return requests like those from another process: their inputs are in one block."""
    inputs = [
        [Tensor.from_numpy(name, np.full((2, 3), value, np.int32)) for name in "AB"]
        for value in values
    ]
    words, parts, _ = pack(inputs, [None] * len(inputs), written := SignatureWriter())
    known = SignatureReader(DTYPES)
    known.learn(written.new_signatures())
    payload = np.frombuffer(b"".join(parts), np.uint8)
    rows, _ = unpack(words, 0, payload, known, Tensor, BlockInputs)
    outputs = None if output_names is None else {name: OutputSpec(name) for name in output_names}
    return [InferRequest("m", row, SINK, outputs=outputs) for row in rows]


def test_coalesced_requests_get_the_same_values_as_single_ones():
    check = check_of(BATCH + " dynamic_batching { priority_levels: 3 default_priority_level: 2 }")
    for _ in range(2):  # the second time, the signature is already known
        requests = coalesced(1, 2, 3, output_names=[])
        assert check.check_coalesced(requests)
        assert [(each.batch_size, each.priority, each.outputs) for each in requests] == [
            (2, 2, None)
        ] * 3


def test_signatures_of_inputs_are_remembered_and_outputs_are_checked_each_time(monkeypatch):
    check = check_of(BATCH)
    requests = coalesced(1, 2)
    assert check.check_coalesced(requests)
    monkeypatch.setattr(InputRule, "fits", None)
    again = [
        InferRequest("m", each.inputs, SINK, outputs={"OUT": OutputSpec("OUT")})
        for each in requests
    ]
    assert check.check_coalesced(again)
    assert [each.batch_size for each in again] == [2, 2]
    other = [
        InferRequest("m", each.inputs, SINK, outputs={"NONE": OutputSpec("NONE")})
        for each in requests
    ]
    assert not check.check_coalesced(other)


@pytest.mark.parametrize(
    "text",
    [
        FIXED,
        BATCH + " sequence_batching { }",
        BATCH.replace("dims: 3 }]", "dims: 3 reshape { shape: [3, 1] } }]"),
    ],
)
def test_requests_that_need_single_checks_are_unchanged(text):
    requests = coalesced(1, 2)
    before = [each.inputs for each in requests]
    assert not check_of(text).check_coalesced(requests)
    assert [each.inputs for each in requests] == before


def test_the_number_of_remembered_signatures_is_limited():
    check = check_of(BATCH)
    for _ in range(200):
        assert check.check_coalesced(coalesced(1))  # a new signature object each time
    assert len(check._known_batch_sizes) <= 64
