"""What instances need and how much there is of it. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from tritonpy.config.server.rate_limit_settings import parse_resource
from tritonpy.errors import InvalidArgument

if TYPE_CHECKING:
    from tritonpy_protos.model_config_pb2 import ModelInstanceGroup

GLOBAL, EVERY_DEVICE = -2, -1


class Resource(NamedTuple):
    """`name` is in lower case: names differ in more than case. `device` is GLOBAL for what the whole server shares."""

    device: int
    name: str


@dataclass(frozen=True, slots=True)
class Need:
    """`count` of `resource`, which its model spells `spelling`."""

    resource: Resource
    spelling: str
    count: int


def needs_of(group: ModelInstanceGroup, device: int) -> tuple[Need, ...]:
    """Return what an instance of `group` on `device` needs; of a resource that is listed twice the last entry counts."""
    needs = {}
    for entry in group.rate_limiter.resources:
        resource = Resource(GLOBAL if getattr(entry, "global") else device, entry.name.lower())
        needs[resource] = Need(resource, entry.name, entry.count)
    return tuple(needs.values())


def given_resources(counts: Mapping[str, int]) -> dict[Resource, int]:
    """Return what `counts` says there is; its keys are `name`, for every device, or `name:device`.

    Of two spellings of one key the smaller count holds. Raises ValueError for another key.
    """
    given: dict[Resource, int] = {}
    for key, count in counts.items():
        name, device = parse_resource(key)
        resource = Resource(EVERY_DEVICE if device is None else device, name.lower())
        given[resource] = min(count, given.get(resource, count))
    return given


def totals(needs: Iterable[Need], given: Mapping[Resource, int]) -> dict[Resource, int]:
    """Return how much there is of everything that somebody needs: what `given` says, or else the most that one instance needs.

    Where `given` names anything, what it does not name is not there. Raises InvalidArgument where an instance could never run, or where a name
    stands for a resource of each device and a global one.
    """
    most: dict[Resource, Need] = {}
    for need in needs:
        if need.resource not in most or most[need.resource].count < need.count:
            most[need.resource] = need
    found = {resource: _limit(need, given) for resource, need in sorted(most.items())}
    shared = {resource.name for resource in most if resource.device == GLOBAL}
    for resource, need in sorted(most.items()):
        if resource.device != GLOBAL and resource.name in shared:
            raise InvalidArgument(
                f'Resource "{need.spelling}" is present as both global and device-specific resource in the model configuration.'
            )
    return found


def resource_map(found: Mapping[Resource, int], spellings: Mapping[Resource, str]) -> str:
    """Return what Triton's log says of how much there is of each resource, as models spell it; global ones come first."""
    lines = ["\nMax Resource Map===>\n"]
    device = None
    for resource, count in sorted(found.items()):
        if resource.device != device:
            device = resource.device
            lines.append(f"\tDevice: {'GLOBAL' if device == GLOBAL else device}\n")
        lines.append(f"\t\tResource: {spellings[resource]}\t Count: {count}\n")
    return "".join(lines)


def _limit(need: Need, given: Mapping[Resource, int]) -> int:
    if not given:
        return need.count
    device, name = need.resource
    limit = max(
        (
            count
            for (its_device, its_name), count in given.items()
            if its_name == name and (device == GLOBAL or its_device in {device, EVERY_DEVICE})
        ),
        default=0,
    )
    if limit < need.count:
        raise InvalidArgument(
            f'Resource count for "{need.spelling}" is limited to {limit} which will prevent scheduling of one or more '
            f"model instances, the minimum required count is {need.count}"
        )
    return limit
