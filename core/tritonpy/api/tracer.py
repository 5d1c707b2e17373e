"""What a frontend asks whether a request is traced."""

from __future__ import annotations

from collections.abc import Mapping

from tritonpy.types.trace import Trace


class Tracer:
    """Chooses requests; this one none.

    A frontend looks at `active` first, which is all that an untraced server costs. Then it calls `sample` for a request of a client, puts the trace
    into `InferRequest.trace` before `Engine.infer`, and ends it when the last answer was sent.
    """

    active: bool = False
    headers: tuple[str, ...] = ()
    """Lower-case names of the headers that `sample` reads."""

    def sample(self, model_name: str, headers: Mapping[str, str]) -> Trace | None:
        """Return the trace of a request that begins now, None where it is not traced; any thread may ask."""
        return None
