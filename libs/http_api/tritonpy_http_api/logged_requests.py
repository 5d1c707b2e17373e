"""The log line of a finished request.

It never contains queries, headers or bodies, which may be secret.
"""

from __future__ import annotations

import logging
from typing import Any
from urllib.parse import quote

from tritonpy_http_api.access import ROUTES

_MAX_CHARACTERS = 500  # characters of a path or a model name
_NO_RESPONSE = "no response"


async def serve_and_log(
    application: Any, log: logging.Logger, scope: Any, receive: Any, send: Any
) -> None:
    """Run `application` and log the request when it has ended."""
    status: object = _NO_RESPONSE

    async def send_and_record(message: Any) -> None:
        nonlocal status
        if message["type"] == "http.response.start":
            status = message["status"]
        await send(message)

    try:
        await application(scope, receive, send_and_record)
    finally:
        _log_request(
            log, scope["method"], scope["raw_path"].decode("latin-1"), _model(scope["path"]), status
        )


def log_infer(log: logging.Logger, target: tuple[str, str], status: int) -> None:
    """Log an inference call of a model and a version, "" for none."""
    model, version = target
    versioned = f"/versions/{version}" if version else ""
    _log_request(
        log,
        "POST",
        f"/v2/models/{quote(model, safe='', errors='surrogatepass')}{versioned}/infer",
        model,
        status,
    )


def _log_request(log: logging.Logger, method: str, path: str, model: str, status: object) -> None:
    fields = {"model": model[:_MAX_CHARACTERS]} if model else {}
    log.debug("%s %s: %s", method, path[:_MAX_CHARACTERS], status, extra=fields)


def _model(path: str) -> str:
    match = next((found for pattern, _, _ in ROUTES if (found := pattern.fullmatch(path))), None)
    return "" if match is None else match.groupdict().get("model", "")
