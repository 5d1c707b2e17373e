"""The routes of management operations as Litestar handlers."""

from __future__ import annotations

import re
from typing import Any

from litestar import HttpMethod, Request, Response
from litestar.handlers import HTTPRouteHandler

from tritonpy import Engine, Internal, InvalidArgument
from tritonpy.frontend import MODEL_CALLS, Operation, OperationCall
from tritonpy_http_api import json_document as document
from tritonpy_http_api.generate.body import BodyReader

_REVISION = re.compile(r'"?([0-9]{1,18})"?')


def operation_handlers(engine: Engine, bodies: BodyReader) -> list[Any]:
    """Return the route handlers for the operations of `engine`."""
    return [_handler(engine, operation, bodies) for operation in engine.operations()]


def _handler(engine: Engine, operation: Operation, bodies: BodyReader) -> HTTPRouteHandler:
    async def handle(request: Request[Any, Any, Any]) -> Response[Any]:
        try:
            body = await bodies.management_body(request.scope, request.receive)
            content = document.parse(body) if body else None
        except Internal as error:  # Triton's code for invalid JSON applies to Triton's calls only
            raise InvalidArgument(error.message) from None
        call = OperationCall(
            dict(request.path_params), content, _revision(request.headers.get("if-match", ""))
        )
        result = await MODEL_CALLS.run(engine.operate, operation.name, call)
        return Response(
            result, status_code=200, headers=_etag(result), media_type="application/json"
        )

    route = HTTPRouteHandler(
        "/v2/" + re.sub(r"\{([a-z_]+)\}", r"{\1:str}", operation.path),
        http_method=HttpMethod(operation.method),
        status_code=200,
        name=operation.name,
        summary=operation.summary,
        tags=["operations"],
    )
    return route(handle)


def _revision(text: str) -> int | None:
    if not text:
        return None
    found = _REVISION.fullmatch(text)
    if found is None:
        raise InvalidArgument(f"If-Match must be the ETag of a response, a number, not '{text}'")
    return int(found[1])


def _etag(result: Any) -> dict[str, str]:
    revision = result.get("revision") if isinstance(result, dict) else None
    return {} if revision is None else {"etag": f'"{revision}"'}
