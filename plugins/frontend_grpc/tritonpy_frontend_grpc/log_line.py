"""The log line of a finished call. It never contains metadata or messages, which may be secret."""

from __future__ import annotations

import logging
from typing import Any

from google.protobuf.message import DecodeError

from tritonpy import TritonError
from tritonpy_frontend_grpc.access import RPCS
from tritonpy_frontend_grpc.decompression import COMPRESSED_PREFIXES, LIMIT, decompress_async
from tritonpy_protos import METHODS

_MAX_CHARACTERS = 500  # characters of a model name
_MESSAGES: dict[str, Any] = {method.path: method.request for method in METHODS}


def log_call(log: logging.Logger, method: str, status: str, model: str) -> None:
    """Log a call; `method` is its path, and `model` may be empty."""
    log.debug("%s: %s", method, status, extra={"model": model[:_MAX_CHARACTERS]} if model else {})


async def requested_model(method: str, request: Any) -> str:
    """Return the model name in the message of a call, "" if there is none."""
    rpc = RPCS.get(method)
    if rpc is None or not rpc.model_field:
        return ""
    try:
        raw = (
            await decompress_async(request, LIMIT)
            if request[:1] in COMPRESSED_PREFIXES
            else request
        )
        name: str = getattr(_MESSAGES[method].FromString(raw), rpc.model_field)
    except (DecodeError, TritonError):  # the call itself reports the error
        return ""
    return name
