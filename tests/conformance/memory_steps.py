"""Steps with shared memory at hand. Two servers are asked at the same time, so each has an object of its own, whose key has its port in it."""

from __future__ import annotations

import dataclasses
import json
import time
from collections.abc import Callable
from multiprocessing.shared_memory import SharedMemory
from typing import Any

from tests.conformance import http_answer
from tests.conformance.exchange import MEMORY_KEY, PATIENCE_S, Grpc, Http, Stream, WithMemory, get, keyed, post
from tests.conformance.server import Server
from tritonpy_protos import grpc_service_pb2 as pb

UNREGISTER = keyed(post("/v2/systemsharedmemory/unregister"))
STATUS = keyed(get("/v2/systemsharedmemory/status"))
NO_MODEL = Grpc("ModelInfer", pb.ModelInferRequest(model_name="nobody"))


def take_with_memory(server: Server, step: WithMemory, take: Callable[[Any], Any]) -> dict[str, Any]:
    """Return what `take` gives for each of the steps, and the memory as it is afterwards. No region stays registered."""
    key = f"{MEMORY_KEY[:-5]}{server.ports['http']:05d}"
    memory = SharedMemory(key, create=True, size=step.byte_size)
    try:
        memory.buf[: len(step.content)] = step.content
        answers = [take(_keyed(one, key)) for one in step.steps]
        found = {"steps": answers, "memory": bytes(memory.buf[: step.byte_size]).hex(" ", 4)}
    finally:
        memory.close()
        memory.unlink()
        _unregister(server, take)
    told: dict[str, Any] = json.loads(json.dumps(found).replace(key, MEMORY_KEY))
    return told


def _unregister(server: Server, take: Callable[[Any], Any]) -> None:
    """Return when no region is registered.

    Triton refuses to unregister what a request still uses, and what its gRPC service keeps of an answered request it only
    drops when it takes up another.
    """
    until = time.monotonic() + PATIENCE_S
    while http_answer.ask(server.ports["http"], UNREGISTER)["status"] != 200 or _regions(server):
        if time.monotonic() > until:
            raise RuntimeError(f"regions that cannot be unregistered: {_regions(server)}")
        take(NO_MODEL)


def _regions(server: Server) -> Any:
    return http_answer.ask(server.ports["http"], STATUS)["json"]


def _keyed(step: Any, key: str) -> Any:
    """Return the step with the key of this server, which is as long as the other."""
    old, new = MEMORY_KEY.encode(), key.encode()
    match step:
        case Http():
            return dataclasses.replace(step, body=step.body.replace(old, new))
        case Grpc():
            return dataclasses.replace(step, message=_message(step.message, old, new))
        case Stream():
            return dataclasses.replace(step, messages=tuple(_message(one, old, new) for one in step.messages))
    return step


def _message(message: Any, old: bytes, new: bytes) -> Any:
    return type(message).FromString(message.SerializeToString(deterministic=True).replace(old, new))
