"""Groups of management operations, which plugins add to the protocol."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from tritonpy.api.engine import Engine, Operation, OperationCall
from tritonpy_config.options import NoOptions, Options

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
