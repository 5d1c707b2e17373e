"""Which optimisation profiles an instance has, and which of them serves a batch. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tritonpy import InvalidArgument, TritonError
from tritonpy_backend_trt.limits import check_values, outside
from tritonpy_backend_trt.signature import Profile, Range, Shape

DEFAULT = "default"


def named_profiles(names: Sequence[str]) -> dict[int, str]:
    """Return the profiles that an instance group asks for, name by index in ascending order; the first profile where it asks for none.

    Of two names of one profile the first counts.
    """
    found: dict[int, str] = {}
    for name in sorted(names):
        found.setdefault(int(name), name)
    return dict(sorted(found.items())) or {0: DEFAULT}


def check_index(index: int, name: str, instance: str, count: int) -> None:
    """Raise InvalidArgument for a profile that an engine of `count` profiles does not have."""
    if index >= count:
        raise InvalidArgument(
            f"Can not set the specified optimization profile {name}[{index}] for {instance}. "
            f"Expected optimization profile index range 0-{count - 1}"
        )


def chosen_profile(
    profiles: Sequence[Profile], shapes: Mapping[str, Shape], values: Mapping[str, Sequence[int]]
) -> Profile | None:
    """Return the profile whose optimum is nearest to the shapes of a batch, and to the values of its shape tensors; None where none allows them.

    Near is what the sizes of all dimensions differ by, summed up; of two that are equally near, the first.
    """
    best, shortest = None, -1
    for profile in profiles:
        distance = _distance(profile, shapes, values)
        if distance is not None and (best is None or distance < shortest):
            best, shortest = profile, distance
    return best


def _distance(profile: Profile, shapes: Mapping[str, Shape], values: Mapping[str, Sequence[int]]) -> int | None:
    total = 0
    for name, shape in shapes.items():
        if outside(profile.shapes[name], shape) is not None:
            return None
        total += _apart(profile.shapes[name], shape)
    for name, found in values.items():
        if not _allowed(profile.values[name], found):
            return None
        total += _apart(profile.values[name], found)
    return total


def _allowed(allowed: Range, values: Sequence[int]) -> bool:
    try:
        check_values(allowed, values)
    except TritonError:
        return False
    return True


def _apart(allowed: Range, sizes: Sequence[int]) -> int:
    return sum(abs(best - size) for best, size in zip(allowed.optimum, sizes, strict=True))


def no_profile(names: Mapping[int, str]) -> str:
    """Return what the log says where no profile allows a batch."""
    listed = "".join(f" {name}[{index}]" for index, name in names.items())
    return (
        f"failed to find any Optimization Profile among [{listed}] to support the requested dimensions (or shape values), "
        "proceeding with first profile."
    )
