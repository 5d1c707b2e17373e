"""Memory by place: the host's is called `cpu`, that of a GPU by its number. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from tritonpy.api.engine import MemoryUsage
from tritonpy.config.server.memory_settings import HOST, MemorySettings

Sizes = Mapping[str, int]
"""Bytes by place."""

ALL = ""
"""All places together."""

_UNITS = ("KiB", "MiB", "GiB", "TiB")


@dataclass(frozen=True, slots=True)
class Limits:
    """Most bytes: in all places together, where `total` is not 0, and in each of `places`."""

    total: int = 0
    places: Sizes = field(default_factory=dict)

    @classmethod
    def of(cls, settings: MemorySettings) -> Limits:
        """Return those of the server's configuration."""
        return cls(settings.budget, settings.devices)

    def by_place(self) -> dict[str, int]:
        """Return every bound by its place, that of all places under `ALL`."""
        return ({ALL: self.total} if self.total else {}) | dict(self.places)

    def excess(self, sizes: Sizes) -> dict[str, int]:
        """Return by how many bytes `sizes` are beyond each bound; places where they are not are missing."""
        beyond = {place: held_in(sizes, place) - most for place, most in self.by_place().items()}
        return {place: over for place, over in beyond.items() if over > 0}


def held_in(sizes: Sizes, place: str) -> int:
    """Return the bytes in one place, or in `ALL` of them."""
    return sum(sizes.values()) if place == ALL else sizes.get(place, 0)


def sizes_of(usages: Iterable[MemoryUsage]) -> dict[str, int]:
    """Return what was measured, by place."""
    sizes: Counter[str] = Counter()
    for usage in usages:
        sizes[str(usage.id) if usage.type == "GPU" else HOST] += usage.byte_size
    return dict(sizes)


def added(parts: Iterable[Sizes]) -> dict[str, int]:
    """Return the sums, place by place."""
    sums: Counter[str] = Counter()
    for part in parts:
        for place, size in part.items():
            sums[place] += size
    return dict(sums)


def larger(one: Sizes, other: Sizes) -> dict[str, int]:
    """Return the larger of both, place by place."""
    return {place: max(one.get(place, 0), other.get(place, 0)) for place in one.keys() | other.keys()}


def scaled(sizes: Sizes, factor: float) -> dict[str, int]:
    """Return `factor` times the sizes."""
    return {place: int(size * factor) for place, size in sizes.items()}


def spelled(byte_size: int) -> str:
    """Return a size for people: `512 B`, `1.5 GiB`."""
    size, unit = float(byte_size), "B"
    for larger_unit in _UNITS:
        if abs(size) < 1024:
            break
        size, unit = size / 1024, larger_unit
    return f"{byte_size} B" if unit == "B" else f"{size:.1f} {unit}"


def spelled_sizes(sizes: Sizes) -> str:
    """Return `1.5 GiB`, or where more than the host is concerned `1.5 GiB of cpu and 3.0 GiB of GPU 0`."""
    parts = {place: size for place, size in sorted(sizes.items(), reverse=True) if size}
    if parts.keys() <= {HOST}:
        return spelled(sum(parts.values()))
    return " and ".join(f"{spelled(size)} of {place_name(place)}" for place, size in parts.items())


def place_name(place: str) -> str:
    """Return `cpu` or `GPU 0`."""
    return place if place == HOST else f"GPU {place}"
