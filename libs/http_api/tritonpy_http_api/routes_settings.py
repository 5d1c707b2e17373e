"""The routes of trace and log settings, as Litestar handlers."""

from __future__ import annotations

from typing import Any

from litestar import Request, get, post
from litestar.params import FromPath

from tritonpy import Engine
from tritonpy.frontend import MODEL_CALLS
from tritonpy.tracing import TraceChanges
from tritonpy_http_api import json_document as document
from tritonpy_http_api import settings_json as settings
from tritonpy_http_api.generate.body import BodyReader

_SERVER_PATH = "/v2/trace/setting"
_MODEL_PATH = "/v2/models/{model:str}/trace/setting"


def settings_handlers(engine: Engine, bodies: BodyReader) -> list[Any]:
    """Return the route handlers."""
    return [*_tracing(engine, bodies), *_logging(engine, bodies)]


def _tracing(engine: Engine, bodies: BodyReader) -> list[Any]:
    def apply_changes(changes: TraceChanges, model: str) -> dict[str, Any]:
        engine.change_trace_settings(changes, model)
        return settings.trace_document(engine.trace_settings(model))

    @get([_SERVER_PATH, _MODEL_PATH])
    async def trace_settings(model: FromPath[str] = "") -> dict[str, Any]:
        """Return the trace settings of a model, or the global ones."""
        return settings.trace_document(await MODEL_CALLS.run(engine.trace_settings, model))

    @post([_SERVER_PATH, _MODEL_PATH], status_code=200)
    async def change_trace_settings(
        request: Request[Any, Any, Any], model: FromPath[str] = ""
    ) -> dict[str, Any]:
        """Change trace settings. null clears a setting."""
        if model:  # an unknown model takes precedence over errors in the body
            await MODEL_CALLS.run(engine.trace_settings, model)
        changes = settings.read_trace_changes(
            document.parse(await bodies.management_body(request.scope, request.receive))
        )
        return await MODEL_CALLS.run(apply_changes, changes, model)

    return [trace_settings, change_trace_settings]


def _logging(engine: Engine, bodies: BodyReader) -> list[Any]:
    @get("/v2/logging", sync_to_thread=False)
    def log_settings() -> dict[str, Any]:
        """Return the log settings."""
        return settings.log_document(engine.log_settings())

    @post("/v2/logging", status_code=200)
    async def change_log_settings(request: Request[Any, Any, Any]) -> dict[str, Any]:
        """Change the log settings."""
        for changes in settings.read_log_changes(
            document.parse(await bodies.management_body(request.scope, request.receive))
        ):
            engine.change_log_settings(changes)
        return settings.log_document(engine.log_settings())

    return [log_settings, change_log_settings]
