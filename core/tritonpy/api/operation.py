"""Management operations: calls in addition to the protocol, as plain JSON over HTTP below /v2/."""

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
    """The description of an operation: plain data, so that it can be sent to another process.

    `path` is below /v2/ and may contain parameters: `traffic/routes/{route}`. `verb` is the right
    that a caller needs on the server. `summary` is one sentence for the interface description.
    Raises ValueError for an invalid path.
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
    """One call: the path's parameters, the body as plain JSON or None, and the known revision.

    `revision` comes from the If-Match header and is None without it. If the result is an object
    with the member `revision`, that becomes its ETag.
    """

    parameters: Mapping[str, str] = {}
    body: Any = None
    revision: int | None = None


OperationHandler = Callable[[OperationCall], Any]
"""Handles a call: returns plain JSON or raises a TritonError.

Called in any thread except that of an event loop. It may take long.
"""


class OperationGroup(ABC):
    """A group of operations of a plugin, configured under `operations:` of server.yaml.

    The server creates one object of each configured group.
    """

    Options: ClassVar[type[Options]] = NoOptions

    def __init__(self, options: Any, engine: Engine) -> None:
        self.options = options
        self.engine = engine

    @abstractmethod
    def operations(self) -> Mapping[Operation, OperationHandler]:
        """Return the operations and their handlers; called once."""

    def close(self) -> None:
        """Release resources (optional); no call is in flight any more."""
