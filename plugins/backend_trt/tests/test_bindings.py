from __future__ import annotations

import sys

import pytest

from tritonpy import Unavailable
from tritonpy_backend_trt.allocator import AllocationTracker, create_allocator
from tritonpy_backend_trt.bindings import import_tensorrt
from tritonpy_backend_trt.logger import get_logger
from tritonpy_backend_trt.output_allocator import GrowableBuffer, output_allocator

from .simulated.tensorrt import tensorrt


def test_the_full_runtime_is_preferred(simulation, monkeypatch):
    lean = tensorrt(simulation.machine, "tensorrt_lean")
    monkeypatch.setitem(sys.modules, "tensorrt_lean", lean)
    assert import_tensorrt() is simulation.trt
    assert import_tensorrt("lean") is lean
    assert import_tensorrt("full") is simulation.trt
    monkeypatch.setitem(sys.modules, "tensorrt", None)
    assert import_tensorrt() is lean


@pytest.mark.parametrize("wanted", ["any", "full", "lean"])
def test_missing_bindings_give_installation_instructions(monkeypatch, wanted):
    for name in ("tensorrt", "tensorrt_lean"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(
        Unavailable, match=r"TensorRT cannot be imported \(.* 'tritonpy-backend-trt\[full\]'"
    ) as caught:
        import_tensorrt(wanted)
    assert ("tensorrt:" in caught.value.message) == (wanted != "lean")
    assert ("tensorrt_lean:" in caught.value.message) == (wanted != "full")


@pytest.fixture
def real():
    """The real bindings, which can be imported without a GPU."""
    try:
        return import_tensorrt()
    except Unavailable as error:
        pytest.skip(f"needs TensorRT's bindings: {error}")


def test_the_real_bindings_have_all_used_names(real):
    expected = {
        "ICudaEngine": [
            "create_execution_context", "get_tensor_components_per_element", "get_tensor_dtype", "get_tensor_format_desc", "get_tensor_mode",
            "get_tensor_name", "get_tensor_profile_shape", "get_tensor_profile_values", "get_tensor_shape", "get_tensor_vectorized_dim",
            "get_weight_streaming_automatic_budget", "is_shape_inference_io", "num_io_tensors", "num_optimization_profiles",
            "streamable_weights_size", "weight_streaming_budget_v2",
        ],
        "IExecutionContext": [
            "execute_async_v3", "get_max_output_size", "get_tensor_shape", "infer_shapes", "set_input_consumed_event", "set_input_shape",
            "set_optimization_profile_async", "set_output_allocator", "set_tensor_address",
        ],
        "Runtime": ["DLA_core", "deserialize_cuda_engine", "engine_host_code_allowed", "gpu_allocator", "num_DLA_cores"],
        "IGpuAllocator": ["allocate", "allocate_async", "deallocate", "deallocate_async", "reallocate"],
    }  # fmt: skip
    lacking = [
        f"{kind}.{name}"
        for kind, names in expected.items()
        for name in names
        if not hasattr(getattr(real, kind), name)
    ]
    assert lacking == []
    assert {"STATIC", "ON_PROFILE_CHANGE"} <= set(
        real.ExecutionContextAllocationStrategy.__members__
    )
    assert {"INPUT", "OUTPUT"} <= set(real.TensorIOMode.__members__)
    assert {"FLOAT", "HALF", "BF16", "INT8", "UINT8", "INT32", "INT64", "BOOL"} <= set(
        real.DataType.__members__
    )
    assert {"INTERNAL_ERROR", "ERROR", "WARNING", "INFO", "VERBOSE"} == set(
        real.ILogger.Severity.__members__
    )


def test_the_simulation_has_only_names_of_the_real_bindings(real):
    from .simulated import tensorrt as simulated

    own = {
        "tensors",
        "profiles",
        "function",
        "activations",
        "contexts",
        "runtime",
        "machine",
        "device",
        "inputs",
        "itemsize",
        "memory_shape",
    }
    for mine, theirs in (
        (simulated.Engine, real.ICudaEngine),
        (simulated.ExecutionContext, real.IExecutionContext),
    ):
        public = {name for name in vars(mine) if not name.startswith("_")} - own
        assert [name for name in public if not hasattr(theirs, name)] == []


def test_callback_classes_can_be_derived_from_the_real_ones(real):
    assert isinstance(get_logger(real), real.ILogger)
    assert isinstance(create_allocator(real, None, AllocationTracker(None)), real.IGpuAllocator)
    assert isinstance(
        output_allocator(real, GrowableBuffer(lambda _size: None)), real.IOutputAllocator
    )
