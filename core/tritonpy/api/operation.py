"""Management operations: what clients may ask of a server beside the protocol, as plain JSON over HTTP below /v2/."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import msgspec

from tritonpy.api.authenticator import Verb
from tritonpy.api.options import NoOptions, Options

if TYPE_CHECKING:
    from tritonpy.api.engine import Engine

_SEGMENT = re.compile(r"[a-z][a-z0-9_-]*|\{[a-z_]+\}")
_PARAMETER = re.compile(r"\{([a-z_]+)\}")


class Operation(msgspec.Struct, frozen=True):
    """What is offered: plain data, so that it can be known in another process.

    `path` lies below /v2/ and may hold parameters: `traffic/routes/{route}`. `verb` is the right that a caller needs on the server.
    `summary` is one sentence for the description of the interface. Raises ValueError for a path that cannot be one.
    """

    name: str
    method: Literal["GET", "PUT", "POST", "DELETE"]
    path: str
    summary: str
    verb: Verb = Verb.ADMIN

    def __post_init__(self) -> None:
        if not all(_SEGMENT.fullmatch(segment) for segment in self.path.split("/")) or self.path.startswith("{"):
            raise ValueError(f"'{self.path}' is no path of an operation: words in lower case and {{parameters}}")

    @property
    def parameters(self) -> list[str]:
        """The names of the path's parameters."""
        return _PARAMETER.findall(self.path)


class OperationCall(msgspec.Struct, frozen=True):
    """One call: the path's parameters, the body as plain JSON (None: there was none) and the revision that the caller has read.

    `revision` comes from the header If-Match, None without one; an answer that is an object with the member `revision` gets it as its ETag.
    """

    parameters: Mapping[str, str] = {}
    body: Any = None
    revision: int | None = None


Answerer = Callable[[OperationCall], Any]
"""Answers a call with plain JSON, or raises a TritonError. Called in any thread but that of an event loop; may take its time."""


class OperationGroup(ABC):
    """Operations that a plugin offers, made once for a server: under `operations:` of server.yaml by the name of its registration."""

    Options: ClassVar[type[Options]] = NoOptions

    def __init__(self, options: Any, engine: Engine) -> None:
        self.options = options
        self.engine = engine

    @abstractmethod
    def operations(self) -> Mapping[Operation, Answerer]:
        """Return what is offered, and what answers it; asked once."""

    def close(self) -> None:
        """End (optional); no call is open any more."""
