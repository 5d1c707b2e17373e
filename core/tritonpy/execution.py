"""What runners and devices need: instances, GPUs, layouts, calls between models, and logs of other processes."""

from __future__ import annotations

from tritonpy.api.device import DeviceBlock, DeviceMonitor, DeviceReading, DeviceUnavailable, NoDevice
from tritonpy.layout import BatchLayout
from tritonpy.logs import LOG_FIELDS, LOGGER
from tritonpy.model_log import LogLineMessage, LogRecordMessage, write_record
from tritonpy.runners.call_graph import CallGraph
from tritonpy.runners.instance_slots import plan_instance_change
from tritonpy.runners.isolation import is_isolated, loads_in_worker
from tritonpy.runners.slot import Slot

__all__ = [
    "LOGGER",
    "LOG_FIELDS",
    "BatchLayout",
    "CallGraph",
    "DeviceBlock",
    "DeviceMonitor",
    "DeviceReading",
    "DeviceUnavailable",
    "LogLineMessage",
    "LogRecordMessage",
    "NoDevice",
    "Slot",
    "is_isolated",
    "loads_in_worker",
    "plan_instance_change",
    "write_record",
]
