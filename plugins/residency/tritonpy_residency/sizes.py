"""Memory sizes by device: `cpu` for the host, or the number of a GPU. Pure functions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from tritonpy import MemoryUsage
from tritonpy.repository import HOST, MemorySettings

Sizes = Mapping[str, int]
"""Bytes by device."""

ALL = ""
"""All devices together."""

_UNITS = ("KiB", "MiB", "GiB", "TiB")


@dataclass(frozen=True, slots=True)
class MemoryLimits:
    """The most bytes: on all devices together if `total` is not 0, and on each of `devices`."""

    total: int = 0
    devices: Sizes = field(default_factory=dict)

    @classmethod
    def of(cls, settings: MemorySettings) -> MemoryLimits:
        """Return the limits of the server's configuration."""
        return cls(settings.budget, settings.devices)

    def by_device(self) -> dict[str, int]:
        """Return every limit by device; `ALL` has the total."""
        return ({ALL: self.total} if self.total else {}) | dict(self.devices)

    def excess(self, sizes: Sizes) -> dict[str, int]:
        """Return by how many bytes `sizes` exceed each limit; only exceeded limits are included."""
        beyond = {
            device: bytes_in(sizes, device) - most for device, most in self.by_device().items()
        }
        return {device: over for device, over in beyond.items() if over > 0}


def bytes_in(sizes: Sizes, device: str) -> int:
    """Return the bytes on one device, or on `ALL` of them."""
    return sum(sizes.values()) if device == ALL else sizes.get(device, 0)


def sizes_of(usages: Iterable[MemoryUsage]) -> dict[str, int]:
    """Return measured memory by device."""
    sizes: Counter[str] = Counter()
    for usage in usages:
        sizes[str(usage.id) if usage.type == "GPU" else HOST] += usage.byte_size
    return dict(sizes)


def sum_sizes(parts: Iterable[Sizes]) -> dict[str, int]:
    """Return the sums by device."""
    sums: Counter[str] = Counter()
    for part in parts:
        for device, size in part.items():
            sums[device] += size
    return dict(sums)


def max_sizes(one: Sizes, other: Sizes) -> dict[str, int]:
    """Return the maxima by device."""
    return {
        device: max(one.get(device, 0), other.get(device, 0))
        for device in one.keys() | other.keys()
    }


def scale_sizes(sizes: Sizes, factor: float) -> dict[str, int]:
    """Return `factor` times the sizes."""
    return {device: int(size * factor) for device, size in sizes.items()}


def format_bytes(byte_size: int) -> str:
    """Return a human-readable size: `512 B`, `1.5 GiB`."""
    size, unit = float(byte_size), "B"
    for larger_unit in _UNITS:
        if abs(size) < 1024:
            break
        size, unit = size / 1024, larger_unit
    return f"{byte_size} B" if unit == "B" else f"{size:.1f} {unit}"


def format_sizes(sizes: Sizes) -> str:
    """Return `1.5 GiB`, or `1.5 GiB of cpu and 3.0 GiB of GPU 0` if GPUs are involved."""
    parts = {device: size for device, size in sorted(sizes.items(), reverse=True) if size}
    if parts.keys() <= {HOST}:
        return format_bytes(sum(parts.values()))
    return " and ".join(
        f"{format_bytes(size)} of {device_name(device)}" for device, size in parts.items()
    )


def device_name(device: str) -> str:
    """Return `cpu` or `GPU 0`."""
    return device if device == HOST else f"GPU {device}"
