"""Traces created by hand."""

from __future__ import annotations

import numpy as np

from tritonpy.tracing.rule import TraceRule
from tritonpy_testing import RecordingSink
from tritonpy_types import Batch, InferRequest, InferResponse, Tensor, TraceFamily, TraceLevel

BOTH = TraceLevel.TIMESTAMPS | TraceLevel.TENSORS


def rule(level=BOTH, rate=1, count=-1, log_frequency=0, missing_setting=""):
    return TraceRule(level, rate, count, log_frequency, missing_setting)


def family(level=BOTH, chosen_by=None, ended=lambda _: None, started=lambda _: None):
    return TraceFamily(level, chosen_by or rule(level), None, started, ended)


def tensor(name="IN", values=(1.5, 2.0), dtype=np.float32):
    return Tensor.from_numpy(name, np.array(values, dtype))


def request(trace=None, *tensors, request_id="", executed=True):
    inputs = {each.name: each for each in tensors or (tensor(),)}
    made = InferRequest(
        "m", inputs, RecordingSink().sink, id=request_id, trace=trace, received_ns=10, queued_ns=20
    )
    if executed:
        made.batch = Batch([made], start_ns=30, input_end_ns=40, infer_end_ns=50)
    return made


def answer(*tensors, **fields):
    return InferResponse(list(tensors), "m", 1, **fields)


def ended_family(level=BOTH, chosen_by=None, request_id=""):
    """Return the family of a finished request with one call by the model."""
    made = family(level, chosen_by)
    root = made.trace()
    outer = request(root, request_id=request_id)
    root.begin("m", 1, outer)
    child = root.spawn()
    called = request(child)
    child.begin("called", 2, called)
    child.responded(called, answer(), 55)
    root.responded(outer, answer(tensor("OUT", (3,), np.int32)), 60)
    root.end()
    return made
