"""The instances that a configuration asks for, compared with the existing ones."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tritonpy.api.contexts import InstanceContext
from tritonpy_config.normalization import InstanceSpec, instance_specs
from tritonpy_protos.model_config_pb2 import ModelInstanceGroup

if TYPE_CHECKING:
    from tritonpy_protos.model_config_pb2 import ModelConfig

_SecondaryKind = ModelInstanceGroup.SecondaryDevice.SecondaryDeviceKind


@dataclass(frozen=True, slots=True)
class InstanceSlot:
    """An instance and the instance group that asks for it."""

    context: InstanceContext
    group: ModelInstanceGroup

    def signature(self) -> tuple[int, bytes]:
        """Return what interchangeable instances share: device and group, without name and count."""
        return signature(self.group, self.context.device_id)


@dataclass(frozen=True, slots=True)
class InstanceChange:
    """A change of the instances: `slots` are the kept ones followed by the added ones."""

    slots: tuple[InstanceSlot, ...]
    added: tuple[InstanceSlot, ...]
    removed: tuple[InstanceSlot, ...]


def signature(group: ModelInstanceGroup, device: int) -> tuple[int, bytes]:
    """Return what interchangeable instances of `group` on `device` have in common."""
    bare = ModelInstanceGroup()
    bare.CopyFrom(group)
    bare.ClearField("name")
    bare.ClearField("count")
    return device, bare.SerializeToString(deterministic=True)


def plan_instance_change(
    present: Sequence[InstanceSlot], config: ModelConfig, first_index: int
) -> InstanceChange:
    """Return the change from `present` to the instances of the normalized `config`.

    New instances are numbered from `first_index`. Of instances with the same signature, the first
    are kept under their names. If only a count changes, no name is used twice.
    """
    spare: defaultdict[tuple[int, bytes], deque[InstanceSlot]] = defaultdict(deque)
    for slot in present:
        spare[slot.signature()].append(slot)
    kept: list[InstanceSlot] = []
    added: list[InstanceSlot] = []
    for spec in instance_specs(config):
        group = config.instance_group[spec.group]
        same = spare[signature(group, spec.device_id)]
        if same:
            kept.append(same.popleft())
        else:
            added.append(InstanceSlot(_context(spec, group, first_index + len(added)), group))
    removed = tuple(slot for slots in spare.values() for slot in slots)
    return InstanceChange((*kept, *added), tuple(added), removed)


def _context(spec: InstanceSpec, group: ModelInstanceGroup, index: int) -> InstanceContext:
    default_policy = f"gpu_{spec.device_id}" if spec.kind == "GPU" else spec.kind.lower()
    return InstanceContext(
        spec.name,
        spec.kind,
        spec.device_id,
        index,
        spec.profiles,
        passive=spec.passive,
        secondary_devices=tuple(
            (_SecondaryKind.Name(each.kind), each.device_id) for each in group.secondary_devices
        ),
        host_policy=group.host_policy or default_policy,
    )
