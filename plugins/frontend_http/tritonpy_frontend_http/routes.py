"""The management routes; their OpenAPI description is at `/schema`."""

from __future__ import annotations

import binascii
import logging
import re
from base64 import b64decode
from typing import Any

import msgspec

from tritonpy import (
    LOAD_CALLS,
    MODEL_CALLS,
    Engine,
    Internal,
    InvalidArgument,
    ModelIndex,
    ModelMetadata,
    ModelStatistics,
    ServerMetadata,
    TritonError,
    Unsupported,
    config_to_dict,
    named_versions,
)
from tritonpy_frontend_http import json_document as document
from tritonpy_frontend_http.errors import error_body, status_of
from tritonpy_frontend_http.generate.body import BodyReader
from tritonpy_frontend_http.infer_calls import model_version
from tritonpy_frontend_http.router import PLAIN, ManagementApp, Reply, Request, Route, routes
from tritonpy_frontend_http.routes_operations import operation_routes
from tritonpy_frontend_http.routes_settings import settings_routes
from tritonpy_frontend_http.routes_shared_memory import SharedMemoryRoutes


class Statistics(msgspec.Struct):
    """The body of the statistics routes."""

    model_stats: list[ModelStatistics]


def management_app(engine: Engine, log: logging.Logger, bodies: BodyReader) -> ManagementApp:
    """Return the ASGI application of the routes, whose bodies `bodies` reads."""
    found = [
        *_readiness(engine),
        *_metadata(engine),
        *_statistics(engine),
        *_repository(engine),
        *settings_routes(engine),
        *SharedMemoryRoutes(engine).routes(),
        *operation_routes(engine),
    ]
    return ManagementApp(found, log, bodies)


# What may take long runs in a thread, the rest answers from memory.


_NESTED_READY = re.compile(rb'\s*\{\s*"ready"\s*:\s*[\[{]')


def _repository(engine: Engine) -> list[Route]:
    async def content(request: Request, *, files: bool = False) -> Any:
        found = await request.json(files=files)
        return {} if found is None else found

    async def repository_index(request: Request) -> list[ModelIndex]:
        """List the models of the repositories; the body `{"ready": true}` asks for those that are ready."""
        body = await request.body()
        try:
            found = document.parse(body) if body else {}
        except InvalidArgument:  # nested too deeply: still no boolean
            if not _NESTED_READY.match(body):
                raise
            found = {"ready": None}
        ready = found["ready"] if document.has(found, "ready") else False
        if not isinstance(ready, bool):
            raise InvalidArgument("Invalid value for 'ready': expected a boolean")
        return list(engine.repository_index(ready))

    async def load_model(request: Request) -> Reply:
        """Load or reload a model, or some `versions`; `parameters` may hold its configuration and files in base64."""
        _refuse_repository(request.parameters.get("repository", ""))
        asked = _load_parameters(await content(request, files=True))
        await LOAD_CALLS.run(engine.load_model, request.parameters["model"], *asked)
        return Reply()

    async def unload_model(request: Request) -> Reply:
        """Start to unload a model, or some `versions`; `parameters` may ask to unload its dependents too."""
        _refuse_repository(request.parameters.get("repository", ""))
        body = await content(request)
        model, dependents = request.parameters["model"], _unload_dependents(body)
        await MODEL_CALLS.run(engine.unload_model, model, dependents, _unload_versions(body))
        return Reply()

    index = ["/v2/repository/index", "/v2/repository/{repository}/index"]
    return [
        *routes("POST", index, repository_index, list[ModelIndex]),
        *routes("POST", _both("load"), load_model),
        *routes("POST", _both("unload"), unload_model),
    ]


def _both(action: str) -> list[str]:
    return [f"/v2/repository/models/{{model}}/{action}", f"/v2/repository/{{repository}}/models/{{model}}/{action}"]


def _versioned(rest: str) -> list[str]:
    return [f"/v2/models/{{model}}{rest}", f"/v2/models/{{model}}/versions/{{version}}{rest}"]


def _named(request: Request) -> tuple[str, int]:
    return request.parameters["model"], model_version(request.parameters.get("version", ""))


def _readiness(engine: Engine) -> list[Route]:
    async def model_ready(request: Request) -> Reply:
        """Say whether a model serves: 200 without a body, or 400."""
        if not await MODEL_CALLS.run(engine.is_model_ready, *_named(request)):
            raise InvalidArgument("Model version not ready")
        return Reply(content_type=PLAIN)

    return routes("GET", _versioned("/ready"), model_ready, on_error=_on_unreadiness)


def _metadata(engine: Engine) -> list[Route]:
    async def server_metadata(_request: Request) -> ServerMetadata:
        """Describe the server."""
        return engine.server_metadata()

    async def model_metadata(request: Request) -> ModelMetadata:
        """Describe a model."""
        return engine.model_metadata(*_named(request))

    async def model_config(request: Request) -> dict[str, Any]:
        """Return a model's whole configuration."""
        return config_to_dict(engine.model_config(*_named(request)))

    return [
        *routes("GET", ["/v2"], server_metadata, ServerMetadata),
        *routes("GET", _versioned(""), model_metadata, ModelMetadata),
        *routes("GET", _versioned("/config"), model_config, dict[str, Any]),
    ]


def _statistics(engine: Engine) -> list[Route]:
    async def all_statistics(_request: Request) -> Statistics:
        """Return the statistics of every model."""
        return Statistics(list(engine.statistics()))

    async def model_statistics(request: Request) -> Statistics:
        """Return the statistics of a model."""
        return Statistics(list(engine.statistics(*_named(request))))

    return [
        *routes("GET", ["/v2/models/stats"], all_statistics, Statistics),
        *routes("GET", _versioned("/stats"), model_statistics, Statistics),
    ]


def _refuse_repository(name: str) -> None:
    if name:
        raise Unsupported("'repository_name' specification is not supported")


def _load_parameters(body: Any) -> tuple[str | None, dict[str, bytes] | None, list[int]]:
    if not document.has(body, "parameters"):
        return None, None, []
    parameters = body["parameters"]
    if not isinstance(parameters, dict):
        raise Internal("attempt to get members for non-object")
    config: str | None = None
    files: dict[str, bytes] = {}
    versions: list[int] = []
    for key, value in parameters.items():
        text = document.as_string(value)
        if key == "config":
            config = text
        elif key.startswith("file:"):
            files[key] = _decoded(key, text)
        elif key == "versions":
            versions = named_versions(text)
        else:
            raise Internal("unexpected error on creating Triton parameter")
    return config, files or None, versions


def _decoded(key: str, text: str) -> bytes:
    try:
        return b64decode("".join(text.split()), validate=True)
    except (binascii.Error, ValueError) as error:
        raise InvalidArgument(f"the content of '{key}' is not valid base64: {error}") from None


def _unload_dependents(body: Any) -> bool:
    parameters = document.find(body, "parameters")
    if not document.has(parameters, "unload_dependents"):
        return False
    try:
        return document.as_bool(parameters["unload_dependents"])
    except Internal as error:
        raise document.prefixed("Unable to parse 'unload_dependents'", error) from None


def _unload_versions(body: Any) -> list[int]:
    parameters = document.find(body, "parameters")
    if not document.has(parameters, "versions"):
        return []
    return named_versions(document.as_string(parameters["versions"]))


def _on_unreadiness(error: TritonError) -> Reply:
    # JSON, but not called so: Triton's own words
    return Reply(error_body(error.message), status_of(error), PLAIN)
