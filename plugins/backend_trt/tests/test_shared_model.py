from __future__ import annotations

import sys

import numpy as np
import pytest

from tritonpy import InstanceContext, TritonError
from tritonpy_backend_trt.backend import TensorRtBackend

from .conftest import output
from .simulated import plans


def refusal(simulation, plan, text="", **options):
    with pytest.raises(TritonError) as caught, simulation.load(plan, text, **options):
        pass
    return caught.value.message


COMPLETE = """
max_batch_size: 8 input { name: 'IN' data_type: TYPE_FP32 dims: 4 } output { name: 'OUT' data_type: TYPE_FP32 dims: 4 }
"""
AUTOFILL = "unable to load plan file to auto complete config: "


@pytest.mark.parametrize(
    ("plan", "text"),
    [
        (b"", "is not a TensorRT plan: it is truncated: 0 bytes"),
        (plans.double()[:20], "is not a TensorRT plan: it is truncated: 20 bytes"),
        (
            b"\x08\x07\x12\x07pytorch" + bytes(100),
            "is not a TensorRT plan: it looks like an ONNX model",
        ),
        (
            plans.double()[:100],
            "unable to create TensorRT engine: IRuntime::deserializeCudaEngine: Error Code 1: Serialization",
        ),
        (
            plans.double(version=(8, 6, 1, 6)),
            "expecting library version 11.4.0.106 got 8.6.1.6); the plan was built with TensorRT 8.6.1.6, but 11.4.0.106 is installed",
        ),
    ],
)
def test_an_invalid_plan_fails_the_load_with_the_reason(simulation, plan, text):
    message = refusal(simulation, plan)
    assert message.startswith(AUTOFILL + str(simulation.folder / "1" / "model.plan"))
    assert text in message


def test_a_missing_plan_fails_the_load(simulation):
    harness = simulation.load(plans.double())
    path = simulation.folder / "1" / "model.plan"
    path.unlink()
    with pytest.raises(TritonError) as caught, harness:
        pass
    assert f"unable to find '{path}' for model instance 'm'" in caught.value.message


def test_a_bad_plan_leaves_others_alone(simulation, tmp_path):
    with simulation.load(plans.double(), folder=tmp_path / "good") as good:
        assert "truncated" in refusal(simulation, b"ftrt")
        [[answer]] = good.execute(good.request({"IN": np.ones((1, 4), np.float32)}))
    assert output(answer, "OUT").tolist() == [[2] * 4]


def test_an_empty_runtime_is_not_touched(simulation):
    simulation.machine.refusals["runtime"] = 1
    assert refusal(simulation, plans.double()).endswith(
        "unable to create TensorRT runtime: CUDA initialization failure with error: 35"
    )


def test_version_compatible_plans_run_if_enabled(simulation):
    old = plans.double(version=(10, 3, 0, 1), host_code=True)
    assert "engine contains host code, which is not allowed" in refusal(simulation, old)
    with simulation.load(old, version_compatible=True) as harness:
        harness.execute(harness.request({"IN": np.ones((1, 4), np.float32)}))


def test_the_plan_for_the_gpus_capability_is_taken(simulation):
    harness = simulation.load(
        plans.double(),
        "cc_model_filenames { key: '8.0' value: 'ampere.plan' } instance_group { gpus: 0 }",
    )
    (simulation.folder / "1" / "ampere.plan").write_bytes(plans.double(2))
    with harness:
        assert harness.model.config.max_batch_size == 2


def test_instances_of_a_gpu_share_its_engine_and_another_gpu_has_its_own(simulation):
    with simulation.load(plans.double(weights=100_000)) as harness:
        second = TensorRtBackend(harness.model, InstanceContext("m_1", "GPU", 0, 1))
        assert 100_000 <= simulation.machine.held(0) < 200_000
        other = TensorRtBackend(harness.model, InstanceContext("m_2", "GPU", 1, 2))
        assert 100_000 <= simulation.machine.held(1) < 200_000
        second.close()
        other.close()


def test_tensorrts_memory_is_counted_and_freed(simulation):
    with simulation.load(plans.double(weights=100_000, activations=5_000)) as harness:
        assert {(each.type, each.id, each.byte_size) for each in harness.memory_usage()} == {
            ("GPU", 0, 105_000)
        }
    assert simulation.machine.held(0) < 100_000


def test_exceeding_the_memory_limit_fails_the_load(simulation):
    text = "parameters { key: 'memory_limit_bytes' value { string_value: '50000' } }"
    message = refusal(simulation, plans.double(weights=100_000), text)
    assert "Error Code 2: OutOfMemory" in message
    assert message.endswith(
        "parameter 'memory_limit_bytes' allows 50000 bytes, 0 are in use and 100000 more were requested"
    )
    message = refusal(simulation, plans.double(weights=49_000, activations=2_000), text)
    assert message.startswith("unable to create TensorRT context: Error Code 2: OutOfMemory")
    assert message.endswith("allows 50000 bytes, 49000 are in use and 2000 more were requested")


def test_a_gpu_without_memory_fails_the_load(simulation):
    assert "OutOfMemory" in refusal(simulation, plans.double(weights=1 << 40))


@pytest.mark.parametrize("kind", ["KIND_CPU", "KIND_MODEL"])
def test_only_gpus_run_engines(simulation, kind):
    message = refusal(simulation, plans.double(), COMPLETE + f"instance_group {{ kind: {kind} }}")
    assert message == "unable to load model 'm', TensorRT backend supports only GPU device"


def test_a_missing_dla_core_is_rejected(simulation):
    group = "instance_group { kind: KIND_GPU gpus: 0 secondary_devices { kind: KIND_NVDLA device_id: 1 } }"
    message = refusal(simulation, plans.double(), COMPLETE + group)
    assert (
        message
        == "unable to create TensorRT runtime with DLA Core ID: 1, available number of DLA cores: 0"
    )


def test_an_instance_has_one_dla_core_at_most(simulation):
    device = "secondary_devices { kind: KIND_NVDLA device_id: 0 }"
    message = refusal(
        simulation,
        plans.double(),
        COMPLETE + f"instance_group {{ kind: KIND_GPU gpus: 0 {device} {device} }}",
    )
    assert message == "m_0 of model m must have either zero or or one secondary devices"


def test_an_available_dla_core_is_used(simulation):
    simulation.trt.Runtime.num_DLA_cores = 2
    group = "instance_group { kind: KIND_GPU gpus: 0 secondary_devices { kind: KIND_NVDLA device_id: 1 } }"
    with simulation.load(plans.double(), COMPLETE + group) as harness:
        engine = harness.model.shared.acquire(0, 1).engine
    assert engine.runtime.DLA_core == 1


def test_without_tensorrt_the_load_says_what_to_install(simulation, monkeypatch):
    monkeypatch.setitem(sys.modules, "tensorrt", None)
    assert "'tritonpy-backend-trt[full]'" in refusal(simulation, plans.double())


def test_a_file_that_is_half_written_has_no_effect_on_what_serves(simulation):
    with simulation.load(plans.double()) as harness:
        (simulation.folder / "1" / "model.plan").write_bytes(b"ftrt")
        [[answer]] = harness.execute(harness.request({"IN": np.ones((1, 4), np.float32)}))
    assert output(answer, "OUT").tolist() == [[2] * 4]
