"""A fake of the nvidia-ml-py module, whose GPUs are dictionaries of their properties."""

from __future__ import annotations

from types import SimpleNamespace

GIB = 1 << 30


class NVMLError(Exception):
    """The exception that every function of the real module raises."""


class FakeNvml:
    """`gpus` have `uuid`, `used` and `total` in GiB, `capability`, `processes` (pid and bytes),
    and, in the units of the library, `utilization`, `power`, `limit` and `energy`.

    A missing property is not supported. `open` counts the open handles of the library.
    """

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
        return _property(gpu, "uuid")

    def nvmlDeviceGetMemoryInfo(self, gpu, version):
        assert version == self.nvmlMemory_v2
        return SimpleNamespace(
            used=int(_property(gpu, "used") * GIB), total=int(_property(gpu, "total") * GIB)
        )

    def nvmlDeviceGetUtilizationRates(self, gpu):
        return SimpleNamespace(gpu=_property(gpu, "utilization"), memory=0)

    def nvmlDeviceGetPowerUsage(self, gpu):
        return _property(gpu, "power")

    def nvmlDeviceGetPowerManagementLimit(self, gpu):
        return _property(gpu, "limit")

    def nvmlDeviceGetTotalEnergyConsumption(self, gpu):
        return _property(gpu, "energy")

    def nvmlDeviceGetCudaComputeCapability(self, gpu):
        return _property(gpu, "capability")

    def nvmlDeviceGetComputeRunningProcesses(self, gpu):
        return [
            SimpleNamespace(pid=pid, usedGpuMemory=size)
            for pid, size in _property(gpu, "processes")
        ]


def _property(gpu, name):
    if name not in gpu:
        raise NVMLError("Not Supported")
    return gpu[name]


def gpu(uuid="GPU-1", **changes):
    return {
        "uuid": uuid,
        "used": 0.5,
        "total": 80,
        "capability": (9, 0),
        "processes": [],
        **changes,
    }
