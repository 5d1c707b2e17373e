"""Triton's test variables that delay batches until enough requests wait."""

from __future__ import annotations

import os

from tritonpy import InvalidArgument
from tritonpy_batching_sequence.sequence_table import SequenceTable
from tritonpy_batching_sequence.slot_group import SlotGroup

REQUESTS_VARIABLE = "TRITONSERVER_DELAY_SCHEDULER"
BACKLOG_VARIABLE = "TRITONSERVER_BACKLOG_DELAY_SCHEDULER"


class SchedulerDelay:
    """Delays the first batches until `requests` wait in slots and `backlog` more wait for a slot.

    With the strategy `oldest`, each instance waits separately for `requests` sequences that can
    share a batch, and the backlog is ignored. Triton does the same, because each of its instances
    has a separate dynamic batcher.
    """

    def __init__(self, requests: int, backlog: int, each_instance: bool) -> None:
        self._requests = requests
        self._backlog = backlog
        self._each_instance = each_instance
        self._released: set[int] = set()
        self._all_released = False

    def is_delayed(self, group: SlotGroup, table: SequenceTable) -> bool:
        """Return whether the instance of `group` must wait. Once False, it stays False."""
        if self._each_instance:
            if len(group.ready) >= self._requests:
                self._released.add(group.instance)
            return group.instance not in self._released
        if not self._all_released:
            in_slots, in_backlog = table.count_waiting()
            self._all_released = in_slots >= self._requests and in_backlog >= self._backlog
        return not self._all_released


def delay_from_environment(each_instance: bool) -> SchedulerDelay | None:
    """Return the configured delay, or None.

    As in Triton, the backlog variable has no effect without the first variable.
    """
    requests, backlog = _number(REQUESTS_VARIABLE), _number(BACKLOG_VARIABLE)
    return SchedulerDelay(requests, backlog, each_instance) if requests else None


def _number(variable: str) -> int:
    text = os.environ.get(variable, "0")
    if not text.isdecimal():
        raise InvalidArgument(f"{variable} must be a number of requests, it is '{text}'")
    return int(text)
