"""Checks of all forms of inference."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import queue
from collections.abc import AsyncIterator
from typing import Any

import numpy as np
import pytest
from tritonclient.utils import InferenceServerException

from tests.client_surface.client_adapter import LEFT, RIGHT, ClientAdapter, assert_added

WAIT_S = 60


async def infer(adapter: ClientAdapter) -> None:
    wanted = [adapter.protocol.InferRequestedOutput("OUTPUT1")]
    result = await adapter(
        "infer", "add_sub", adapter.inputs(), "1", wanted, request_id="größe", parameters={"own": 1}
    )
    assert result.as_numpy("OUTPUT0") is None
    assert (result.as_numpy("OUTPUT1") == LEFT - RIGHT).all()
    response = result.get_response(**({"as_json": True} if adapter.is_grpc else {}))
    assert (response["id"], response["model_name"], response["model_version"]) == (
        "größe",
        "add_sub",
        "1",
    )
    output = result.get_output("OUTPUT1")
    assert (output.datatype if adapter.is_grpc else output["datatype"]) == "INT32"
    with pytest.raises(
        InferenceServerException, match="expected 2 inputs but got 1 inputs for model 'add_sub'"
    ):
        await adapter("infer", "add_sub", adapter.inputs()[:1])
    with pytest.raises(InferenceServerException, match="reserved"):
        await adapter("infer", "add_sub", adapter.inputs(), parameters={"triton_own": 1})
    numbers = adapter.protocol.InferInput("IN", [2], "INT64")
    numbers.set_data_from_numpy(np.array([1, -2]))
    assert (await adapter("infer", "größe", [numbers])).as_numpy("OUT").tolist() == [1, -2]


async def async_infer(adapter: ClientAdapter) -> None:
    if not adapter.is_grpc:
        calls = [
            await adapter("async_infer", "add_sub", adapter.inputs(), request_id=str(number))
            for number in range(8)
        ]
        for number, call in enumerate(calls):
            result = call.get_result()
            assert result.get_response()["id"] == str(number)
            assert_added(result)
        return
    responses: queue.Queue[tuple[Any, Any]] = queue.Queue()

    def keep(result: Any, error: Any) -> None:
        responses.put((result, error))

    for number in range(8):
        await adapter("async_infer", "add_sub", adapter.inputs(), keep, request_id=str(number))
    got = [responses.get(timeout=WAIT_S) for _ in range(8)]
    assert [error for _, error in got] == [None] * 8
    assert {result.get_response().id for result, _ in got} == {str(number) for number in range(8)}


async def start_stream(adapter: ClientAdapter) -> None:
    responses: queue.Queue[tuple[Any, Any]] = queue.Queue()
    await adapter(
        "start_stream", lambda result, error: responses.put((result, error)), headers={"x": "y"}
    )
    try:
        with pytest.raises(InferenceServerException, match="stream"):
            await adapter("start_stream", lambda result, error: None)
        await adapter("async_stream_infer", "add_sub", adapter.inputs(), request_id="one")
        result, error = responses.get(timeout=WAIT_S)
        assert error is None
        assert_added(result)
    finally:
        await adapter("stop_stream")


async def async_stream_infer(adapter: ClientAdapter) -> None:
    responses: queue.Queue[tuple[Any, Any]] = queue.Queue()
    await adapter("start_stream", lambda result, error: responses.put((result, error)))
    try:
        await adapter(
            "async_stream_infer", "repeat", [_count(adapter, 3)], enable_empty_final_response=True
        )
        got = [responses.get(timeout=WAIT_S) for _ in range(4)]
        await adapter("async_stream_infer", "not there", adapter.inputs(), request_id="lost")
        _, error = responses.get(timeout=WAIT_S)
    finally:
        await adapter("stop_stream")
    assert [int(result.as_numpy("OUT")[0]) for result, _ in got[:3]] == [0, 1, 2]
    final = [
        result.get_response().parameters["triton_final_response"].bool_param for result, _ in got
    ]
    assert final == [False, False, False, True]
    assert "'not there' is not found" in str(error)


async def stop_stream(adapter: ClientAdapter) -> None:
    responses: queue.Queue[tuple[Any, Any]] = queue.Queue()
    await adapter("start_stream", lambda result, error: responses.put((result, error)))
    for number in range(20):
        await adapter("async_stream_infer", "add_sub", adapter.inputs(), request_id=str(number))
    await adapter("stop_stream")  # waits for requests in flight
    assert [responses.get_nowait()[0].get_response().id for _ in range(20)] == [
        str(number) for number in range(20)
    ]
    with pytest.raises(InferenceServerException, match="stream"):
        await adapter("async_stream_infer", "add_sub", adapter.inputs())


async def stream_infer(adapter: ClientAdapter) -> None:
    async def requests() -> AsyncIterator[dict[str, Any]]:
        for number in range(8):
            yield {"model_name": "add_sub", "inputs": adapter.inputs(), "request_id": str(number)}
        yield {"model_name": "not there", "inputs": adapter.inputs()}

    responses = [answer async for answer in await adapter("stream_infer", requests())]
    for number, (result, error) in enumerate(responses[:8]):
        assert error is None
        assert result.get_response().id == str(number)
        assert_added(result)
    assert "'not there' is not found" in str(responses[8][1])
    endless = await adapter("stream_infer", _endless(adapter))
    await anext(endless)
    endless.cancel()
    with contextlib.suppress(asyncio.CancelledError, InferenceServerException):
        async for _ in endless:
            pass


async def generate_request_body(adapter: ClientAdapter) -> None:
    body, header_length = await adapter(
        "generate_request_body", adapter.inputs(), request_id="made by hand"
    )
    headers, answer = _post(adapter, body, header_length)
    assert b'"made by hand"' in answer[: int(headers["Inference-Header-Content-Length"])]


async def parse_response_body(adapter: ClientAdapter) -> None:
    headers, answer = _post(adapter, *await adapter("generate_request_body", adapter.inputs()))
    length = int(headers["Inference-Header-Content-Length"])
    assert_added(await adapter("parse_response_body", answer, header_length=length))


async def _endless(adapter: ClientAdapter) -> AsyncIterator[dict[str, Any]]:
    while True:
        yield {"model_name": "add_sub", "inputs": adapter.inputs()}
        await asyncio.sleep(0)


def _count(adapter: ClientAdapter, count: int) -> Any:
    given = adapter.protocol.InferInput("IN", [1, 1], "INT32")
    given.set_data_from_numpy(np.array([[count]], np.int32))
    return given


def _post(adapter: ClientAdapter, body: bytes, header_length: int) -> tuple[Any, bytes]:
    connection = http.client.HTTPConnection(adapter.server.http, timeout=WAIT_S)
    try:
        headers = {"Inference-Header-Content-Length": str(header_length)}
        connection.request("POST", "/v2/models/add_sub/infer", body, headers)
        answer = connection.getresponse()
        return answer.headers, answer.read()
    finally:
        connection.close()
