"""The enumerations of the API. Values are those of Triton's C interface and of DLPack."""

from __future__ import annotations

import enum


class DataType(enum.IntEnum):
    """The type of a tensor's elements."""

    INVALID = 0
    BOOL = 1
    UINT8 = 2
    UINT16 = 3
    UINT32 = 4
    UINT64 = 5
    INT8 = 6
    INT16 = 7
    INT32 = 8
    INT64 = 9
    FP16 = 10
    FP32 = 11
    FP64 = 12
    BYTES = 13
    BF16 = 14


class MemoryType(enum.IntEnum):
    """The kind of memory of a buffer."""

    CPU = 0
    CPU_PINNED = 1
    GPU = 2


class DLDeviceType(enum.IntEnum):
    """The kind of a device in DLPack."""

    kDLCPU = 1  # noqa: N815 - the names of DLPack
    kDLCUDA = 2  # noqa: N815
    kDLCUDAHost = 3  # noqa: N815
    kDLOpenCL = 4  # noqa: N815
    kDLVulkan = 7  # noqa: N815
    kDLMetal = 8  # noqa: N815
    kDLVPI = 9  # noqa: N815
    kDLROCM = 10  # noqa: N815
    kDLROCMHost = 11  # noqa: N815
    kDLExtDev = 12  # noqa: N815
    kDLCUDAManaged = 13  # noqa: N815
    kDLOneAPI = 14  # noqa: N815
    kDLWebGPU = 15  # noqa: N815
    kDLHexagon = 16  # noqa: N815


class ModelControlMode(enum.IntEnum):
    """Which models are loaded, and when."""

    NONE = 0
    POLL = 1
    EXPLICIT = 2


class RateLimitMode(enum.IntEnum):
    """Whether instances need resources to execute."""

    OFF = 0
    EXEC_COUNT = 1


class LogFormat(enum.IntEnum):
    """The format of log lines."""

    DEFAULT = 0
    ISO8601 = 1


class LogLevel(enum.IntEnum):
    """The level of a log line."""

    INFO = 0
    WARN = 1
    ERROR = 2
    VERBOSE = 3


class InstanceGroupKind(enum.IntEnum):
    """The kind of device on which the instances of a group run."""

    AUTO = 0
    CPU = 1
    GPU = 2
    MODEL = 3


class ModelBatchFlag(enum.IntEnum):
    """Whether the first dimension of a model's tensors is the batch."""

    UNKNOWN = 1
    FIRST_DIM = 2


class ModelTxnPropertyFlag(enum.IntEnum):
    """Whether a model sends one response to each request."""

    ONE_TO_ONE = 1
    DECOUPLED = 2


class MetricKind(enum.IntEnum):
    """The kind of a metric."""

    COUNTER = 0
    GAUGE = 1


class MetricFormat(enum.IntEnum):
    """The format of a text with metrics."""

    PROMETHEUS = 0
