"""The flags of the memory budget, which Triton does not have."""

from __future__ import annotations

from tritonpy.cli.flag import Flag, choice, not_empty

_G = "Memory/Device Management"

_DEVICE = "--memory-limit takes DEVICE:SIZE, such as cpu:8GiB or 0:20GiB"


def device_size(text: str) -> tuple[str, str, str]:
    """Return ("", device, size text) of `DEVICE:SIZE`. Raises ValueError."""
    device, colon, size = text.partition(":")
    if not (device and colon and size):
        raise ValueError(f"{_DEVICE}. Got {text}")
    return "", device, size


MEMORY_FLAGS = (
    Flag(
        "memory-budget",
        _G,
        not_empty("memory-budget"),
        "Memory limit for all models together, such as 8GiB, on the host and on GPUs. Lazy models are unloaded to stay below it. "
        "It counts the memory that backends report (ONNX Runtime on the CPU: the file sizes); the process may use twice as much.",
        path="memory.budget",
        metavar="SIZE",
    ),
    Flag(
        "memory-limit",
        _G,
        device_size,
        "Memory limit for one device: cpu, or the number of a GPU. Repeat it per device.",
        path="memory.devices",
        repeated=True,
        keyed=True,
        metavar="DEVICE:SIZE",
    ),
    Flag(
        "request-memory",
        _G,
        not_empty("request-memory"),
        "Memory limit for requests and unsent responses, such as 2GiB. Default: a quarter of the process's memory limit.",
        path="request_memory",
        metavar="SIZE",
    ),
    Flag(
        "lazy-model",
        _G,
        not_empty("lazy-model"),
        "Models that load at their first request, as a pattern with * and ?. Repeat it per pattern.",
        path="memory.lazy",
        repeated=True,
        metavar="PATTERN",
    ),
    Flag(
        "pinned-model",
        _G,
        not_empty("pinned-model"),
        "Models that are never unloaded to free memory, as a pattern. Repeat it per pattern.",
        path="memory.pinned",
        repeated=True,
        metavar="PATTERN",
    ),
    Flag(
        "first-request",
        _G,
        choice("first-request", "wait", "refuse"),
        "Requests to a lazy model that is not loaded: wait for the model, or refuse them with a retry time.",
        path="memory.first_request",
    ),
)
