"""The routes of trace and log settings."""

from __future__ import annotations

from typing import Any

from tritonpy import MODEL_CALLS, Engine, TraceChanges
from tritonpy_frontend_http import json_document as document
from tritonpy_frontend_http import settings_json as settings
from tritonpy_frontend_http.router import Request, Route, routes

_OF_SERVER = "/v2/trace/setting"
_OF_MODEL = "/v2/models/{model}/trace/setting"


def settings_routes(engine: Engine) -> list[Route]:
    """Return the routes."""
    return [*_tracing(engine), *_logging(engine)]


async def _document(request: Request) -> Any:
    return document.parse(await request.body())


def _tracing(engine: Engine) -> list[Route]:
    def changed(changes: TraceChanges, model: str) -> dict[str, Any]:
        engine.change_trace_settings(changes, model)
        return settings.trace_document(engine.trace_settings(model))

    async def trace_settings(request: Request) -> dict[str, Any]:
        """Return which requests are traced, of one model or of those without settings of their own."""
        model = request.parameters.get("model", "")
        return settings.trace_document(await MODEL_CALLS.run(engine.trace_settings, model))

    async def change_trace_settings(request: Request) -> dict[str, Any]:
        """Trace other requests from now on; null clears a setting."""
        model = request.parameters.get("model", "")
        if model:  # an unknown one is refused before what is wrong with the body
            await MODEL_CALLS.run(engine.trace_settings, model)
        changes = settings.read_trace_changes(await _document(request))
        return await MODEL_CALLS.run(changed, changes, model)

    return [
        *routes("GET", [_OF_SERVER, _OF_MODEL], trace_settings, dict[str, Any]),
        *routes("POST", [_OF_SERVER, _OF_MODEL], change_trace_settings, dict[str, Any]),
    ]


def _logging(engine: Engine) -> list[Route]:
    async def log_settings(_request: Request) -> dict[str, Any]:
        """Return what the server logs and how."""
        return settings.log_document(engine.log_settings())

    async def change_log_settings(request: Request) -> dict[str, Any]:
        """Log otherwise from now on."""
        for changes in settings.read_log_changes(await _document(request)):
            engine.change_log_settings(changes)
        return settings.log_document(engine.log_settings())

    return [
        *routes("GET", ["/v2/logging"], log_settings, dict[str, Any]),
        *routes("POST", ["/v2/logging"], change_log_settings, dict[str, Any]),
    ]
