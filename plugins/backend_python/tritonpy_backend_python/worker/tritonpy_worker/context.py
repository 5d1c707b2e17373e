"""The execution that the running code belongs to."""

from __future__ import annotations

from asyncio import AbstractEventLoop, _get_running_loop, get_running_loop
from collections.abc import Sequence
from contextvars import ContextVar


class ExecutionScope:
    """The execution that calls to other models and log lines belong to.

    `loop` is the event loop of code that continues after `execute` returned.
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


# A context variable, so that coroutines and threads with a copied context have it too.
CURRENT_EXECUTION: ContextVar[ExecutionScope | None] = ContextVar(
    "tritonpy_execution", default=None
)


def calling_execution() -> tuple[int, int]:
    """Return the number of the calling execution, and that of its only request plus one.

    0 means no execution, and no request or several.
    """
    current = CURRENT_EXECUTION.get()
    if current is None:
        return 0, 0
    return current.execution, current.first_request + 1 if current.requests == 1 else 0


def mark_background() -> None:
    """Mark the calling coroutine as running after `execute`: no instance waits for its calls."""
    current = CURRENT_EXECUTION.get()
    if current is not None:
        CURRENT_EXECUTION.set(
            ExecutionScope(
                0, current.first_request, current.requests, current.ids, get_running_loop()
            )
        )


def detached() -> bool:
    """Return true if the calling code continues after `execute` returned."""
    current = CURRENT_EXECUTION.get()
    return current is not None and current.loop is not None


def blocks_loop() -> bool:
    """Return true if blocking the calling code also blocks the model's other coroutines."""
    current = CURRENT_EXECUTION.get()
    return current is not None and current.loop is not None and current.loop is _get_running_loop()


def request_ids() -> list[str]:
    """Return the non-empty client IDs of the requests that the calling code executes."""
    current = CURRENT_EXECUTION.get()
    return [] if current is None else [each for each in current.ids if each]
