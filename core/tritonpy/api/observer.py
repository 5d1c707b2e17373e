"""The interface of observers, which receive events of requests."""

from __future__ import annotations

import enum
from abc import ABC, abstractmethod
from typing import Any, ClassVar

from tritonpy_config.options import NoOptions, Options
from tritonpy_types import InferRequest, InferResponse


class Event(enum.Enum):
    """The events that an observer can subscribe to."""

    RESPONSE = (
        "response"  # each response, before it is sent; the final one completes the time stamps
    )


class Observer(ABC):
    """Receives events in the thread where they occur.

    Be fast, never block and never raise. An exception is logged, and the observer stays active.
    `events` names the events that the observer receives. A server without observers pays one truth
    test per batch.
    """

    Options: ClassVar[type[Options]] = NoOptions
    events: ClassVar[frozenset[Event]] = frozenset({Event.RESPONSE})

    def __init__(self, options: Any) -> None:
        self.options = options

    @abstractmethod
    def responded(self, request: InferRequest, response: InferResponse, now_ns: int) -> None:
        """Observe a response; `request.batch` has the time stamps of its execution."""

    def close(self) -> None:
        """Flush pending data (optional)."""
