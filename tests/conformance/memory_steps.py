"""Steps with a shared memory object per server: its key contains the server's port.

Two servers run at the same time, so each needs its own object.
"""

from __future__ import annotations

import dataclasses
import json
import time
from collections.abc import Callable
from multiprocessing.shared_memory import SharedMemory
from typing import Any

from tests.conformance import http_response
from tests.conformance.exchange import (
    MEMORY_KEY,
    WAIT_S,
    Grpc,
    Http,
    SharedMemorySteps,
    Stream,
    get,
    keyed,
    post,
)
from tests.conformance.server import Server
from tritonpy_protos import grpc_service_pb2 as pb

UNREGISTER = keyed(post("/v2/systemsharedmemory/unregister"))
STATUS = keyed(get("/v2/systemsharedmemory/status"))
NO_MODEL = Grpc("ModelInfer", pb.ModelInferRequest(model_name="nobody"))


def run_with_memory(
    server: Server, step: SharedMemorySteps, take: Callable[[Any], Any]
) -> dict[str, Any]:
    """Return the results of `take` for each step, and the final memory. No region stays registered."""
    key = f"{MEMORY_KEY[:-5]}{server.ports['http']:05d}"
    memory = SharedMemory(key, create=True, size=step.byte_size)
    try:
        memory.buf[: len(step.content)] = step.content
        responses = [take(_keyed(one, key)) for one in step.steps]
        found = {"steps": responses, "memory": bytes(memory.buf[: step.byte_size]).hex(" ", 4)}
    finally:
        memory.close()
        memory.unlink()
        _unregister(server, take)
    normalized: dict[str, Any] = json.loads(json.dumps(found).replace(key, MEMORY_KEY))
    return normalized


def _unregister(server: Server, take: Callable[[Any], Any]) -> None:
    """Return when no region is registered.

    Triton refuses to unregister a region that a request still uses. Its gRPC service drops a
    finished request only when it takes up another one.
    """
    until = time.monotonic() + WAIT_S
    while http_response.send(server.ports["http"], UNREGISTER)["status"] != 200 or _regions(server):
        if time.monotonic() > until:
            raise RuntimeError(f"regions that cannot be unregistered: {_regions(server)}")
        take(NO_MODEL)


def _regions(server: Server) -> Any:
    return http_response.send(server.ports["http"], STATUS)["json"]


def _keyed(step: Any, key: str) -> Any:
    """Return the step with the key of this server, which has the same length."""
    old, new = MEMORY_KEY.encode(), key.encode()
    match step:
        case Http():
            return dataclasses.replace(step, body=step.body.replace(old, new))
        case Grpc():
            return dataclasses.replace(step, message=_message(step.message, old, new))
        case Stream():
            return dataclasses.replace(
                step, messages=tuple(_message(one, old, new) for one in step.messages)
            )
    return step


def _message(message: Any, old: bytes, new: bytes) -> Any:
    return type(message).FromString(message.SerializeToString(deterministic=True).replace(old, new))
