"""The routes of the management operations that the server offers, as Litestar handlers."""

from __future__ import annotations

import re
from typing import Any

from litestar import HttpMethod, Request, Response
from litestar.handlers import HTTPRouteHandler

from tritonpy import MODEL_CALLS, Engine, Internal, InvalidArgument, Operation, OperationCall
from tritonpy_frontend_http import json_document as document
from tritonpy_frontend_http.generate.body import BodyReader

_REVISION = re.compile(r'"?([0-9]{1,18})"?')


def operation_handlers(engine: Engine, bodies: BodyReader) -> list[Any]:
    """Return the route handlers of what `engine` offers."""
    return [_handler(engine, operation, bodies) for operation in engine.operations()]


def _handler(engine: Engine, operation: Operation, bodies: BodyReader) -> HTTPRouteHandler:
    async def answer(request: Request[Any, Any, Any]) -> Response[Any]:
        try:
            body = await bodies.management_body(request.scope, request.receive)
            content = document.parse(body) if body else None
        except Internal as error:  # what Triton calls broken JSON is for its own calls
            raise InvalidArgument(error.message) from None
        call = OperationCall(dict(request.path_params), content, _revision(request.headers.get("if-match", "")))
        answered = await MODEL_CALLS.run(engine.operate, operation.name, call)
        return Response(answered, status_code=200, headers=_tag(answered), media_type="application/json")

    route = HTTPRouteHandler(
        "/v2/" + re.sub(r"\{([a-z_]+)\}", r"{\1:str}", operation.path),
        http_method=HttpMethod(operation.method),
        status_code=200,
        name=operation.name,
        summary=operation.summary,
        tags=["operations"],
    )
    return route(answer)


def _revision(text: str) -> int | None:
    if not text:
        return None
    found = _REVISION.fullmatch(text)
    if found is None:
        raise InvalidArgument(f"If-Match must be the ETag of an answer, a number, not '{text}'")
    return int(found[1])


def _tag(answered: Any) -> dict[str, str]:
    revision = answered.get("revision") if isinstance(answered, dict) else None
    return {} if revision is None else {"etag": f'"{revision}"'}
