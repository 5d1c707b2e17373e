"""What answers HTTP calls, whatever brings them: each transport is a thin shell over this."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Any

from tritonpy import Engine, FrontendContext, Room
from tritonpy_frontend_http.front_door import FrontDoor
from tritonpy_frontend_http.generate.body import BodyReader
from tritonpy_frontend_http.infer_calls import InferCalls
from tritonpy_frontend_http.options import HttpOptions
from tritonpy_frontend_http.telling import TellingDoor

if TYPE_CHECKING:
    from tritonpy_frontend_http.access import HttpAccess


class Composition:
    """The parts that serve one frontend's calls on the running event loop.

    `calls` takes inference calls, the ASGI application `application` every other request. Where calls must be admitted there is an `access`:
    the application asks it by itself, and who begins an inference call gives it the visit that `access` made of its head.
    """

    def __init__(self, engine: Engine, options: HttpOptions, context: FrontendContext) -> None:
        loop, log, limit = asyncio.get_running_loop(), context.log, options.max_input_size
        self.access = _access(engine, options, context)
        forwards_unknown = options.generate_unknown_parameters == "forward"
        make_room = partial(Room, options.max_waiting_answers, options.max_waiting_bytes)
        bodies = BodyReader(limit, options.max_body_bytes, context.memory)
        if self.access is None:
            self.calls = InferCalls(engine, loop, log, limit, context.tracer, options.max_body_bytes, context.memory)
            self._door = FrontDoor(engine, self.calls, log, bodies, make_room, forwards_unknown)
            door: Any = self._door
        else:
            from tritonpy_frontend_http.guarded import GuardedCalls, GuardedDoor

            self.calls = GuardedCalls(engine, loop, log, limit, context.tracer, options.max_body_bytes, context.memory)
            self._door = FrontDoor(engine, self.calls, log, bodies, make_room, forwards_unknown)
            door = GuardedDoor(self._door, self.access)
        self.application = TellingDoor(door, log)

    def import_routes(self) -> None:
        """Begin to import the management routes, which readiness need not wait for."""
        self._door.import_routes()


def _access(engine: Engine, options: HttpOptions, context: FrontendContext) -> HttpAccess | None:
    gatekeeper, kept_headers = context.gatekeeper, context.kept_headers
    if not (options.restricted_apis or options.header_forward_pattern or gatekeeper or kept_headers):
        return None
    from tritonpy_frontend_http.access import HttpAccess

    note = None
    if options.restricted_apis:
        from tritonpy import Refusals

        note = Refusals(context.metrics, "http", context.log).note
    pattern = options.header_forward_pattern
    return HttpAccess(options.restricted_apis, pattern, gatekeeper, kept_headers, note, engine.operations())
