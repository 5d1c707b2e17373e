"""The interface by which frontends find out whether to trace a request."""

from __future__ import annotations

from collections.abc import Mapping

from tritonpy.types.trace import Trace


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
