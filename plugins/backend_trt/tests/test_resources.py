from __future__ import annotations

import threading
from contextlib import nullcontext

import pytest

from tritonpy import InstanceContext, TritonError
from tritonpy_backend_trt.backend import TensorRtBackend

from .simulated import plans

SUM = """
max_batch_size: 4 input { name: 'IN' data_type: TYPE_FP32 dims: 1 } output { name: 'SUM' data_type: TYPE_FP32 dims: 1 }
sequence_batching { state { input_name: 'BEFORE' output_name: 'AFTER' data_type: TYPE_FP32 dims: 1 } }"""


def parts(harness):
    return harness.instance._pipeline._resources


def test_instances_of_a_gpu_launch_one_at_a_time_unless_the_policy_lets_them(simulation):
    with simulation.load(plans.double()) as harness:
        second = TensorRtBackend(harness.model, InstanceContext("m_1", "GPU", 0, 1))
        assert parts(harness).launch_lock is second._pipeline._resources.launch_lock
        assert isinstance(parts(harness).launch_lock, type(threading.Lock()))
        second.close()
    with simulation.load(plans.double(), execution_policy="BLOCKING") as harness:
        assert isinstance(parts(harness).launch_lock, nullcontext)


def test_instances_of_sequences_launch_whenever_they_can(simulation):
    with simulation.load(plans.running_sum(), SUM) as harness:
        assert isinstance(parts(harness).launch_lock, nullcontext)
        assert parts(harness).outputs == ["SUM", "AFTER"]
        assert parts(harness).batched_outputs == {"SUM", "AFTER"}


def test_a_profile_that_the_engine_lacks_fails_the_load_and_leaves_nothing_on_the_gpu(simulation):
    text = """max_batch_size: 8 input { name: 'IN' data_type: TYPE_FP32 dims: 4 } output { name: 'OUT' data_type: TYPE_FP32 dims: 4 }
        instance_group { kind: KIND_GPU gpus: 0 profile: '1' }"""
    with pytest.raises(TritonError) as caught, simulation.load(plans.double(), text):
        pass
    assert "configuration specified invalid profile 1 ." in caught.value.message


@pytest.mark.parametrize(
    "call",
    ["cudaStreamCreateWithPriority", "cudaMemsetAsync", "cudaSetDevice", "cudaStreamSynchronize"],
)
def test_a_failed_instance_creation_fails_the_load_and_frees_the_gpu(simulation, call):
    harness = simulation.load(plans.double())
    simulation.machine.refusals[call] = 700
    with pytest.raises(TritonError, match="an illegal memory access was encountered"), harness:
        pass


def test_the_strategy_of_the_model_is_that_of_its_contexts(simulation):
    requested = []
    text = "parameters { key: 'execution_context_allocation_strategy' value { string_value: 'ON_PROFILE_CHANGE' } }"
    harness = simulation.load(plans.double(), text)
    from .simulated.tensorrt import Engine

    original = Engine.create_execution_context
    Engine.create_execution_context = lambda engine, strategy: (
        requested.append(strategy.name) or original(engine, strategy)
    )
    try:
        with harness:
            assert requested == ["ON_PROFILE_CHANGE"]
    finally:
        Engine.create_execution_context = original
