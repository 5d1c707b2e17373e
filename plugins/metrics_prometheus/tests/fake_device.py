"""A device whose GPUs are readings by UUID."""

from __future__ import annotations

from tritonpy.execution import DeviceMonitor, DeviceReading, NoDevice

MIB = 1 << 20


class FakeMonitor(DeviceMonitor):
    """Returns the readings of `gpus`, which may change; `readings` counts the calls."""

    def __init__(self, gpus):
        self.gpus = gpus
        self.readings = 0
        self.is_open = True

    @property
    def uuids(self):
        return list(self.gpus)

    def read(self):
        self.readings += 1
        return dict(self.gpus)

    def close(self):
        self.is_open = False


class FakeDevice(NoDevice):
    """`found` is the result of `monitor`, or the error that it raises."""

    def __init__(self, found):
        super().__init__()
        self.found = found

    def monitor(self):
        if isinstance(self.found, Exception):
            raise self.found
        return self.found


def h100(**changes):
    values = {
        "utilization": 0.37, "memory_total": 80_000 * MIB, "memory_used": 512 * MIB, "power": 123.456, "power_limit": 700, "energy": 5000,
    }  # fmt: skip
    return DeviceReading(**values | changes)
