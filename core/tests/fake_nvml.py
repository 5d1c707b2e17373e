"""Stands in for the module of nvidia-ml-py: GPUs are dictionaries of what they tell."""

from __future__ import annotations

from types import SimpleNamespace

GIB = 1 << 30


class NVMLError(Exception):
    """What every function of the real module raises."""


class FakeNvml:
    """`gpus` have `uuid`, `used` and `total` in GiB, `capability`, and `processes` (pid and bytes); what is missing is not supported. `open` is who has it open."""

    NVMLError = NVMLError
    nvmlMemory_v2 = 2  # noqa: N815 the library's own name

    def __init__(self, *gpus, driver=True):
        self.gpus = gpus
        self.open = 0
        self._driver = driver

    def nvmlInit(self):
        if not self._driver:
            raise NVMLError("Driver Not Loaded")
        self.open += 1

    def nvmlShutdown(self):
        self.open -= 1

    def nvmlDeviceGetCount(self):
        return len(self.gpus)

    def nvmlDeviceGetHandleByIndex(self, index):
        return self.gpus[index]

    def nvmlDeviceGetUUID(self, gpu):
        return _tell(gpu, "uuid")

    def nvmlDeviceGetMemoryInfo(self, gpu, version):
        assert version == self.nvmlMemory_v2
        return SimpleNamespace(used=int(_tell(gpu, "used") * GIB), total=int(_tell(gpu, "total") * GIB))

    def nvmlDeviceGetCudaComputeCapability(self, gpu):
        return _tell(gpu, "capability")

    def nvmlDeviceGetComputeRunningProcesses(self, gpu):
        return [SimpleNamespace(pid=pid, usedGpuMemory=size) for pid, size in _tell(gpu, "processes")]


def _tell(gpu, what):
    if what not in gpu:
        raise NVMLError("Not Supported")
    return gpu[what]


def gpu(uuid="GPU-1", **changes):
    return {"uuid": uuid, "used": 0.5, "total": 80, "capability": (9, 0), "processes": [], **changes}
