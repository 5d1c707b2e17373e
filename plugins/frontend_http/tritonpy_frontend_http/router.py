"""The management application: which handler answers a request, and the OpenAPI description of all of them."""

from __future__ import annotations

import inspect
import logging
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import msgspec

from tritonpy import TritonError, __version__, incident
from tritonpy_frontend_http import json_document as document
from tritonpy_frontend_http.body_size import announced_size
from tritonpy_frontend_http.errors import error_body, retry_headers, status_of
from tritonpy_frontend_http.generate.body import BodyReader

JSON, PLAIN = "application/json", "text/plain"
DESCRIPTION_PATHS = ("/schema", "/schema/openapi.json")
_PARAMETER = re.compile(r"\{([a-z_]+)\}")
_COMPONENTS = "#/components/schemas/{name}"


class Reply(NamedTuple):
    """An answer as it is sent."""

    body: bytes = b""
    status: int = 200
    content_type: str = JSON
    headers: Mapping[str, str] = {}


class Request:
    """One management request; `parameters` are those of its path, unescaped."""

    def __init__(
        self, scope: Mapping[str, Any], receive: Any, parameters: Mapping[str, str], bodies: BodyReader | None = None
    ) -> None:
        self.scope = scope
        self._bodies = bodies or BodyReader()
        self._memory = self._bodies.reservation()  # as long as the request is worked on
        self.parameters = parameters
        self._receive = receive

    def header(self, name: str) -> str:
        """Return the value of a header, whose name is given in lower case; "" without it."""
        wanted = name.encode("latin-1")
        return next((value.decode("latin-1") for key, value in self.scope["headers"] if key == wanted), "")

    async def body(self, *, files: bool = False) -> bytes:
        """Return the whole body, which is small unless it may hold `files`. Raises TritonError for one that is too large, which is not kept."""
        size = announced_size(dict(self.scope["headers"]))
        return await self._bodies.management_body(self._receive, size, self._memory, files=files)

    async def json(self, *, files: bool = False) -> Any:
        """Return the body as plain JSON; None where there is none."""
        body = await self.body(files=files)
        return document.parse(body) if body else None


Handler = Callable[[Request], Awaitable[Any]]
"""Answers with a `Reply`, or with data that is sent as JSON."""


@dataclass(frozen=True, slots=True)
class Route:
    """One path of a handler. `path` has its parameters in braces; `returns` is the type of the data that it answers with."""

    method: str
    path: str
    handler: Handler
    returns: Any = None
    summary: str = ""
    tag: str = ""
    on_error: Callable[[TritonError], Reply] | None = None

    def pattern(self) -> re.Pattern[str]:
        """Return what a path must match; a parameter is never empty and has no slash."""
        texts = _PARAMETER.split(self.path)
        parts = [f"(?P<{text}>[^/]+)" if number % 2 else re.escape(text) for number, text in enumerate(texts)]
        return re.compile("".join(parts), re.DOTALL)


def routes(method: str, paths: Sequence[str], handler: Handler, returns: Any = None, **more: Any) -> list[Route]:
    """Return the routes of one handler, whose docstring describes it."""
    return [Route(method, path, handler, returns, **more) for path in paths]


def on_triton_error(error: TritonError) -> Reply:
    """Return an error as JSON."""
    headers = {name.decode(): value.decode() for name, value in retry_headers(error)}
    return Reply(error_body(error.message), status_of(error), headers=headers)


class ManagementApp:
    """The ASGI application of `routes`, whose bodies `bodies` reads. Paths without parameters win over others."""

    def __init__(self, found: Iterable[Route], log: logging.Logger, bodies: BodyReader | None = None) -> None:
        self._bodies = bodies or BodyReader()
        self.routes = sorted(found, key=lambda route: route.path.count("{"))
        self._patterns = [(route.pattern(), route) for route in self.routes]
        self._log = log
        self._description = b""

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        reply = await self._reply(scope, receive)
        headers = {"content-type": reply.content_type, "content-length": str(len(reply.body)), **reply.headers}
        raw = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()]
        await send({"type": "http.response.start", "status": reply.status, "headers": raw})
        await send({"type": "http.response.body", "body": reply.body})

    async def _reply(self, scope: Any, receive: Any) -> Reply:
        path, method = scope["path"], scope["method"]
        if path in DESCRIPTION_PATHS and method == "GET":
            self._description = self._description or msgspec.json.encode(describe(self.routes))
            return Reply(self._description)
        matching = [(match, route) for pattern, route in self._patterns if (match := pattern.fullmatch(path))]
        readiness = path.endswith("/ready")
        wanted = "GET" if method == "HEAD" and readiness else method  # the transport leaves the body out
        for match, route in matching:
            if route.method == wanted:
                return await self._answer(route, Request(scope, receive, match.groupdict(), self._bodies))
        if matching or path in DESCRIPTION_PATHS:
            allowed = {route.method for _, route in matching} or {"GET"}
            allow = ", ".join(sorted(allowed | {"HEAD"} if readiness else allowed))
            return Reply(error_body("Method Not Allowed"), 405, PLAIN if readiness else JSON, {"allow": allow})
        return Reply(error_body("Not Found"), 404, PLAIN)

    async def _answer(self, route: Route, request: Request) -> Reply:
        try:
            answer = await route.handler(request)
        except TritonError as error:
            return (route.on_error or on_triton_error)(error)
        except Exception as error:
            return on_triton_error(incident(self._log, request.scope["path"], error))
        return answer if isinstance(answer, Reply) else Reply(msgspec.json.encode(answer))


def describe(found: Sequence[Route]) -> dict[str, Any]:
    """Return the OpenAPI document of the routes."""
    types = [route.returns for route in found if route.returns is not None]
    schemas, components = msgspec.json.schema_components(types, ref_template=_COMPONENTS)
    schema_of = iter(schemas)
    paths: dict[str, dict[str, Any]] = {}
    for route in found:
        text = inspect.getdoc(route.handler) or ""
        answered: dict[str, Any] = {"description": "the answer"}
        if route.returns is not None:
            answered["content"] = {JSON: {"schema": next(schema_of)}}
        operation = {
            "operationId": "_".join([route.method.lower(), *re.findall(r"\w+", route.path.replace("{", "by_"))]),
            "summary": route.summary or text.partition("\n")[0],
            "parameters": [
                {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
                for name in _PARAMETER.findall(route.path)
            ],
            "responses": {"200": answered},
        }
        if route.tag:
            operation["tags"] = [route.tag]
        paths.setdefault(route.path, {})[route.method.lower()] = operation
    return {
        "openapi": "3.1.0",
        "info": {"title": "tritonpy", "version": __version__},
        "paths": paths,
        "components": {"schemas": components},
    }
