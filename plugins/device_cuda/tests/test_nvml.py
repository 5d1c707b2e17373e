from __future__ import annotations

import sys

import pytest

from tritonpy_device_cuda.nvml import NvmlError, open_nvml, visible

from .fake_nvml import GIB, FakeNvml, gpu

FOUR = {f"GPU-{number}": number for number in range(4)}


@pytest.fixture
def installed(monkeypatch):
    def install(module):
        monkeypatch.setitem(sys.modules, "pynvml", module)
        return module

    return install


def test_every_gpu_reports_its_memory_and_capability(installed):
    library = installed(FakeNvml(gpu("GPU-a"), gpu(b"GPU-b", used=1, total=2, capability=(7, 5))))
    with open_nvml({}) as nvml:
        assert library.open == 1
        assert list(nvml.handles) == ["GPU-a", "GPU-b"]
        assert [nvml.memory(number) for number in (0, 1)] == [(GIB // 2, 80 * GIB), (GIB, 2 * GIB)]
        assert [nvml.compute_capability(number) for number in (0, 1)] == [(9, 0), (7, 5)]
    assert library.open == 0


def test_gpu_numbers_are_those_of_frameworks(installed):
    installed(FakeNvml(gpu("GPU-a"), gpu("GPU-b", capability=(7, 5))))
    with open_nvml({"CUDA_VISIBLE_DEVICES": "1,0"}) as nvml:
        assert [nvml.compute_capability(number) for number in (0, 1)] == [(7, 5), (9, 0)]


def test_the_memory_of_a_process_is_found_by_its_pid(installed):
    installed(FakeNvml(gpu("GPU-a", processes=[(7, 100), (8, 20), (7, 3), (9, None)])))
    with open_nvml({}) as nvml:
        assert [nvml.memory_of(pid, 0) for pid in (7, 8, 9, 10)] == [103, 20, 0, 0]


def test_unsupported_queries_and_unknown_gpus_raise(installed):
    installed(FakeNvml({"uuid": "GPU-a"}))
    with open_nvml({}) as nvml:
        for query in (nvml.memory, nvml.compute_capability):
            with pytest.raises(NvmlError, match=r"^Not Supported$"):
                query(0)
            with pytest.raises(NvmlError, match=r"^there is no GPU 1$"):
                query(1)


@pytest.mark.parametrize(
    ("chosen", "expected"),
    [
        (None, [0, 1, 2, 3]), ("2,0", [2, 0]), (" 1 ", [1]), ("GPU-3", [3]), ("GPU-1,2", [1, 2]), ("0,-1,2", [0]), ("0,7,2", [0]),
        ("-1", []), ("", []), ("NoDevFiles", []), ("0,0", [0]),
    ],
)  # fmt: skip
def test_cuda_visible_devices_selects_gpus(chosen, expected):
    assert list(visible(FOUR, chosen).values()) == expected


@pytest.mark.parametrize("environ", [{"CUDA_VISIBLE_DEVICES": ""}, {"TRITON_SERVER_CPU_ONLY": "1"}])
def test_without_a_visible_gpu_the_library_is_closed(installed, environ):
    library = installed(FakeNvml(gpu()))
    assert open_nvml(environ) is None
    assert library.open == 0


def test_without_a_driver_the_result_is_none(installed):
    installed(FakeNvml(gpu(), driver=False))
    assert open_nvml({}) is None


def test_a_failing_library_raises_and_is_closed(installed):
    library = installed(FakeNvml({}))
    with pytest.raises(NvmlError, match=r"^Not Supported$"):
        open_nvml({})
    assert library.open == 0


def test_without_the_package_the_import_fails(installed):
    installed(None)
    with pytest.raises(ImportError):
        open_nvml({})
