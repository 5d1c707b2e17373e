from __future__ import annotations

import sys

import pytest

from tritonpy_metrics_prometheus import nvml as finding
from tritonpy_metrics_prometheus.nvml import open_gpus

from .fake_nvml import FakeNvml, h100


@pytest.fixture
def installed(monkeypatch):
    def install(module):
        monkeypatch.setitem(sys.modules, "pynvml", module)
        return module

    return install


def found(environ):
    collector = open_gpus(environ, 1000, lambda: 0)
    if collector is None:
        return None
    first = next(iter(collector.collect()))
    return [sample.labels["gpu_uuid"] for sample in first.samples]


def test_every_gpu_is_found(installed):
    nvml = installed(FakeNvml(h100("GPU-a"), h100(b"GPU-b")))
    assert found({}) == ["GPU-a", "GPU-b"]
    assert nvml.open == 1


def test_without_a_visible_gpu_there_is_nothing_and_the_library_is_given_back(installed):
    nvml = installed(FakeNvml(h100()))
    assert found({"CUDA_VISIBLE_DEVICES": ""}) is None
    assert nvml.open == 0


def test_without_a_driver_there_is_nothing(installed):
    installed(FakeNvml(h100(), driver=False))
    assert found({}) is None


def test_triton_s_variable_for_a_server_without_gpus_counts(installed):
    nvml = installed(FakeNvml(h100()))
    assert found({"TRITON_SERVER_CPU_ONLY": "1"}) is None
    assert nvml.open == 0


def test_a_library_that_fails_is_told_of_and_given_back(installed, caplog):
    class Lost(FakeNvml):
        def nvmlDeviceGetUUID(self, gpu):
            raise self.NVMLError("GPU is lost")

    nvml = installed(Lost(h100()))
    assert found({}) is None
    assert nvml.open == 0
    assert "no metrics of GPUs: GPU is lost" in caplog.text


@pytest.mark.parametrize("has_driver", [True, False])
def test_who_has_a_gpu_and_lacks_the_package_is_told_how_to_get_it(
    installed, caplog, monkeypatch, tmp_path, has_driver
):
    installed(None)  # an import of it fails
    monkeypatch.setattr(finding, "DRIVER", tmp_path if has_driver else tmp_path / "none")
    assert found({}) is None
    assert ("tritonpy-metrics-prometheus[gpu]" in caplog.text) is has_driver
