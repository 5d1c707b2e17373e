"""The HTTP service of one frontend, independent of the transport."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Any

from tritonpy import Engine
from tritonpy.frontend import FlowControl, FrontendContext, HttpMounts
from tritonpy_http_api.generate.body import BodyReader
from tritonpy_http_api.infer_calls import InferCalls
from tritonpy_http_api.options import HttpApiOptions
from tritonpy_http_api.request_log import LoggedApplication
from tritonpy_http_api.root_application import RootApplication

if TYPE_CHECKING:
    from tritonpy_http_api.access import HttpAccess
    from tritonpy_load_reports import LoadReport


class HttpService:
    """Serves the calls of one frontend on the running event loop.

    `calls` handles inference calls; `application`, an ASGI application, handles all other requests
    on Triton's paths. `bodies` reads the bodies of management calls.
    `access` is set if calls need authorization. The application applies it itself. The code that
    starts an inference call passes in the `CallContext` that `access` returned.
    """

    def __init__(self, engine: Engine, options: HttpApiOptions, context: FrontendContext) -> None:
        loop, log, limit = asyncio.get_running_loop(), context.log, options.max_input_size
        self.access = _access(engine, options, context)
        forward_unknown = options.generate_unknown_parameters == "forward"
        make_flow_control = partial(
            FlowControl, options.max_waiting_answers, options.max_waiting_bytes
        )
        bodies = BodyReader(limit, options.max_body_bytes, context.memory)
        self.calls = InferCalls(
            engine, loop, log, limit, context.tracer, options.max_body_bytes, context.memory
        )
        if options.load_reports.always:
            from tritonpy_load_reports import LoadReporter

            reporter = LoadReporter(engine, log, self._on_load)
            self.calls.report_load(reporter.note_response)
        self._root = RootApplication(
            engine, self.calls, log, bodies, make_flow_control, forward_unknown
        )
        self.bodies = bodies
        self.mounts = context.http_mounts
        self._log = log
        self.application: Any = self._root
        if self.access is not None:
            from tritonpy_http_api.guarded_application import GuardedApplication

            self.application = GuardedApplication(self._root, self.access)

    def serve_with(self, dialect: Any = None) -> Any:
        """Return the ASGI application of the port: `dialect`, or Triton's paths and the mounts."""
        if dialect is not None:
            return LoggedApplication(dialect, self._log)
        self.mounts.is_served = True
        return LoggedApplication(_MountedApplications(self.application, self.mounts), self._log)

    def _on_load(self, report: LoadReport) -> None:
        self.calls.set_load(report.http_value())

    def import_routes(self) -> None:
        """Start to import the management routes. The server is ready without them."""
        self._root.import_routes()


class _MountedApplications:
    """An ASGI application that passes calls to those of other frontends, or to its own.

    Mounted applications authorize their calls themselves.
    """

    def __init__(self, own: Any, mounts: HttpMounts) -> None:
        self._own = own
        self._mounts = mounts

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        application = self._mounts.find(scope["path"]) or self._own
        await application(scope, receive, send)


def _access(engine: Engine, options: HttpApiOptions, context: FrontendContext) -> HttpAccess | None:
    authorizer, kept_headers = context.authorizer, context.kept_headers
    if not (
        options.restricted_apis or options.header_forward_pattern or authorizer or kept_headers
    ):
        return None
    from tritonpy_http_api.access import HttpAccess

    count_denial = None
    if options.restricted_apis:
        from tritonpy.auth import RestrictionDenials

        count_denial = RestrictionDenials(context.metrics, "http", context.log).note
    pattern = options.header_forward_pattern
    return HttpAccess(
        options.restricted_apis,
        pattern,
        authorizer,
        kept_headers,
        count_denial,
        engine.operations(),
    )
