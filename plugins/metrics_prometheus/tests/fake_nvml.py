"""Stands in for the module of nvidia-ml-py: GPUs are made of plain numbers."""

from __future__ import annotations

from types import SimpleNamespace

MIB = 1 << 20


class NVMLError(Exception):
    """What every function of the real module raises."""


class FakeNvml:
    """`gpus` are dictionaries by the name of what they tell; what is missing there is not supported."""

    NVMLError = NVMLError
    nvmlMemory_v2 = 2  # noqa: N815 the library's own name

    def __init__(self, *gpus, driver=True):
        self.gpus = gpus
        self.open = 0
        self.readings = 0
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
        return gpu["uuid"]

    def nvmlDeviceGetUtilizationRates(self, gpu):
        self.readings += 1
        return SimpleNamespace(gpu=self._tell(gpu, "utilization"), memory=0)

    def nvmlDeviceGetMemoryInfo(self, gpu, version):
        assert version == self.nvmlMemory_v2  # the first version counts what the driver reserved as used
        return SimpleNamespace(total=self._tell(gpu, "total"), used=self._tell(gpu, "used"))

    def nvmlDeviceGetPowerUsage(self, gpu):
        return self._tell(gpu, "power")

    def nvmlDeviceGetPowerManagementLimit(self, gpu):
        return self._tell(gpu, "limit")

    def nvmlDeviceGetTotalEnergyConsumption(self, gpu):
        return self._tell(gpu, "energy")

    @staticmethod
    def _tell(gpu, what):
        if what not in gpu:
            raise NVMLError("Not Supported")
        return gpu[what]


def h100(uuid="GPU-1", **changes):
    return {
        "uuid": uuid, "utilization": 37, "total": 80_000 * MIB, "used": 512 * MIB, "power": 123_456, "limit": 700_000, "energy": 5_000_000,
        **changes,
    }  # fmt: skip
