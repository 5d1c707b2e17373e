from __future__ import annotations

import numpy as np
import pytest

from tritonpy import Internal, InvalidArgument
from tritonpy_backend_trt.context import Context
from tritonpy_backend_trt.logger import logger_of
from tritonpy_backend_trt.signature import signature_of

from .simulated import plans


@pytest.fixture
def make(simulation):
    def context(plan):
        runtime = simulation.trt.Runtime(logger_of(simulation.trt))
        engine = runtime.deserialize_cuda_engine(plan)
        signature = signature_of(engine)
        raw = engine.create_execution_context(simulation.trt.ExecutionContextAllocationStrategy.STATIC)
        return Context(raw, signature.profiles[0], "default", signature, "m_0")

    return context


def test_at_its_widest_outputs_have_their_largest_sizes(make):
    context = make(plans.double())
    context.widest()
    assert context.outputs == {"OUT": (8, 4)}
    assert context.largest_output("OUT") == 8 * 4 * 4


def test_values_of_shape_tensors_are_at_their_widest_too(make):
    context = make(plans.expand(batched=True))
    context.widest()
    assert context.outputs == {"FILLED": (8, 4, 5), "SIZES": (3,)}


def test_a_size_that_the_data_decides_is_not_known(make):
    context = make(plans.positives())
    context.widest()
    assert context.outputs == {"OUT": (-1,)}
    with pytest.raises(Internal, match="unable to allocate memory for output 'OUT' for m_0"):
        context.largest_output("OUT")


def test_shapes_are_given_once_while_they_stay_the_same(make, monkeypatch):
    context = make(plans.double())
    calls = []
    original = context.raw.set_input_shape
    context.raw.set_input_shape = lambda name, shape: calls.append(shape) or original(name, shape)
    for rows in (2, 2, 3, 2):
        context.specify({"IN": (rows, 4)}, {})
        assert context.outputs == {"OUT": (rows, 4)}
    assert calls == [(2, 4), (3, 4), (2, 4)]


def test_after_a_refusal_the_shapes_are_given_again(make):
    context = make(plans.double())
    context.specify({"IN": (2, 4)}, {})
    with pytest.raises(Internal, match="request specifies invalid shape"):
        context.specify({"IN": (9, 4)}, {})
    context.specify({"IN": (2, 4)}, {})
    assert context.outputs == {"OUT": (2, 4)}


def test_what_tensorrt_refuses_or_lacks_is_said_as_triton_does(make):
    context = make(plans.add_sub())
    with pytest.raises(
        Internal, match="failed to specify the dimensions of all input tensors or values of all input shape tensors"
    ):
        context.specify({"A": (1, 4)}, {})
    context.raw.set_input_shape = lambda *_given: False
    with pytest.raises(Internal, match=r"trt failed to set binding dimension to \[2,4\] for input 'A' for m_0"):
        context.specify({"A": (2, 4)}, {})
    with pytest.raises(InvalidArgument, match="'X' does not map to an input or output tensor"):
        context.put("X", np.zeros(1).ctypes.data)
