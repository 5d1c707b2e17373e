"""The routes of the management operations that the server offers."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from tritonpy import MODEL_CALLS, Engine, Internal, InvalidArgument, Operation, OperationCall
from tritonpy_frontend_http.router import Reply, Request, Route

_REVISION = re.compile(r'"?([0-9]{1,18})"?')


def operation_routes(engine: Engine) -> list[Route]:
    """Return the routes of what `engine` offers."""
    return [_route(engine, operation) for operation in engine.operations()]


def _route(engine: Engine, operation: Operation) -> Route:
    async def answer(request: Request) -> Reply:
        try:
            content = await request.json()
        except Internal as error:  # what Triton calls broken JSON is for its own calls
            raise InvalidArgument(error.message) from None
        call = OperationCall(dict(request.parameters), content, _revision(request.header("if-match")))
        answered = await MODEL_CALLS.run(engine.operate, operation.name, call)
        return Reply(msgspec.json.encode(answered), headers=_tag(answered))

    path = f"/v2/{operation.path}"
    return Route(operation.method, path, answer, dict[str, Any], summary=operation.summary, tag="operations")


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
