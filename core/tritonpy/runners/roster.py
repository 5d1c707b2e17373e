"""Which instances a configuration asks for, and which of the present ones it keeps. Pure."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tritonpy.api.backend import InstanceContext
from tritonpy.config.normalize import InstanceSpec, instance_specs
from tritonpy_protos.model_config_pb2 import ModelInstanceGroup

if TYPE_CHECKING:
    from tritonpy_protos.model_config_pb2 import ModelConfig

_SecondaryKind = ModelInstanceGroup.SecondaryDevice.SecondaryDeviceKind


@dataclass(frozen=True, slots=True)
class Seat:
    """An instance and the group that asks for it."""

    context: InstanceContext
    group: ModelInstanceGroup

    def signature(self) -> tuple[int, bytes]:
        """Return what makes instances interchangeable: all of the group but its name and count, and the device."""
        return signature(self.group, self.context.device_id)


@dataclass(frozen=True, slots=True)
class RosterChange:
    """`seats` are all that there are to be: those kept, then the added ones."""

    seats: tuple[Seat, ...]
    added: tuple[Seat, ...]
    removed: tuple[Seat, ...]


def signature(group: ModelInstanceGroup, device: int) -> tuple[int, bytes]:
    """Return what an instance of `group` on `device` has in common with those that it may stand in for."""
    bare = ModelInstanceGroup()
    bare.CopyFrom(group)
    bare.ClearField("name")
    bare.ClearField("count")
    return device, bare.SerializeToString(deterministic=True)


def roster_change(present: Sequence[Seat], config: ModelConfig, first_index: int) -> RosterChange:
    """Return how `present` becomes what the normalised `config` asks for; new instances are numbered from `first_index` on.

    Of those with one signature the first are kept, each under the name that it has: where only a count changes, no name comes twice.
    """
    spare: defaultdict[tuple[int, bytes], deque[Seat]] = defaultdict(deque)
    for seat in present:
        spare[seat.signature()].append(seat)
    kept: list[Seat] = []
    added: list[Seat] = []
    for spec in instance_specs(config):
        group = config.instance_group[spec.group]
        same = spare[signature(group, spec.device_id)]
        if same:
            kept.append(same.popleft())
        else:
            added.append(Seat(_context(spec, group, first_index + len(added)), group))
    removed = tuple(seat for seats in spare.values() for seat in seats)
    return RosterChange((*kept, *added), tuple(added), removed)


def _context(spec: InstanceSpec, group: ModelInstanceGroup, index: int) -> InstanceContext:
    default_policy = f"gpu_{spec.device_id}" if spec.kind == "GPU" else spec.kind.lower()
    return InstanceContext(
        spec.name,
        spec.kind,
        spec.device_id,
        index,
        spec.profiles,
        passive=spec.passive,
        secondary_devices=tuple((_SecondaryKind.Name(each.kind), each.device_id) for each in group.secondary_devices),
        host_policy=group.host_policy or default_policy,
    )
