"""Models on several GPUs, with a simulated driver, library and CUDA; everything else is real."""

from __future__ import annotations

import itertools
import os
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import pytest

import tritonpy_device_cuda
import tritonpy_workers
from tritonpy import (
    Backend,
    InferRequest,
    InstanceContext,
    ModelContext,
    StartupError,
    Tensor,
    TritonError,
    hookimpl,
)
from tritonpy_device_cuda import cuda_calls, gpus
from tritonpy_testing import ModelRepository, RecordingSink, RunningServer, running_server

from .fake_cuda import FakeCuda
from .fake_nvml import FakeNvml, gpu

Array = npt.NDArray[Any]
ROOT = Path(__file__).resolve().parents[3]
WAIT_S = 30.0
_clock = itertools.count(1)
BASE = """
    backend: "counting"
    input { name: "IN" data_type: TYPE_INT32 dims: 1 }
    output { name: "OUT" data_type: TYPE_INT32 dims: 1 }
"""
ISOLATED = 'parameters { key: "isolation" value { string_value: "process" } }'
PINNED, ON_GPU = 4000, 6000


class DeviceReportingBackend(Backend):
    """OUT is (kind, device) of the instance as numbers.

    On a GPU, the instance allocates device and pinned buffers. `open` lists the instances.
    """

    uses_gpu: ClassVar[bool] = True
    open: ClassVar[Counter[tuple[str, str, int]]] = Counter()

    def __init__(self, model: ModelContext, instance: InstanceContext) -> None:
        super().__init__(model, instance)
        if instance.kind == "GPU" and "process" not in model.parameters.values():
            assert model.memory.pinned_input is not None
            self.buffers = [
                model.memory.on_device(instance.device_id, ON_GPU),
                model.memory.pinned_input("IN", "UINT8", (PINNED,)),
            ]
        DeviceReportingBackend.open[self._me()] += 1

    def infer(self, inputs: Mapping[str, Array]) -> Mapping[str, Array]:
        return {"OUT": np.array([self.instance.kind == "GPU", self.instance.device_id], np.int32)}

    def close(self) -> None:
        DeviceReportingBackend.open[self._me()] -= 1

    def _me(self) -> tuple[str, str, int]:
        return self.instance.name, self.instance.kind, self.instance.device_id

    @classmethod
    def instances_of(cls) -> list[tuple[str, str, int]]:
        """Return name, kind and device of each instance."""
        return sorted(DeviceReportingBackend.open.elements())


class FlexibleBackend(DeviceReportingBackend):
    """Uses no GPU if it may choose."""

    uses_gpu: ClassVar[bool] = False


@pytest.fixture
def cuda(monkeypatch: pytest.MonkeyPatch) -> FakeCuda:
    made = FakeCuda()
    monkeypatch.setattr(cuda_calls, "CudaCalls", lambda: made)
    return made


@pytest.fixture(autouse=True)
def _machine(monkeypatch: pytest.MonkeyPatch, cuda: FakeCuda) -> None:
    for module in (gpus, cuda_calls):
        monkeypatch.setattr(module, "visible_gpus", lambda: [0, 1])
    for name in ("CUDA_VISIBLE_DEVICES", "TRITON_SERVER_CPU_ONLY"):
        monkeypatch.delenv(name, raising=False)
    with_gpus(monkeypatch, gpu("GPU-a"), gpu("GPU-b"))
    DeviceReportingBackend.open.clear()


def with_gpus(monkeypatch: pytest.MonkeyPatch, *gpus: dict[str, Any]) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", FakeNvml(*gpus))


@contextmanager
def serving(
    repository: ModelRepository, kind: type[Backend] = DeviceReportingBackend, **devices: Any
) -> Iterator[RunningServer]:
    class Plugin:
        @hookimpl
        def tritonpy_backends(self) -> Mapping[str, type[Backend]]:
            return {"counting": kind}

    config = {
        "repositories": [{"url": str(repository.path)}],
        "frontends": {"http": False, "grpc": False, "metrics": False},
        "control": {"mode": "explicit"},
        "devices": devices,
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            sys, "path", [*sys.path, str(ROOT)]
        )  # worker processes import this module, too
        with running_server(
            config, [Plugin(), tritonpy_device_cuda, tritonpy_workers], installed=False
        ) as server:
            yield server


def write(repository: ModelRepository, config: str) -> None:
    """Write the configuration with a unique modification time."""
    path = repository.add("m", config) / "config.pbtxt"
    timestamp = next(_clock)
    os.utime(path, (timestamp, timestamp))


def eventually(condition: Callable[[], object]) -> None:
    """Wait until `condition()` is true."""
    end = time.monotonic() + WAIT_S
    while not condition():
        assert time.monotonic() < end, "it never became true"
        time.sleep(0.001)


def refused(server: RunningServer) -> str:
    with pytest.raises(TritonError) as failed:
        server.engine.load_model("m")
    return str(failed.value)


def device_of_response(server: RunningServer, recorder: RecordingSink) -> tuple[int, int]:
    """Return whether a GPU responded, and the number of the device."""
    request = InferRequest(
        "m", {"IN": Tensor.from_numpy("IN", np.array([1], np.int32))}, recorder.sink
    )
    server.engine.infer(request)
    ((answer,),) = recorder.wait(request)
    assert answer.error is None, answer.error
    on_gpu, device = answer.outputs[0].numpy().tolist()
    return on_gpu, device


FOUR = [("m_0_0", "GPU", 0), ("m_0_0", "GPU", 1), ("m_0_1", "GPU", 0), ("m_0_1", "GPU", 1)]


@pytest.mark.parametrize(
    ("group", "there"),
    [
        ("kind: KIND_GPU gpus: [0, 1] count: 2", FOUR),
        ("kind: KIND_GPU count: 2", FOUR),
        ("kind: KIND_AUTO count: 2", FOUR),
        ("count: 2", FOUR),
        ("gpus: 1", [("m_0_0", "GPU", 1)]),
        ("kind: KIND_GPU gpus: 1 count: 2", [("m_0_0", "GPU", 1), ("m_0_1", "GPU", 1)]),
        ("kind: KIND_CPU count: 2", [("m_0_0", "CPU", 0), ("m_0_1", "CPU", 0)]),
        ("kind: KIND_MODEL", [("m_0_0", "MODEL", 0)]),
    ],
)
def test_a_group_has_instances_with_tritons_names_on_each_gpu(
    model_repository: ModelRepository, group: str, there: list[tuple[str, str, int]]
) -> None:
    write(model_repository, BASE + f"instance_group {{ {group} }}")
    with serving(model_repository) as server:
        server.engine.load_model("m")
        assert DeviceReportingBackend.instances_of() == there
    assert DeviceReportingBackend.instances_of() == []


def test_a_backend_that_needs_no_gpu_uses_none_unless_configured(
    model_repository: ModelRepository,
) -> None:
    write(model_repository, BASE + "instance_group [{ count: 1 }, { gpus: 1 }]")
    with serving(model_repository, FlexibleBackend) as server:
        server.engine.load_model("m")
        assert DeviceReportingBackend.instances_of() == [("m_0_0", "CPU", 0), ("m_1_0", "GPU", 1)]


@pytest.mark.parametrize("where", ["", ISOLATED], ids=["threads", "processes"])
def test_every_instance_knows_its_device_and_gets_requests(
    model_repository: ModelRepository, where: str
) -> None:
    write(
        model_repository,
        BASE + "instance_group [{ kind: KIND_GPU gpus: [1, 0] }, { kind: KIND_CPU }]" + where,
    )
    recorder = RecordingSink()
    with serving(model_repository) as server:
        server.engine.load_model("m")
        seen: Counter[tuple[int, int]] = Counter()

        def all_answered() -> bool:
            seen[device_of_response(server, recorder)] += 1
            return seen.keys() == {(1, 0), (1, 1), (0, 0)}

        eventually(all_answered)
        shares = {
            share.gpu: share.statistics.execution_count
            for share in server.engine.gauges()["m", "1"].shares
        }
    assert shares == {0: seen[1, 0], 1: seen[1, 1], None: seen[0, 0]}


@pytest.mark.parametrize(("gpus", "wrong"), [("[0, 2]", 2), ("[1, 7, 0]", 7), ("-1", -1)])
def test_a_missing_gpu_is_named(model_repository: ModelRepository, gpus: str, wrong: int) -> None:
    write(model_repository, BASE + f"instance_group {{ kind: KIND_GPU gpus: {gpus} }}")
    with serving(model_repository) as server:
        text = refused(server)
    assert (
        f"instance group m_0 of model m specifies invalid or unsupported gpu id {wrong}. GPUs with at least the minimum required CUDA "
        "compute compatibility of 7.500000 are: 0, 1" in text
    )
    assert DeviceReportingBackend.instances_of() == []


def test_gpus_that_are_too_old_are_not_used(
    model_repository: ModelRepository, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_gpus(monkeypatch, gpu("GPU-a", capability=(8, 6)), gpu("GPU-b"))
    write(model_repository, BASE + "instance_group { kind: KIND_GPU }")
    with serving(model_repository, min_supported_compute_capability=8.9) as server:
        server.engine.load_model("m")
        assert DeviceReportingBackend.instances_of() == [("m_0_0", "GPU", 1)]
        write(model_repository, BASE + "instance_group { kind: KIND_GPU gpus: 0 }")
        assert "compute compatibility of 8.900000 are: 1" in refused(server)


def test_a_load_beyond_the_gpu_limit_is_refused_and_undone(
    model_repository: ModelRepository, monkeypatch: pytest.MonkeyPatch, cuda: FakeCuda
) -> None:
    with_gpus(monkeypatch, gpu("GPU-a", used=79), gpu("GPU-b", used=65))
    write(model_repository, BASE + "instance_group { kind: KIND_GPU }")
    with serving(model_repository, model_load_gpu_limit={1: 0.8}) as server:
        text = refused(server)
        assert (
            "can not create model 'm_0_0': memory limit set for GPU 1 has exceeded, model loading is rejected."
            in text
        )
        assert DeviceReportingBackend.instances_of() == []
        assert sum(value for (_, device), value in used(server).items() if device) == 0
        write(model_repository, BASE + "instance_group { kind: KIND_GPU gpus: 0 }")
        server.engine.load_model("m")
        write(model_repository, BASE + "instance_group { kind: KIND_GPU gpus: [0, 1] }")
        assert "memory limit set for GPU 1 has exceeded" in refused(server)
        assert DeviceReportingBackend.instances_of() == [("m_0_0", "GPU", 0)]
        with_gpus(monkeypatch, gpu("GPU-a", used=79), gpu("GPU-b", used=64))
        server.engine.load_model("m")
        assert DeviceReportingBackend.instances_of() == FOUR[:2]


def test_a_limit_on_a_gpu_of_unknown_memory_prevents_startup(
    model_repository: ModelRepository, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", None)
    with (
        pytest.raises(
            StartupError,
            match=r"devices.model_load_gpu_limit.0: the memory in use on GPU 0 is unknown: .*tritonpy-device-cuda\[gpu\]",
        ),
        serving(model_repository, model_load_gpu_limit={0: 0.5}),
    ):
        pass


def used(server: RunningServer) -> dict[tuple[str, str], float]:
    """Return the metrics of the pools by family and device."""
    return {
        (family.name, each.labels.get("device", "")): each.value
        for family in server.engine.custom_metrics()
        if family.name.endswith("_used_bytes")
        for each in family.metrics
    }


def test_pool_memory_is_attributed_to_its_model_and_returned_with_it(
    model_repository: ModelRepository, cuda: FakeCuda
) -> None:
    write(
        model_repository,
        BASE
        + "instance_group [{ kind: KIND_GPU gpus: [0, 1] count: 2 }, { kind: KIND_GPU gpus: 1 }]",
    )
    sizes = {
        "pinned_memory_pool_byte_size": "1MiB",
        "cuda_memory_pool_byte_size": {0: 2 * ON_GPU + 1000},
    }
    with serving(model_repository, **sizes) as server:
        server.engine.load_model("m")
        (statistics,) = server.engine.statistics("m")
        assert [(each.type, each.id, each.byte_size) for each in statistics.memory_usage] == [
            ("CPU_PINNED", 0, 5 * PINNED),
            ("GPU", 0, 2 * ON_GPU),
            ("GPU", 1, 3 * ON_GPU),
        ]
        metrics = {
            ("nv_pinned_memory_pool_used_bytes", ""): 5 * PINNED,
            ("nv_cuda_memory_pool_used_bytes", "0"): 2 * ON_GPU,
            ("nv_cuda_memory_pool_used_bytes", "1"): 3 * ON_GPU,
        }
        assert used(server) == metrics
        assert (cuda.pinned, cuda.on_gpu(0), cuda.on_gpu(1)) == (
            [1 << 20],
            [2 * ON_GPU + 1000],
            [64 << 20],
        )
        server.engine.unload_model("m")
        eventually(lambda: used(server) == dict.fromkeys(metrics, 0))
    assert (cuda.pinned, cuda.on_gpu(0), cuda.on_gpu(1)) == ([], [], [])
