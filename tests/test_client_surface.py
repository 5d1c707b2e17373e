"""Every public method of tritonclient's four clients, called against a live server."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest

from tests.client_surface import controlling, describing, inferring, memory
from tests.client_surface.talk import MODULES, Talk, public_methods
from tests.conftest import Models, tensors_text

Check = Callable[[Talk], Awaitable[None]]
CHECKS: dict[str, Check] = {
    name: check
    for module in (describing, controlling, inferring, memory)
    for name, check in inspect.getmembers(module, inspect.iscoroutinefunction)
    if not name.startswith("_")
}


@pytest.fixture(scope="module")
def server(serve: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A server that lets clients do everything; `spare` is not loaded."""
    models = Models(tmp_path_factory.mktemp("surface"))
    models.example("add_sub")
    models.identity("spare", "FP32", ["batch", 2])
    models.identity("größe", "INT64", ["size"], tensors_text("INT64", "-1"))
    models.toy("repeat", "INT32", "model_transaction_policy { decoupled: true }")
    loaded = [f"--load-model={name}" for name in ("add_sub", "größe", "repeat")]
    traces = f"--trace-config=triton,file={tmp_path_factory.mktemp('traces') / 'trace.json'}"
    flags = ("--model-control-mode=explicit", "--allow-client-shm=true", traces, *loaded)
    with serve(f"--model-repository={models.path}", *flags) as served:
        yield served


@pytest.mark.parametrize(("kind", "method"), [(kind, method) for kind in MODULES for method in public_methods(kind)])
def test_a_method_of_a_client_does_what_it_says(server: Any, kind: str, method: str) -> None:
    check = CHECKS.get(method)
    assert check is not None, f"tests/client_surface has no check for '{method}' of the {kind} client"

    async def run() -> None:
        async with contextlib.AsyncExitStack() as stack:
            made = MODULES[kind].InferenceServerClient(server.grpc if kind.startswith("grpc") else server.http)
            talk = Talk(kind, server, made)
            if kind.endswith("aio"):
                await stack.enter_async_context(made)
            else:
                stack.enter_context(made)
            await check(talk)
            assert method in talk.called

    asyncio.run(run())


def test_every_check_belongs_to_a_method() -> None:
    assert set(CHECKS) <= {method for kind in MODULES for method in public_methods(kind)}
