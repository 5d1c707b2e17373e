"""The interface of a trace mode: where traces go."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

from tritonpy.api.options import NoOptions, Options
from tritonpy.types.trace import Trace, TraceFamily


class TraceSink(ABC):
    """Takes the traces of requests; a server has one.

    `propagated` and `begun` run where the request is, maybe on the event loop: be quick, never block. The other methods are called one at a time
    on a thread of their own. What raises is logged; it costs a trace, never a request.
    """

    Options: ClassVar[type[Options]] = NoOptions
    takes_tensors: ClassVar[bool] = True  # False: the level TENSORS notes nothing
    headers: ClassVar[tuple[str, ...]] = ()  # lower-case names of the headers (gRPC: metadata) that `propagated` reads

    def __init__(self, options: Any) -> None:
        self.options = options

    def missing(self) -> str:
        """Return what the options lack, in a few words: without it nothing is traced (optional)."""
        return ""

    def shown(self) -> Mapping[str, str]:
        """Return the options that clients may see in the trace settings (optional)."""
        return {}

    def propagated(self, headers: Mapping[str, str]) -> Any:
        """Return the trace that the client's headers continue, None where there is none; such a request is traced whatever the rate (optional)."""
        return None

    def begun(self, trace: Trace) -> None:
        """A model takes the request; the sink may set `trace.context` (optional)."""

    @abstractmethod
    def take(self, family: TraceFamily) -> None:
        """Keep traces that have ended, together."""

    def settled(self, rule: Any) -> None:
        """No further trace of that rule will come (optional)."""

    def close(self) -> None:
        """Write what is kept, then free everything (optional)."""
