"""Triton's environment variables for tests, which hold batches back until enough requests wait."""

from __future__ import annotations

import os

from tritonpy import InvalidArgument
from tritonpy_batching_sequence.lane import Lane
from tritonpy_batching_sequence.roster import Roster

REQUESTS_VARIABLE = "TRITONSERVER_DELAY_SCHEDULER"
BACKLOG_VARIABLE = "TRITONSERVER_BACKLOG_DELAY_SCHEDULER"


class Hold:
    """Holds the batches of all instances back, once, until `requests` wait in slots and `backlog` more wait for one.

    With the strategy `oldest` each instance waits on its own for `requests` sequences that could share a batch, and the
    backlog does not matter: in Triton each has a dynamic batcher, which knows no more than that.
    """

    def __init__(self, requests: int, backlog: int, each_instance: bool) -> None:
        self._requests = requests
        self._backlog = backlog
        self._each_instance = each_instance
        self._released: set[int] = set()
        self._all_released = False

    def holds(self, lane: Lane, roster: Roster) -> bool:
        """Return whether the instance of `lane` has to wait; changes to no once and stays."""
        if self._each_instance:
            if len(lane.ready) >= self._requests:
                self._released.add(lane.instance)
            return lane.instance not in self._released
        if not self._all_released:
            in_slots, in_backlog = roster.count_waiting()
            self._all_released = in_slots >= self._requests and in_backlog >= self._backlog
        return not self._all_released


def hold_of_environment(each_instance: bool) -> Hold | None:
    """Return the hold that the environment asks for; as in Triton the second variable means nothing without the first."""
    requests, backlog = _number(REQUESTS_VARIABLE), _number(BACKLOG_VARIABLE)
    return Hold(requests, backlog, each_instance) if requests else None


def _number(variable: str) -> int:
    text = os.environ.get(variable, "0")
    if not text.isdecimal():
        raise InvalidArgument(f"{variable} must be a number of requests, it is '{text}'")
    return int(text)
