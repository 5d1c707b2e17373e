"""The interface of trace sinks, which write traces; a trace mode selects one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

import msgspec
from msgspec import UNSET, UnsetType

from tritonpy_config.options import NoOptions, Options
from tritonpy_types.trace import Trace, TraceFamily


class TraceSettings(msgspec.Struct, frozen=True):
    """The trace settings of a model, or of the models without own settings.

    `level` is empty if tracing is off. `count` is the number of remaining traces, -1 for no limit.
    Only the mode "triton" uses `log_frequency` and `file`. `options` are the other options of the
    mode, as text.
    """

    level: list[str]
    rate: int
    count: int
    log_frequency: int
    file: str
    mode: str
    options: dict[str, str]


class TraceChanges(msgspec.Struct, frozen=True):
    """New trace settings; None removes a value (the wider setting applies), UNSET keeps it."""

    level: list[str] | UnsetType | None = UNSET
    rate: int | UnsetType | None = UNSET
    count: int | UnsetType | None = UNSET
    log_frequency: int | UnsetType | None = UNSET


class Tracer:
    """Selects the requests to trace; this class selects none.

    A frontend checks `active` first; a server without tracing pays only for that. It then calls
    `sample` for each client request and stores the trace in `InferRequest.trace` before
    `Engine.infer`. It ends the trace after the last response was sent.
    """

    active: bool = False
    headers: tuple[str, ...] = ()
    """Lower-case names of the headers that `sample` reads."""

    def sample(self, model_name: str, headers: Mapping[str, str]) -> Trace | None:
        """Return the trace of a request that begins now, or None; any thread may call it."""
        return None


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
