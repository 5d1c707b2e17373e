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


def test_without_a_visible_gpu_the_library_is_shut_down(installed):
    nvml = installed(FakeNvml(h100()))
    assert found({"CUDA_VISIBLE_DEVICES": ""}) is None
    assert nvml.open == 0


def test_without_a_driver_there_are_no_gpus(installed):
    installed(FakeNvml(h100(), driver=False))
    assert found({}) is None


def test_triton_s_variable_disables_gpus(installed):
    nvml = installed(FakeNvml(h100()))
    assert found({"TRITON_SERVER_CPU_ONLY": "1"}) is None
    assert nvml.open == 0


def test_a_failing_library_is_logged_and_shut_down(installed, caplog):
    class FailingNvml(FakeNvml):
        def nvmlDeviceGetUUID(self, gpu):
            raise self.NVMLError("GPU is lost")

    nvml = installed(FailingNvml(h100()))
    assert found({}) is None
    assert nvml.open == 0
    assert "no GPU metrics: GPU is lost" in caplog.text


@pytest.mark.parametrize("has_driver", [True, False])
def test_a_missing_package_is_logged_with_its_install_command(installed, caplog, monkeypatch, tmp_path, has_driver):
    installed(None)  # importing it fails
    monkeypatch.setattr(finding, "DRIVER", tmp_path if has_driver else tmp_path / "none")
    assert found({}) is None
    assert ("tritonpy-metrics-prometheus[gpu]" in caplog.text) is has_driver
