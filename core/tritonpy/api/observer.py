"""The interface of an observer: sees what happened to requests."""

from __future__ import annotations

import enum
from abc import ABC, abstractmethod
from typing import Any, ClassVar

from tritonpy.api.options import NoOptions, Options
from tritonpy.types import InferRequest, InferResponse


class Event(enum.Enum):
    """What an observer can ask for."""

    ANSWER = "answer"  # each answer of a request, before it is sent; the final one closes its time stamps


class Observer(ABC):
    """Sees events, in the thread where they happen: be quick, never block, never raise (an exception is logged and the observer goes on).

    `events` states which ones are wanted; a server without observers pays one truth test per batch.
    """

    Options: ClassVar[type[Options]] = NoOptions
    events: ClassVar[frozenset[Event]] = frozenset({Event.ANSWER})

    def __init__(self, options: Any) -> None:
        self.options = options

    @abstractmethod
    def answered(self, request: InferRequest, response: InferResponse, now_ns: int) -> None:
        """Take note of an answer; `request.batch` has the time stamps of its execution."""

    def close(self) -> None:
        """Flush (optional)."""
