"""The flags of the memory budget, which Triton does not have."""

from __future__ import annotations

from tritonpy.cli.flag import Flag, choice, not_empty

_G = "Memory/Device Management"

_DEVICE = "--memory-limit takes DEVICE:SIZE, such as cpu:8GiB or 0:20GiB"


def device_size(text: str) -> tuple[str, str, str]:
    """Return no name, a device and the size that is read later. Raises ValueError."""
    device, colon, size = text.partition(":")
    if not (device and colon and size):
        raise ValueError(f"{_DEVICE}. Got {text}")
    return "", device, size


MEMORY_FLAGS = (
    Flag(
        "memory-budget",
        _G,
        not_empty("memory-budget"),
        "What all models together may hold, such as 8GiB, on the host and on GPUs; lazy models are unloaded to keep to it. "
        "What backends report counts (ONNX Runtime on the CPU: the size of the files); the process may hold twice as much.",
        path="memory.budget",
        metavar="SIZE",
    ),
    Flag(
        "memory-limit",
        _G,
        device_size,
        "The same for one device: cpu, or the number of a GPU; once per device.",
        path="memory.devices",
        repeated=True,
        keyed=True,
        metavar="DEVICE:SIZE",
    ),
    Flag(
        "request-memory",
        _G,
        not_empty("request-memory"),
        "What requests and unsent answers together may hold, such as 2GiB; a quarter of the memory limit without it.",
        path="request_memory",
        metavar="SIZE",
    ),
    Flag(
        "lazy-model",
        _G,
        not_empty("lazy-model"),
        "Models (a pattern with * and ?) that load at their first request; once per pattern.",
        path="memory.lazy",
        repeated=True,
        metavar="PATTERN",
    ),
    Flag(
        "pinned-model",
        _G,
        not_empty("pinned-model"),
        "Models (a pattern) that are never unloaded to make room; once per pattern.",
        path="memory.pinned",
        repeated=True,
        metavar="PATTERN",
    ),
    Flag(
        "first-request",
        _G,
        choice("first-request", "wait", "refuse"),
        "What a request does whose model is not loaded: wait for it, or be told at once to come again.",
        path="memory.first_request",
    ),
)
