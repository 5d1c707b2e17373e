"""One verbose line for a call that is over. Metadata and messages are in none: they may hold secrets."""

from __future__ import annotations

import logging
from typing import Any

from google.protobuf.message import DecodeError

from tritonpy import TritonError
from tritonpy_frontend_grpc.access import RPCS
from tritonpy_frontend_grpc.unpacking import LIMIT, PACKED, unpacked
from tritonpy_protos import METHODS

_LONGEST = 500  # characters of a model's name
_MESSAGES: dict[str, Any] = {method.path: method.request for method in METHODS}


def tell(log: logging.Logger, method: str, status: str, model: str) -> None:
    """Write the line of a call; `method` is its path, `model` may be empty."""
    log.debug("%s: %s", method, status, extra={"model": model[:_LONGEST]} if model else {})


async def model_of(method: str, request: Any) -> str:
    """Return the model that the message of a call names, empty where it names none."""
    rpc = RPCS.get(method)
    if rpc is None or not rpc.model_field:
        return ""
    try:
        raw = await unpacked(request, LIMIT) if request[:1] in PACKED else request
        name: str = getattr(_MESSAGES[method].FromString(raw), rpc.model_field)
    except (DecodeError, TritonError):  # the call itself will say so
        return ""
    return name
