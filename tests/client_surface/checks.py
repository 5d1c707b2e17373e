"""The check of each public method of tritonclient's four clients."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Awaitable, Callable
from typing import Any

from tests.client_surface import control, inference, memory, metadata
from tests.client_surface.client_adapter import MODULES, ClientAdapter, public_methods

Check = Callable[[ClientAdapter], Awaitable[None]]
CHECKS: dict[str, Check] = {
    name: check
    for module in (metadata, control, inference, memory)
    for name, check in inspect.getmembers(module, inspect.iscoroutinefunction)
    if not name.startswith("_")
}
METHODS = [(kind, method) for kind in MODULES for method in public_methods(kind)]
LOADED = ("add_sub", "größe", "repeat")


def write_models(models: Any, tensors_text: Callable[[str, str], str]) -> None:
    """Write the models of the checks; all but `spare`, which the checks load, are `LOADED`."""
    models.example("add_sub")
    models.identity("spare", "FP32", ["batch", 2])
    models.identity("größe", "INT64", ["size"], tensors_text("INT64", "-1"))
    models.toy("repeat", "INT32", "model_transaction_policy { decoupled: true }")


async def check(server: Any, kind: str, method: str) -> None:
    """Assert that a method works; `server` permits everything to clients."""
    known = CHECKS.get(method)
    assert known is not None, (
        f"tests/client_surface has no check for '{method}' of the {kind} client"
    )
    async with contextlib.AsyncExitStack() as stack:
        made = MODULES[kind].InferenceServerClient(
            server.grpc if kind.startswith("grpc") else server.http
        )
        adapter = ClientAdapter(kind, server, made)
        if kind.endswith("aio"):
            await stack.enter_async_context(made)
        else:
            stack.enter_context(made)
        await known(adapter)
        assert method in adapter.called
