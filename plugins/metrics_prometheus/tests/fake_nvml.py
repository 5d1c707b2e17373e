"""A fake of the nvidia-ml-py module with GPUs made of plain numbers."""

from __future__ import annotations

from types import SimpleNamespace

MIB = 1 << 20


class NVMLError(Exception):
    """The error class of the real module."""


class FakeNvml:
    """`gpus` are dictionaries by value name. Missing values are not supported."""

    NVMLError = NVMLError
    nvmlMemory_v2 = 2  # noqa: N815   the library's name

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
        return SimpleNamespace(gpu=self._read(gpu, "utilization"), memory=0)

    def nvmlDeviceGetMemoryInfo(self, gpu, version):
        # Version 1 counts memory reserved by the driver as used.
        assert version == self.nvmlMemory_v2
        return SimpleNamespace(total=self._read(gpu, "total"), used=self._read(gpu, "used"))

    def nvmlDeviceGetPowerUsage(self, gpu):
        return self._read(gpu, "power")

    def nvmlDeviceGetPowerManagementLimit(self, gpu):
        return self._read(gpu, "limit")

    def nvmlDeviceGetTotalEnergyConsumption(self, gpu):
        return self._read(gpu, "energy")

    @staticmethod
    def _read(gpu, what):
        if what not in gpu:
            raise NVMLError("Not Supported")
        return gpu[what]


def h100(uuid="GPU-1", **changes):
    return {
        "uuid": uuid, "utilization": 37, "total": 80_000 * MIB, "used": 512 * MIB, "power": 123_456, "limit": 700_000, "energy": 5_000_000,
        **changes,
    }  # fmt: skip
