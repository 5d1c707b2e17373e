"""tritonclient's asyncio clients, over HTTP and gRPC."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import numpy as np
import pytest
import tritonclient.grpc
import tritonclient.grpc.aio
import tritonclient.http
import tritonclient.http.aio
from tritonclient.utils import InferenceServerException

LEFT = np.arange(16, dtype=np.int32).reshape(1, 16)
RIGHT = np.full((1, 16), 3, np.int32)
ClientTest = Callable[[Any], Awaitable[None]]


@pytest.fixture(params=["http", "grpc"])
def run_on_clients(request: pytest.FixtureRequest, server: Any) -> Callable[[ClientTest], None]:
    """`run_on_clients(f)`: runs `await f(client)` with an asyncio client of each protocol."""

    async def run(what: ClientTest) -> None:
        module = getattr(tritonclient, request.param).aio
        async with module.InferenceServerClient(getattr(server, request.param)) as client:
            await what(client)

    return lambda what: asyncio.run(run(what))


def inputs_for(client: Any) -> list[Any]:
    protocol = tritonclient.grpc if "grpc" in type(client).__module__ else tritonclient.http
    inputs = [protocol.InferInput(name, [1, 16], "INT32") for name in ("INPUT0", "INPUT1")]
    for given, values in zip(inputs, (LEFT, RIGHT), strict=True):
        given.set_data_from_numpy(values)
    return inputs


def test_metadata_of_the_server_and_its_models_is_available(
    run_on_clients: Callable[[ClientTest], None],
) -> None:
    async def call(client: Any) -> None:
        assert await client.is_server_live()
        assert await client.is_server_ready()
        assert await client.is_model_ready("add_sub", "1")
        assert "binary_tensor_data" in str(await client.get_server_metadata())
        assert "OUTPUT1" in str(await client.get_model_metadata("add_sub"))
        assert "onnxruntime" in str(await client.get_model_config("add_sub"))
        assert "add_sub" in str(await client.get_inference_statistics("add_sub"))
        assert "READY" in str(await client.get_model_repository_index())

    run_on_clients(call)


def test_concurrent_calls_get_their_own_responses(
    run_on_clients: Callable[[ClientTest], None],
) -> None:
    async def call(client: Any) -> None:
        calls = [
            client.infer("add_sub", inputs_for(client), request_id=str(number))
            for number in range(50)
        ]
        for number, result in enumerate(await asyncio.gather(*calls)):
            response = result.get_response()
            assert (response["id"] if isinstance(response, dict) else response.id) == str(number)
            assert (result.as_numpy("OUTPUT1") == LEFT - RIGHT).all()

    run_on_clients(call)


def test_a_model_is_loaded_and_unloaded(run_on_clients: Callable[[ClientTest], None]) -> None:
    async def call(client: Any) -> None:
        await client.load_model("spare")
        assert await client.is_model_ready("spare")
        await client.unload_model("spare")
        with pytest.raises(InferenceServerException, match="'spare' has no available versions"):
            await client.infer("spare", [])

    run_on_clients(call)


def test_a_stream_is_answered_in_order(server: Any) -> None:
    async def requests(client: Any) -> AsyncIterator[dict[str, Any]]:
        for number in range(20):
            yield {"model_name": "add_sub", "inputs": inputs_for(client), "request_id": str(number)}

    async def call() -> None:
        async with tritonclient.grpc.aio.InferenceServerClient(server.grpc) as client:
            responses = [answer async for answer in client.stream_infer(requests(client))]
        assert [error for _, error in responses] == [None] * 20
        assert [result.get_response().id for result, _ in responses] == [
            str(number) for number in range(20)
        ]

    asyncio.run(call())
