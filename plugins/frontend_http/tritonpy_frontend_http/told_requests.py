"""One verbose line for a request that is over. Queries, headers and bodies are in none: they may hold secrets."""

from __future__ import annotations

import logging
from typing import Any
from urllib.parse import quote

from tritonpy_frontend_http.access import ROUTES

_LONGEST = 500  # characters of a path, or of a name
_LEFT = "no answer"


async def answer_and_tell(door: Any, log: logging.Logger, scope: Any, receive: Any, send: Any) -> None:
    """Let `door` answer, and tell of it when it is over: of a stream, when that has ended."""
    status: object = _LEFT

    async def note_and_send(message: Any) -> None:
        nonlocal status
        if message["type"] == "http.response.start":
            status = message["status"]
        await send(message)

    try:
        await door(scope, receive, note_and_send)
    finally:
        _tell(log, scope["method"], scope["raw_path"].decode("latin-1"), _model(scope["path"]), status)


def tell_infer(log: logging.Logger, target: tuple[str, str], status: int) -> None:
    """Tell of an inference call of a model and a version, "" for none."""
    model, version = target
    versioned = f"/versions/{version}" if version else ""
    _tell(log, "POST", f"/v2/models/{quote(model, safe='', errors='surrogatepass')}{versioned}/infer", model, status)


def _tell(log: logging.Logger, method: str, path: str, model: str, status: object) -> None:
    fields = {"model": model[:_LONGEST]} if model else {}
    log.debug("%s %s: %s", method, path[:_LONGEST], status, extra=fields)


def _model(path: str) -> str:
    match = next((found for pattern, _, _ in ROUTES if (found := pattern.fullmatch(path))), None)
    return "" if match is None else match.groupdict().get("model", "")
