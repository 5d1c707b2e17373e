"""The demands of instances and the totals of resources, as pure functions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from tritonpy import InvalidArgument
from tritonpy.config import parse_resource

if TYPE_CHECKING:
    from tritonpy_protos.model_config_pb2 import ModelInstanceGroup

GLOBAL, EVERY_DEVICE = -2, -1


class Resource(NamedTuple):
    """A resource of one device, or of the server if `device` is `GLOBAL`.

    `name` is in lower case, as names are case-insensitive.
    """

    device: int
    name: str


@dataclass(frozen=True, slots=True)
class Demand:
    """A demand for `count` units of `resource`, spelled `spelling` in its model."""

    resource: Resource
    spelling: str
    count: int


def demands_of(group: ModelInstanceGroup, device: int) -> tuple[Demand, ...]:
    """Return the demands of an instance of `group` on `device`.

    If a resource is listed twice, the last entry counts.
    """
    demands = {}
    for entry in group.rate_limiter.resources:
        resource = Resource(GLOBAL if getattr(entry, "global") else device, entry.name.lower())
        demands[resource] = Demand(resource, entry.name, entry.count)
    return tuple(demands.values())


def given_resources(counts: Mapping[str, int]) -> dict[Resource, int]:
    """Return the resources in `counts`, whose keys are `name` (every device) or `name:device`.

    Of two spellings of one key, the smaller count holds. Raises `ValueError` for an invalid key.
    """
    given: dict[Resource, int] = {}
    for key, count in counts.items():
        name, device = parse_resource(key)
        resource = Resource(EVERY_DEVICE if device is None else device, name.lower())
        given[resource] = min(count, given.get(resource, count))
    return given


def totals(demands: Iterable[Demand], given: Mapping[Resource, int]) -> dict[Resource, int]:
    """Return the total of each demanded resource: as given, or else the largest demand.

    If `given` is not empty, resources that it does not name have a total of 0. Raises
    `InvalidArgument` if an instance could never run, or if a name is both a global and a device
    resource.
    """
    most: dict[Resource, Demand] = {}
    for demand in demands:
        if demand.resource not in most or most[demand.resource].count < demand.count:
            most[demand.resource] = demand
    found = {resource: _limit(demand, given) for resource, demand in sorted(most.items())}
    shared = {resource.name for resource in most if resource.device == GLOBAL}
    for resource, demand in sorted(most.items()):
        if resource.device != GLOBAL and resource.name in shared:
            raise InvalidArgument(
                f'Resource "{demand.spelling}" is present as both global and device-specific '
                "resource in the model configuration."
            )
    return found


def resource_map(found: Mapping[Resource, int], spellings: Mapping[Resource, str]) -> str:
    """Return the totals as Triton logs them, global resources first."""
    lines = ["\nMax Resource Map===>\n"]
    device = None
    for resource, count in sorted(found.items()):
        if resource.device != device:
            device = resource.device
            lines.append(f"\tDevice: {'GLOBAL' if device == GLOBAL else device}\n")
        lines.append(f"\t\tResource: {spellings[resource]}\t Count: {count}\n")
    return "".join(lines)


def _limit(demand: Demand, given: Mapping[Resource, int]) -> int:
    if not given:
        return demand.count
    device, name = demand.resource
    limit = max(
        (
            count
            for (its_device, its_name), count in given.items()
            if its_name == name and (device == GLOBAL or its_device in {device, EVERY_DEVICE})
        ),
        default=0,
    )
    if limit < demand.count:
        raise InvalidArgument(
            f'Resource count for "{demand.spelling}" is limited to {limit} which will prevent '
            "scheduling of one or more "
            f"model instances, the minimum required count is {demand.count}"
        )
    return limit
