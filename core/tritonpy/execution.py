"""What runners need: instances, dispatching, batch layouts, devices, and log records."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tritonpy.lazy_names import lazy_names

if TYPE_CHECKING:
    from tritonpy.api.backend import check_returned
    from tritonpy.api.device import (
        Device,
        DeviceBlock,
        DeviceMonitor,
        DeviceReading,
        DeviceUnavailable,
        NoDevice,
    )
    from tritonpy.api.worker import Launcher, SpawnedProcess, WorkerProcess
    from tritonpy.logs import LOG_FIELDS, LOGGER
    from tritonpy.model_log import LogLineMessage, LogRecordMessage, ModelLog, write_record
    from tritonpy.runners.batch_callbacks import BatchCallbacks
    from tritonpy.runners.call_graph import CallGraph, check_model_call, refused_model_call
    from tritonpy.runners.call_streams import CallStream, CallStreams
    from tritonpy.runners.dispatcher import Dispatcher
    from tritonpy.runners.host_policies import HostPolicies, HostPolicy
    from tritonpy.runners.instance_slots import plan_instance_change
    from tritonpy.runners.isolation import chosen_runner, loads_in_worker
    from tritonpy.runners.memory_report import MemoryReport, pooled_memory, reports_memory
    from tritonpy.runners.readiness import ReadinessCheck
    from tritonpy.runners.runner import (
        ModelExecution,
        NewInstance,
        Runner,
        RunnerFactory,
        RunnerServices,
    )
    from tritonpy.runners.slot import Slot
    from tritonpy.runners.thread_pool import ThreadPool
    from tritonpy.runners.wakeups import Wakeups
    from tritonpy.runners.warmup import (
        MakeSamples,
        WarmupExecution,
        WarmupSample,
        warmup_executions,
    )
    from tritonpy.server.event_loops import event_loop_factory
    from tritonpy.server.interpreter import prepare_interpreter, settle_interpreter
    from tritonpy.statistics.memory import total_memory_usage
    from tritonpy_batching.batch_layout import BatchLayout
    from tritonpy_batching.gather import gather, scatter
    from tritonpy_types import CPU, Owner
    from tritonpy_types.errors import exception_text

__all__ = [
    "CPU",
    "LOGGER",
    "LOG_FIELDS",
    "BatchCallbacks",
    "BatchLayout",
    "CallGraph",
    "CallStream",
    "CallStreams",
    "Device",
    "DeviceBlock",
    "DeviceMonitor",
    "DeviceReading",
    "DeviceUnavailable",
    "Dispatcher",
    "HostPolicies",
    "HostPolicy",
    "Launcher",
    "LogLineMessage",
    "LogRecordMessage",
    "MakeSamples",
    "MemoryReport",
    "ModelExecution",
    "ModelLog",
    "NewInstance",
    "NoDevice",
    "Owner",
    "ReadinessCheck",
    "Runner",
    "RunnerFactory",
    "RunnerServices",
    "Slot",
    "SpawnedProcess",
    "ThreadPool",
    "Wakeups",
    "WarmupExecution",
    "WarmupSample",
    "WorkerProcess",
    "check_model_call",
    "check_returned",
    "chosen_runner",
    "event_loop_factory",
    "exception_text",
    "gather",
    "loads_in_worker",
    "plan_instance_change",
    "pooled_memory",
    "prepare_interpreter",
    "refused_model_call",
    "reports_memory",
    "scatter",
    "settle_interpreter",
    "total_memory_usage",
    "warmup_executions",
    "write_record",
]

__getattr__ = lazy_names(
    __name__,
    {
        "tritonpy.api.backend": ("check_returned",),
        "tritonpy.api.device": (
            "Device",
            "DeviceBlock",
            "DeviceMonitor",
            "DeviceReading",
            "DeviceUnavailable",
            "NoDevice",
        ),
        "tritonpy.api.worker": ("Launcher", "SpawnedProcess", "WorkerProcess"),
        "tritonpy_batching.batch_layout": ("BatchLayout",),
        "tritonpy_batching.gather": ("gather", "scatter"),
        "tritonpy_types.errors": ("exception_text",),
        "tritonpy.server.event_loops": ("event_loop_factory",),
        "tritonpy.server.interpreter": ("prepare_interpreter", "settle_interpreter"),
        "tritonpy.logs": ("LOGGER", "LOG_FIELDS"),
        "tritonpy.model_log": ("LogLineMessage", "LogRecordMessage", "ModelLog", "write_record"),
        "tritonpy.runners.batch_callbacks": ("BatchCallbacks",),
        "tritonpy.runners.call_graph": ("CallGraph", "check_model_call", "refused_model_call"),
        "tritonpy.runners.call_streams": ("CallStream", "CallStreams"),
        "tritonpy.runners.dispatcher": ("Dispatcher",),
        "tritonpy.runners.host_policies": ("HostPolicies", "HostPolicy"),
        "tritonpy.runners.instance_slots": ("plan_instance_change",),
        "tritonpy.runners.isolation": ("chosen_runner", "loads_in_worker"),
        "tritonpy.runners.memory_report": ("MemoryReport", "pooled_memory", "reports_memory"),
        "tritonpy.runners.readiness": ("ReadinessCheck",),
        "tritonpy.runners.runner": (
            "ModelExecution",
            "NewInstance",
            "Runner",
            "RunnerFactory",
            "RunnerServices",
        ),
        "tritonpy.runners.slot": ("Slot",),
        "tritonpy.runners.thread_pool": ("ThreadPool",),
        "tritonpy.runners.wakeups": ("Wakeups",),
        "tritonpy.runners.warmup": (
            "MakeSamples",
            "WarmupExecution",
            "WarmupSample",
            "warmup_executions",
        ),
        "tritonpy.statistics.memory": ("total_memory_usage",),
        "tritonpy_types": ("CPU", "Owner"),
    },
)
