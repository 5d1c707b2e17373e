"""The instances of one loaded version: which there are, and how they change while it serves."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import wait
from typing import TYPE_CHECKING

from tritonpy.api.scheduler import Scheduler
from tritonpy.runners.dispatcher import Dispatcher
from tritonpy.runners.gpu_limits import GpuLimits
from tritonpy.runners.roster import RosterChange, Seat, roster_change
from tritonpy.runners.runner import Newcomer, Runner

if TYPE_CHECKING:
    from tritonpy_protos.model_config_pb2 import ModelConfig

# How long instances that are to go are waited for: those that do nothing are gone by then. What executes for longer, or has sequences, goes later.
GRACE_S = 1.0


class Instances:
    """Called from threads that may wait, by one at a time. A change is made ready first, and then made or dropped."""

    def __init__(
        self, runner: Runner, scheduler: Scheduler, dispatcher: Dispatcher, limits: GpuLimits | None = None
    ) -> None:
        self._runner = runner
        self._limits = limits or GpuLimits()
        self._scheduler = scheduler
        self._dispatcher = dispatcher
        self._seats: tuple[Seat, ...] = ()
        self._made = 0

    def prepare(self, config: ModelConfig) -> RosterChange:
        """Build what `config` asks for beyond what there is, without letting it serve.

        Raises what the first failing instance raised, and Unavailable where a GPU is too full now.
        """
        change = roster_change(self._seats, config, self._made)
        self._made += len(change.added)
        self._runner.add(_newcomers(change.added))
        try:
            self._limits.check([seat.context for seat in change.added])
        except BaseException:
            self.drop(change)
            raise
        return change

    def make(self, change: RosterChange) -> None:
        """Let the new instances serve and the others go; returns before they are gone where that takes long."""
        self._seats = change.seats
        serving = [seat.context.index for seat in change.seats if not seat.context.passive]
        with self._dispatcher.lock:
            self._scheduler.instances_changed(serving)
        self._runner.serve(_indexes(change.added))
        self._dispatcher.wake()  # what waits may be bound to nobody any more
        wait(self._runner.remove(_indexes(change.removed)), GRACE_S)
        self._runner.measure_memory()

    def drop(self, change: RosterChange) -> None:
        """End the new instances: everything stays as it is."""
        wait(self._runner.remove(_indexes(change.added)), GRACE_S)
        self._runner.measure_memory()


def _newcomers(seats: Sequence[Seat]) -> list[Newcomer]:
    return [(seat.context, seat.group) for seat in seats]


def _indexes(seats: Sequence[Seat]) -> list[int]:
    return [seat.context.index for seat in seats]
