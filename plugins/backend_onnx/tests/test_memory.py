from __future__ import annotations

import gc
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from tritonpy import InstanceContext, MemoryUsage
from tritonpy.execution import DeviceUnavailable
from tritonpy_backend_onnx.backend import OnnxRuntimeBackend
from tritonpy_backend_onnx.memory import folder_bytes, measure_memory
from tritonpy_backend_onnx.providers import ProviderDevice
from tritonpy_backend_onnx.shared_model import SharedModel
from tritonpy_testing import BackendHarness, running_server
from tritonpy_testing.parse import model_config

HOST, GPU = ProviderDevice("CPU", 0), ProviderDevice("GPU", 1)
CONFIG = 'name: "m" backend: "onnxruntime" max_batch_size: 8 '


@pytest.fixture
def files(tmp_path):
    """A model of 30 bytes."""
    (tmp_path / "weights").mkdir()
    (tmp_path / "model.onnx").write_bytes(b"x" * 10)
    (tmp_path / "weights" / "w.bin").write_bytes(b"x" * 20)
    return tmp_path


class Card:
    """A GPU; `used` is its used memory, or None if it is unknown."""

    def __init__(self, used=0):
        self.used = used
        self.allocations = []

    def __call__(self, gpu):
        self.allocations.append(gpu)
        if self.used is None:
            raise DeviceUnavailable("no library")
        return self.used, 1 << 40


def test_host_memory_is_the_size_of_the_model_files(files):
    card = Card()
    with measure_memory(HOST, folder_bytes(files), card) as measure:
        pass
    assert (measure.usage, card.allocations) == (MemoryUsage("CPU", 0, 30), [])


def test_gpu_memory_is_the_growth_of_used_memory(files):
    card = Card(5000)
    with measure_memory(GPU, folder_bytes(files), card) as measure:
        card.used = 12000
    assert (measure.usage, card.allocations) == (MemoryUsage("GPU", 1, 7000), [1, 1])


@pytest.mark.parametrize(("before", "after"), [(None, None), (5000, 5000), (5000, 100)])
def test_gpu_memory_falls_back_to_the_size_of_the_model_files(files, before, after):
    card = Card(before)
    with measure_memory(GPU, folder_bytes(files), card) as measure:
        card.used = after
    assert measure.usage == MemoryUsage("GPU", 1, 30)


def test_gpu_sessions_are_opened_sequentially_for_measurement(files):
    card, inside = Card(), threading.Semaphore(1)

    def load(size):
        with measure_memory(GPU, folder_bytes(files), card) as measure:
            assert inside.acquire(blocking=False), "two sessions are opened at the same time"
            card.used += size
            inside.release()
        return measure.usage.byte_size

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(load, range(1, 30))) == list(range(1, 30))


def test_a_failed_open_does_not_block_the_next(files):
    with (
        pytest.raises(ValueError, match="broken"),
        measure_memory(GPU, folder_bytes(files), Card()),
    ):
        raise ValueError("broken")
    with measure_memory(GPU, folder_bytes(files), Card()):
        pass


def test_shared_memory_is_reported_once_for_all_instances(model_repository, models):
    folder = model_repository.add("m", CONFIG + "instance_group { count: 3 kind: KIND_CPU }")
    models.path = folder / "1" / "model.onnx"
    model_bytes = models.add_sub().stat().st_size
    frontends = {"http": False, "grpc": False, "metrics": False}
    with running_server(
        {"repositories": [{"url": str(model_repository.path)}], "frontends": frontends}
    ) as server:
        (statistics,) = server.engine.statistics("m")
    assert statistics.memory_usage == [MemoryUsage("CPU", 0, model_bytes)]


def test_a_session_is_counted_while_it_is_referenced(models, tmp_path):
    models.add_sub()
    with BackendHarness(OnnxRuntimeBackend, model_config(CONFIG), tmp_path) as harness:
        sessions = harness.model.shared
        assert len(sessions.memory_usage()) == 1
        other = sessions.acquire(HOST, (0,))
        assert len(sessions.memory_usage()) == 2
        sessions.close()
        del other
        gc.collect()
        assert len(sessions.memory_usage()) == 1  # the instance's


class Staging:
    """Stands in for pinned memory; `given` records the allocations."""

    def __init__(self):
        self.given = []

    def pinned_input(self, name, datatype, shape):
        self.given.append((name, datatype, shape))
        return np.empty(shape, np.int32)


@pytest.mark.parametrize(("kind", "staged"), [("GPU", ["INPUT0", "INPUT1"]), ("CPU", [])])
def test_inputs_for_a_gpu_are_gathered_in_pinned_memory(
    models, tmp_path, monkeypatch, kind, staged
):
    on_host = SharedModel.acquire
    monkeypatch.setattr(
        SharedModel, "acquire", lambda self, _device, cores=(): on_host(self, HOST, cores)
    )
    models.add_sub()
    with BackendHarness(OnnxRuntimeBackend, model_config(CONFIG), tmp_path) as harness:
        harness.model.memory = staging = Staging()
        harness.instance = OnnxRuntimeBackend(harness.model, InstanceContext("m_0", kind, 0, 0))
        rows = np.arange(32, dtype=np.int32).reshape(2, 16)
        requests = [harness.request({"INPUT0": rows, "INPUT1": rows * 10}) for _ in range(2)]
        for (answer,) in harness.execute(*requests):
            assert answer.error is None
            np.testing.assert_array_equal(answer.outputs[0].numpy(), rows * 11)
    assert [(name, shape) for name, _, shape in staging.given] == [
        (name, (4, 16)) for name in staged
    ]
