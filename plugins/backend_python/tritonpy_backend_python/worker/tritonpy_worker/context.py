"""Which execution the code that runs now belongs to."""

from __future__ import annotations

from asyncio import AbstractEventLoop, _get_running_loop, get_running_loop
from collections.abc import Sequence
from contextvars import ContextVar


class Current:
    """An execution as the code in it is known by: in calls to other models and in the log.

    `loop` is where the code runs that goes on after `execute` returned.
    """

    __slots__ = ("execution", "first_request", "ids", "loop", "requests")

    def __init__(
        self,
        execution: int,
        first_request: int,
        requests: int,
        ids: Sequence[str],
        loop: AbstractEventLoop | None = None,
    ) -> None:
        self.execution = execution
        self.first_request = first_request
        self.requests = requests
        self.ids = ids
        self.loop = loop


# A context variable, so that coroutines and threads with a copied context are known as well.
CURRENT: ContextVar[Current | None] = ContextVar("tritonpy_execution", default=None)


def caller() -> tuple[int, int]:
    """Return the execution that the calling code belongs to and its request plus one; 0: none, or more than one request."""
    current = CURRENT.get()
    if current is None:
        return 0, 0
    return current.execution, current.first_request + 1 if current.requests == 1 else 0


def leave_execution() -> None:
    """Take note that the calling coroutine goes on after `execute` returned: no instance waits for the models that it calls."""
    current = CURRENT.get()
    if current is not None:
        CURRENT.set(Current(0, current.first_request, current.requests, current.ids, get_running_loop()))


def went_on() -> bool:
    """Say whether the calling code goes on after `execute` returned."""
    current = CURRENT.get()
    return current is not None and current.loop is not None


def stops_loop() -> bool:
    """Say whether the model's other coroutines stand still while the calling code waits for something without `await`."""
    current = CURRENT.get()
    return current is not None and current.loop is not None and current.loop is _get_running_loop()


def request_ids() -> list[str]:
    """Return the clients' names for the requests that the calling code works on, as far as they have names."""
    current = CURRENT.get()
    return [] if current is None else [each for each in current.ids if each]
