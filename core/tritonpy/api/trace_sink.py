"""The interface of trace sinks, which write traces; a trace mode selects one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

from tritonpy.api.options import NoOptions, Options
from tritonpy.types.trace import Trace, TraceFamily


class TraceSink(ABC):
    """Takes the traces of requests; a server has one.

    `propagated` and `begun` run in the request's thread, possibly on the event loop: be fast and
    never block. The other methods are called one at a time on a separate thread. Exceptions are
    logged: the trace is lost, and the request continues.
    """

    Options: ClassVar[type[Options]] = NoOptions
    takes_tensors: ClassVar[bool] = True  # False: the level TENSORS records nothing
    # lower-case names of the headers (gRPC: metadata) that `propagated` reads
    headers: ClassVar[tuple[str, ...]] = ()

    def __init__(self, options: Any) -> None:
        self.options = options

    def missing(self) -> str:
        """Return what is missing in the options, in a few words (optional); tracing is then off."""
        return ""

    def public_options(self) -> Mapping[str, str]:
        """Return the options that clients may see in the trace settings (optional)."""
        return {}

    def propagated(self, headers: Mapping[str, str]) -> Any:
        """Return the trace context in the client's headers, or None (optional).

        A request with a trace context is traced regardless of the rate.
        """
        return None

    def begun(self, trace: Trace) -> None:
        """Handle that a model takes the request (optional); the sink may set `trace.context`."""

    @abstractmethod
    def take(self, family: TraceFamily) -> None:
        """Store traces that ended together."""

    def settled(self, rule: Any) -> None:
        """Handle that no further trace of `rule` will come (optional)."""

    def close(self) -> None:
        """Write the stored traces, then release all resources (optional)."""
