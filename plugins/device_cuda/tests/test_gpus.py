from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from tritonpy.execution import DeviceUnavailable
from tritonpy.plugins import install_command
from tritonpy_device_cuda import gpus

from .fake_nvml import GIB, FakeNvml, gpu


@pytest.mark.parametrize(
    ("present", "chosen", "visible"),
    [
        (0, None, []),
        (2, None, [0, 1]),
        (4, "2,3", [0, 1]),
        (4, "", []),
        (4, "-1", []),
        (1, "0,1", [0]),
        (2, "GPU-1b2c", [0]),
        (0, "0", []),
    ],
)
def test_gpus_are_counted_as_frameworks_do(
    monkeypatch: pytest.MonkeyPatch, present: int, chosen: str | None, visible: list[int]
) -> None:
    monkeypatch.setattr(Path, "glob", lambda path, pattern: iter(range(present)))
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if chosen is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", chosen)
    assert gpus.visible_gpus() == visible


@pytest.fixture
def two_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpus, "visible_gpus", lambda: [0, 1])
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.delenv("TRITON_SERVER_CPU_ONLY", raising=False)


def nvml(monkeypatch: pytest.MonkeyPatch, library: object) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", library)


@pytest.mark.parametrize(
    ("minimum", "found"),
    [(0, [0, 1]), (6.0, [0, 1]), (7.5, [0, 1]), (7.6, [0]), (9.0, [0]), (10.0, []), (12.1, [])],
)
@pytest.mark.usefixtures("two_gpus")
def test_gpus_below_the_minimum_compute_capability_are_left_out(
    monkeypatch: pytest.MonkeyPatch, minimum: float, found: list[int]
) -> None:
    nvml(monkeypatch, FakeNvml(gpu(), gpu("GPU-2", capability=(7, 5))))
    assert gpus.supported_gpus(minimum) == found


@pytest.mark.parametrize("library", [None, FakeNvml(), FakeNvml({}), FakeNvml({"uuid": "GPU-1"})])
@pytest.mark.usefixtures("two_gpus")
def test_a_gpu_of_unknown_capability_is_used(
    monkeypatch: pytest.MonkeyPatch, library: object
) -> None:
    nvml(monkeypatch, library)
    assert gpus.supported_gpus(9.0) == [0, 1]


def test_without_gpus_nvml_is_not_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpus, "visible_gpus", list)
    monkeypatch.setattr(gpus, "open_nvml", None)
    assert gpus.supported_gpus(9.0) == []


def test_gpu_memory_returns_used_and_total_bytes(
    monkeypatch: pytest.MonkeyPatch, two_gpus: None
) -> None:
    library = FakeNvml(gpu(used=1, total=4))
    nvml(monkeypatch, library)
    assert gpus.gpu_memory(0) == (GIB, 4 * GIB)
    assert library.open == 0


@pytest.mark.usefixtures("two_gpus")
def test_gpu_memory_of_returns_the_bytes_of_a_process_on_each_gpu(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    library = FakeNvml(gpu(processes=[(7, 100), (8, 1)]), gpu("GPU-2", processes=[(7, 30)]))
    nvml(monkeypatch, library)
    assert [gpus.gpu_memory_of(pid) for pid in (7, 8, 9)] == [{0: 100, 1: 30}, {0: 1}, {}]
    assert library.open == 0


@pytest.mark.parametrize(
    "library", [None, FakeNvml(driver=False), FakeNvml({}), FakeNvml({"uuid": "GPU-1"})]
)
@pytest.mark.usefixtures("two_gpus")
def test_gpu_memory_of_a_process_is_empty_if_unknown(
    monkeypatch: pytest.MonkeyPatch, library: object
) -> None:
    nvml(monkeypatch, library)
    assert gpus.gpu_memory_of(7) == {}


@pytest.mark.parametrize(
    ("library", "reason"),
    [
        (None, re.escape(install_command("tritonpy-device-cuda[gpu]"))),
        (FakeNvml(driver=False), "there is no GPU"),
        (FakeNvml({}), "Not Supported"),
        (FakeNvml({"uuid": "GPU-1"}), "Not Supported"),
    ],
)
@pytest.mark.usefixtures("two_gpus")
def test_unavailable_gpu_memory_raises_with_the_reason(
    monkeypatch: pytest.MonkeyPatch, library: object, reason: str
) -> None:
    nvml(monkeypatch, library)
    with pytest.raises(DeviceUnavailable, match=reason):
        gpus.gpu_memory(0)
