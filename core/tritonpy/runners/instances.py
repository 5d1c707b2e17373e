"""The instances of one loaded version, and changes to them while it serves."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import wait
from typing import TYPE_CHECKING

from tritonpy.api.scheduler import Scheduler
from tritonpy.runners.dispatcher import Dispatcher
from tritonpy.runners.gpu_limits import GpuLimits
from tritonpy.runners.instance_slots import InstanceChange, InstanceSlot, plan_instance_change
from tritonpy.runners.runner import NewInstance, Runner

if TYPE_CHECKING:
    from tritonpy_protos.model_config_pb2 import ModelConfig

# How long a change waits for removed instances. Idle ones end within this time; others, with long
# executions or sequences, end later.
GRACE_S = 1.0


class Instances:
    """The instances of a version; used by one thread at a time, which may block.

    Call `prepare` first, and then `make` or `drop` with the change that it returned.
    """

    def __init__(
        self,
        runner: Runner,
        scheduler: Scheduler,
        dispatcher: Dispatcher,
        limits: GpuLimits | None = None,
    ) -> None:
        self._runner = runner
        self._limits = limits or GpuLimits()
        self._scheduler = scheduler
        self._dispatcher = dispatcher
        self._slots: tuple[InstanceSlot, ...] = ()
        self._next_index = 0

    def prepare(self, config: ModelConfig) -> InstanceChange:
        """Build the additional instances of `config` without letting them serve.

        Raises the error of the first failing instance, and `Unavailable` if a GPU exceeds its
        limit.
        """
        change = plan_instance_change(self._slots, config, self._next_index)
        self._next_index += len(change.added)
        self._runner.add(_new_instances(change.added))
        try:
            self._limits.check([slot.context for slot in change.added])
        except BaseException:
            self.drop(change)
            raise
        return change

    def make(self, change: InstanceChange) -> None:
        """Let the new instances serve and drain the removed ones, without waiting for long."""
        self._slots = change.slots
        serving = [slot.context.index for slot in change.slots if not slot.context.passive]
        with self._dispatcher.lock:
            self._scheduler.instances_changed(serving)
        self._runner.serve(_indexes(change.added))
        self._dispatcher.wake()  # waiting requests may no longer be bound to an instance
        wait(self._runner.remove(_indexes(change.removed)), GRACE_S)
        self._runner.measure_memory()

    def drop(self, change: InstanceChange) -> None:
        """End the new instances and keep the others."""
        wait(self._runner.remove(_indexes(change.added)), GRACE_S)
        self._runner.measure_memory()


def _new_instances(slots: Sequence[InstanceSlot]) -> list[NewInstance]:
    return [(slot.context, slot.group) for slot in slots]


def _indexes(slots: Sequence[InstanceSlot]) -> list[int]:
    return [slot.context.index for slot in slots]
