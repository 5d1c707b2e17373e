"""What every call of the API has: the requests for the model, and the response to the client."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

from tritonpy import InferRequest
from tritonpy.frontend import Sink
from tritonpy_frontend_openai.choice_responses import ChoicePiece
from tritonpy_frontend_openai.errors import ApiError, encode
from tritonpy_frontend_openai.text_contract import KnownParameters
from tritonpy_frontend_openai.text_models import Task

HEARTBEAT = b": waiting\n\n"


def event(value: Any, name: str = "") -> bytes:
    """Return `value` as a server-sent event, with the name of its kind if it has one."""
    head = f"event: {name}\ndata: ".encode() if name else b"data: "
    return head + encode(value) + b"\n\n"


class Call(ABC):
    """One call: what the model is asked, and the response to what it answers.

    `choices` is the number of requests. A constructor raises ApiError if the model or the server
    cannot do what the body asks for.
    """

    choices: int
    task: ClassVar[Task] = "generate"
    """What the model has to be able to do."""
    operation: ClassVar[str] = ""
    """`gen_ai.operation.name` of the call in traces; empty for calls without such a name."""

    @abstractmethod
    def requests(self, sink: Sink, known: KnownParameters) -> list[InferRequest]:
        """Return the requests for the model, one for each choice. Raises ApiError."""

    @abstractmethod
    def document(self, pieces: Sequence[ChoicePiece]) -> Any:
        """Return the response for all pieces of all choices. Raises ApiError."""


class StreamedCall(Call):
    """A call whose response may be a stream of server-sent events: `stream` says if it is."""

    stream: bool
    heartbeat = HEARTBEAT
    """The event of a stream that waits for the model."""

    def opening(self) -> Iterator[bytes]:
        """Yield the events before the first piece."""
        yield from ()

    @abstractmethod
    def events(self, piece: ChoicePiece) -> Iterator[bytes]:
        """Yield the events for one piece."""

    def is_too_long(self, index: int) -> bool:
        """Return whether a choice exceeds a limit, so that it must end."""
        return False

    def truncation(self, index: int) -> Iterator[bytes]:
        """Yield the last events of a choice that is too long."""
        yield from ()

    @abstractmethod
    def closing(self) -> Iterator[bytes]:
        """Yield the events after the last piece of all choices."""

    @abstractmethod
    def failure(self, error: ApiError) -> Iterator[bytes]:
        """Yield the last events of a stream that failed."""
