"""Pure selection of optimization profiles for an instance and for a batch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tritonpy import InvalidArgument, TritonError
from tritonpy_backend_trt.limits import check_values, range_violation
from tritonpy_backend_trt.signature import Profile, Range, Shape

DEFAULT = "default"


def profiles_by_index(names: Sequence[str]) -> dict[int, str]:
    """Return the profiles of an instance group: name by index, in ascending order.

    Without names it is the first profile. Of two names for one profile the first is used.
    """
    found: dict[int, str] = {}
    for name in sorted(names):
        found.setdefault(int(name), name)
    return dict(sorted(found.items())) or {0: DEFAULT}


def check_index(index: int, name: str, instance: str, count: int) -> None:
    """Raise `InvalidArgument` if an engine with `count` profiles does not have the profile."""
    if index >= count:
        raise InvalidArgument(
            f"Can not set the specified optimization profile {name}[{index}] for {instance}. "
            f"Expected optimization profile index range 0-{count - 1}"
        )


def select_profile(
    profiles: Sequence[Profile], shapes: Mapping[str, Shape], values: Mapping[str, Sequence[int]]
) -> Profile | None:
    """Return the profile whose optimum is nearest to a batch's shapes and shape tensor values.

    The distance is the sum of the differences in all dimensions; the first of equal profiles wins.
    Returns None if no profile allows the batch.
    """
    best, shortest = None, -1
    for profile in profiles:
        distance = _distance(profile, shapes, values)
        if distance is not None and (best is None or distance < shortest):
            best, shortest = profile, distance
    return best


def _distance(
    profile: Profile, shapes: Mapping[str, Shape], values: Mapping[str, Sequence[int]]
) -> int | None:
    total = 0
    for name, shape in shapes.items():
        if range_violation(profile.shapes[name], shape) is not None:
            return None
        total += _difference(profile.shapes[name], shape)
    for name, found in values.items():
        if not _is_allowed(profile.values[name], found):
            return None
        total += _difference(profile.values[name], found)
    return total


def _is_allowed(allowed: Range, values: Sequence[int]) -> bool:
    try:
        check_values(allowed, values)
    except TritonError:
        return False
    return True


def _difference(allowed: Range, sizes: Sequence[int]) -> int:
    return sum(abs(best - size) for best, size in zip(allowed.optimum, sizes, strict=True))


def no_profile_message(names: Mapping[int, str]) -> str:
    """Return the log message for a batch that no profile allows."""
    listed = "".join(f" {name}[{index}]" for index, name in names.items())
    return (
        f"failed to find any Optimization Profile among [{listed}] to support the requested "
        "dimensions (or shape values), "
        "proceeding with first profile."
    )
