"""The management routes as Litestar handlers. Their OpenAPI description is at `/schema`."""

from __future__ import annotations

import binascii
import logging
import re
from base64 import b64decode
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import msgspec
from litestar import Litestar, MediaType, Request, Response, get, post
from litestar.exceptions import HTTPException
from litestar.openapi import OpenAPIConfig
from litestar.params import FromPath
from litestar.types import Method

from tritonpy import Engine, Internal, InvalidArgument, TritonError, Unsupported, __version__
from tritonpy.config import config_to_dict
from tritonpy.frontend import LOAD_CALLS, MODEL_CALLS, ModelMetadata, ServerMetadata, internal_error
from tritonpy.metrics import ModelStatistics
from tritonpy.repository import ModelIndex, named_versions
from tritonpy_http_api import json_document as document
from tritonpy_http_api.errors import error_body, retry_headers, status_of
from tritonpy_http_api.generate.body import BodyReader
from tritonpy_http_api.infer_calls import model_version
from tritonpy_http_api.routes_operations import operation_handlers
from tritonpy_http_api.routes_settings import settings_handlers
from tritonpy_http_api.routes_shared_memory import SharedMemoryRoutes

_PLAIN = {"content-type": "text/plain"}
_NESTED_READY = re.compile(rb'\s*\{\s*"ready"\s*:\s*[\[{]')
_DONE = Response("", status_code=200, media_type="application/json")


class Statistics(msgspec.Struct):
    """The body of the statistics routes."""

    model_stats: list[ModelStatistics]


class Routes:
    """The route handlers of one engine. Slow operations run in threads."""

    def __init__(self, engine: Engine, bodies: BodyReader) -> None:
        self._engine = engine
        self._bodies = bodies

    def handlers(self) -> list[Any]:
        """Return the route handlers for a Litestar application."""
        return [
            *_readiness(self._engine),
            *_metadata(self._engine),
            *_statistics(self._engine),
            *self._repository(),
            *settings_handlers(self._engine, self._bodies),
            *SharedMemoryRoutes(self._engine, self._bodies).handlers(),
            *operation_handlers(self._engine, self._bodies),
        ]

    def _repository(self) -> list[Any]:
        engine = self._engine

        @post(_INDEX_PATHS, status_code=200)
        async def repository_index(request: Request[Any, Any, Any]) -> list[ModelIndex]:
            """List the models of the repositories.

            With the body `{"ready": true}`, list only ready models.
            """
            body = await self._bodies.management_body(request.scope, request.receive)
            try:
                found = document.parse(body) if body else {}
            except InvalidArgument:  # nested too deeply, so not a boolean either
                if not _NESTED_READY.match(body):
                    raise
                found = {"ready": None}
            ready = found["ready"] if document.has(found, "ready") else False
            if not isinstance(ready, bool):
                raise InvalidArgument("Invalid value for 'ready': expected a boolean")
            return list(engine.repository_index(ready))

        @post(_repository_paths("load"), status_code=200)
        async def load_model(
            request: Request[Any, Any, Any],
            model: FromPath[str] = "",
            repository: FromPath[str] = "",
        ) -> Response[str]:
            """Load or reload a model or some `versions`.

            `parameters` may contain config and base64 files.
            """
            _refuse_repository(repository)
            arguments = _load_parameters(await self._body(request, files=True))
            await LOAD_CALLS.run(engine.load_model, model or _named(request), *arguments)
            return _DONE

        @post(_repository_paths("unload"), status_code=200)
        async def unload_model(
            request: Request[Any, Any, Any],
            model: FromPath[str] = "",
            repository: FromPath[str] = "",
        ) -> Response[str]:
            """Start to unload a model or some `versions`; `unload_dependents`: dependents too."""
            _refuse_repository(repository)
            body = await self._body(request)
            name = model or _named(request)
            await MODEL_CALLS.run(
                engine.unload_model, name, _unload_dependents(body), _unload_versions(body)
            )
            return _DONE

        @post([f"/v2/repository/models/models/{{model:str}}/{each}" for each in _ACTIONS])
        async def refuse_repository() -> None:
            """Refuse to load or unload a model of a repository that is named `models`."""
            _refuse_repository(_MODELS)

        return [repository_index, load_model, unload_model, refuse_repository]

    async def _body(self, request: Request[Any, Any, Any], *, files: bool = False) -> Any:
        body = await self._bodies.management_body(request.scope, request.receive, files=files)
        content = document.parse(body) if body else None
        return {} if content is None else content


# A fixed part of a path has precedence over a name. So names that equal it have paths of their own.
_MODELS, _ACTIONS = "models", ("load", "unload")
_INDEX_PATHS = [
    "/v2/repository/index",
    "/v2/repository/{repository:str}/index",
    "/v2/repository/models/index",
]


def _repository_paths(action: str) -> list[str]:
    return [
        f"/v2/repository/models/{{model:str}}/{action}",
        f"/v2/repository/{{repository:str}}/models/{{model:str}}/{action}",
        f"/v2/repository/models/models/{action}",
        f"/v2/repository/models/index/{action}",
    ]


def _model_paths(rest: str) -> list[str]:
    return [
        f"/v2/models/{{model:str}}{rest}",
        f"/v2/models/{{model:str}}/versions/{{version:str}}{rest}",
    ]


def _readiness(engine: Engine) -> list[Any]:
    @get(_model_paths("/ready"), exception_handlers={TritonError: _on_unreadiness})
    async def model_ready(model: FromPath[str], version: FromPath[str] = "") -> Response[str]:
        """Return 200 without a body if the model is ready, 400 otherwise."""
        if not await MODEL_CALLS.run(engine.is_model_ready, model, model_version(version)):
            raise InvalidArgument("Model version not ready")
        return Response("", status_code=200, headers=_PLAIN)

    return [model_ready]


def _metadata(engine: Engine) -> list[Any]:
    @get("/v2", sync_to_thread=False)
    def server_metadata() -> ServerMetadata:
        """Return the metadata of the server."""
        return engine.server_metadata()

    @get(_model_paths(""), sync_to_thread=False)
    def model_metadata(model: FromPath[str], version: FromPath[str] = "") -> ModelMetadata:
        """Return the metadata of a model."""
        return engine.model_metadata(model, model_version(version))

    @get(_model_paths("/config"), sync_to_thread=False)
    def model_config(model: FromPath[str], version: FromPath[str] = "") -> dict[str, Any]:
        """Return the complete configuration of a model."""
        return config_to_dict(engine.model_config(model, model_version(version)))

    return [server_metadata, model_metadata, model_config]


def _statistics(engine: Engine) -> list[Any]:
    @get("/v2/models/stats", sync_to_thread=False)
    def all_statistics() -> Statistics:
        """Return the statistics of every model."""
        return Statistics(list(engine.statistics()))

    @get(_model_paths("/stats"), sync_to_thread=False)
    def model_statistics(model: FromPath[str], version: FromPath[str] = "") -> Statistics:
        """Return the statistics of a model."""
        return Statistics(list(engine.statistics(model, model_version(version))))

    return [all_statistics, model_statistics]


def _named(request: Request[Any, Any, Any]) -> str:
    """Return the name of the model in a path that has no parameter for it."""
    return str(request.scope["path"]).split("/")[-2]


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
            files[key] = _decode_base64(key, text)
        elif key == "versions":
            versions = named_versions(text)
        else:
            raise Internal("unexpected error on creating Triton parameter")
    return config, files or None, versions


def _decode_base64(key: str, text: str) -> bytes:
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
        raise document.with_prefix("Unable to parse 'unload_dependents'", error) from None


def _unload_versions(body: Any) -> list[int]:
    parameters = document.find(body, "parameters")
    if not document.has(parameters, "versions"):
        return []
    return named_versions(document.as_string(parameters["versions"]))


_METHODS: tuple[Method, ...] = ("GET", "POST", "PUT", "PATCH", "DELETE")
_PHRASES = {404: "Not Found", 405: "Method Not Allowed"}


def _on_triton_error(_request: object, error: TritonError) -> Response[bytes]:
    headers = {name.decode(): value.decode() for name, value in retry_headers(error)}
    return Response(
        error_body(error.message),
        status_code=status_of(error),
        media_type=MediaType.JSON,
        headers=headers,
    )


def _on_unreadiness(_request: object, error: TritonError) -> Response[bytes]:
    # JSON with the content type text/plain, as in Triton
    return Response(error_body(error.message), status_code=status_of(error), headers=_PLAIN)


def _on_http_error(request: Request[Any, Any, Any], error: HTTPException) -> Response[bytes]:
    status, is_readiness = error.status_code, request.url.path.endswith("/ready")
    plain = status == 404 or (status == 405 and is_readiness)
    headers = dict(_PLAIN) if plain else {"content-type": MediaType.JSON.value}
    if status == 405:
        headers["allow"] = ", ".join([*_allowed(request), *(["HEAD"] if is_readiness else [])])
    return Response(
        error_body(_PHRASES.get(status, error.detail)), status_code=status, headers=headers
    )


def _allowed(request: Request[Any, Any, Any]) -> list[str]:
    """Return the methods that the path of `request` allows."""
    found: list[str] = []
    for method in _METHODS:
        with suppress(HTTPException):
            request.app.asgi_router.handle_routing(request.url.path, method)
            found.append(method)
    return found


def _on_unexpected_error(log: logging.Logger) -> Callable[[Any, Exception], Response[bytes]]:
    def handle(request: Any, error: Exception) -> Response[bytes]:
        return _on_triton_error(request, internal_error(log, request.url.path, error))

    return handle


def _operation_id(_handler: object, method: str, path: Sequence[Any]) -> str:
    # Litestar's default gives two paths of one handler the same id.
    parts = [part if isinstance(part, str) else f"by_{part.name}" for part in path]
    return "_".join([method.lower(), *parts])


def management_app(engine: Engine, log: logging.Logger, bodies: BodyReader) -> Litestar:
    """Return the ASGI application of the management routes. `bodies` reads the request bodies."""
    return Litestar(
        Routes(engine, bodies).handlers(),
        openapi_config=OpenAPIConfig("tritonpy", __version__, operation_id_creator=_operation_id),
        exception_handlers={
            TritonError: _on_triton_error,
            HTTPException: _on_http_error,
            Exception: _on_unexpected_error(log),
        },
        request_max_body_size=None,
        logging_config=None,
    )
