from __future__ import annotations

import numpy as np
import pytest

from tritonpy import Internal, InvalidArgument
from tritonpy_backend_trt.context import ExecutionContext
from tritonpy_backend_trt.logger import get_logger
from tritonpy_backend_trt.signature import read_signature

from .simulated import plans


@pytest.fixture
def make(simulation):
    def context(plan):
        runtime = simulation.trt.Runtime(get_logger(simulation.trt))
        engine = runtime.deserialize_cuda_engine(plan)
        signature = read_signature(engine)
        raw = engine.create_execution_context(
            simulation.trt.ExecutionContextAllocationStrategy.STATIC
        )
        return ExecutionContext(raw, signature.profiles[0], "default", signature, "m_0")

    return context


def test_maximum_inputs_give_the_largest_outputs(make):
    context = make(plans.double())
    context.set_maximum_inputs()
    assert context.outputs == {"OUT": (8, 4)}
    assert context.largest_output("OUT") == 8 * 4 * 4


def test_maximum_inputs_include_shape_tensor_values(make):
    context = make(plans.expand(batched=True))
    context.set_maximum_inputs()
    assert context.outputs == {"FILLED": (8, 4, 5), "SIZES": (3,)}


def test_a_data_dependent_size_is_unknown(make):
    context = make(plans.positives())
    context.set_maximum_inputs()
    assert context.outputs == {"OUT": (-1,)}
    with pytest.raises(Internal, match="unable to allocate memory for output 'OUT' for m_0"):
        context.largest_output("OUT")


def test_unchanged_shapes_are_set_once(make, monkeypatch):
    context = make(plans.double())
    calls = []
    original = context.raw.set_input_shape
    context.raw.set_input_shape = lambda name, shape: calls.append(shape) or original(name, shape)
    for rows in (2, 2, 3, 2):
        context.set_inputs({"IN": (rows, 4)}, {})
        assert context.outputs == {"OUT": (rows, 4)}
    assert calls == [(2, 4), (3, 4), (2, 4)]


def test_shapes_are_set_again_after_an_error(make):
    context = make(plans.double())
    context.set_inputs({"IN": (2, 4)}, {})
    with pytest.raises(Internal, match="request specifies invalid shape"):
        context.set_inputs({"IN": (9, 4)}, {})
    context.set_inputs({"IN": (2, 4)}, {})
    assert context.outputs == {"OUT": (2, 4)}


def test_tensorrts_failures_get_tritons_text(make):
    context = make(plans.add_sub())
    with pytest.raises(
        Internal,
        match="failed to specify the dimensions of all input tensors or values of all input shape tensors",
    ):
        context.set_inputs({"A": (1, 4)}, {})
    context.raw.set_input_shape = lambda *_given: False
    with pytest.raises(
        Internal, match=r"trt failed to set binding dimension to \[2,4\] for input 'A' for m_0"
    ):
        context.set_inputs({"A": (2, 4)}, {})
    with pytest.raises(InvalidArgument, match="'X' does not map to an input or output tensor"):
        context.set_address("X", np.zeros(1).ctypes.data)
