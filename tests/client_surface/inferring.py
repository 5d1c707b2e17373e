"""Inference in all its forms."""

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

from tests.client_surface.talk import LEFT, RIGHT, Talk, assert_added

WAIT_S = 60


async def infer(talk: Talk) -> None:
    wanted = [talk.protocol.InferRequestedOutput("OUTPUT1")]
    result = await talk("infer", "add_sub", talk.inputs(), "1", wanted, request_id="größe", parameters={"own": 1})
    assert result.as_numpy("OUTPUT0") is None
    assert (result.as_numpy("OUTPUT1") == LEFT - RIGHT).all()
    response = result.get_response(**({"as_json": True} if talk.is_grpc else {}))
    assert (response["id"], response["model_name"], response["model_version"]) == ("größe", "add_sub", "1")
    output = result.get_output("OUTPUT1")
    assert (output.datatype if talk.is_grpc else output["datatype"]) == "INT32"
    with pytest.raises(InferenceServerException, match="expected 2 inputs but got 1 inputs for model 'add_sub'"):
        await talk("infer", "add_sub", talk.inputs()[:1])
    with pytest.raises(InferenceServerException, match="reserved"):
        await talk("infer", "add_sub", talk.inputs(), parameters={"triton_own": 1})
    numbers = talk.protocol.InferInput("IN", [2], "INT64")
    numbers.set_data_from_numpy(np.array([1, -2]))
    assert (await talk("infer", "größe", [numbers])).as_numpy("OUT").tolist() == [1, -2]


async def async_infer(talk: Talk) -> None:
    if not talk.is_grpc:
        calls = [await talk("async_infer", "add_sub", talk.inputs(), request_id=str(number)) for number in range(8)]
        for number, call in enumerate(calls):
            result = call.get_result()
            assert result.get_response()["id"] == str(number)
            assert_added(result)
        return
    answers: queue.Queue[tuple[Any, Any]] = queue.Queue()

    def keep(result: Any, error: Any) -> None:
        answers.put((result, error))

    for number in range(8):
        await talk("async_infer", "add_sub", talk.inputs(), keep, request_id=str(number))
    got = [answers.get(timeout=WAIT_S) for _ in range(8)]
    assert [error for _, error in got] == [None] * 8
    assert {result.get_response().id for result, _ in got} == {str(number) for number in range(8)}


async def start_stream(talk: Talk) -> None:
    answers: queue.Queue[tuple[Any, Any]] = queue.Queue()
    await talk("start_stream", lambda result, error: answers.put((result, error)), headers={"x": "y"})
    try:
        with pytest.raises(InferenceServerException, match="stream"):
            await talk("start_stream", lambda result, error: None)
        await talk("async_stream_infer", "add_sub", talk.inputs(), request_id="one")
        result, error = answers.get(timeout=WAIT_S)
        assert error is None
        assert_added(result)
    finally:
        await talk("stop_stream")


async def async_stream_infer(talk: Talk) -> None:
    answers: queue.Queue[tuple[Any, Any]] = queue.Queue()
    await talk("start_stream", lambda result, error: answers.put((result, error)))
    try:
        await talk("async_stream_infer", "repeat", [_count(talk, 3)], enable_empty_final_response=True)
        got = [answers.get(timeout=WAIT_S) for _ in range(4)]
        await talk("async_stream_infer", "not there", talk.inputs(), request_id="lost")
        _, error = answers.get(timeout=WAIT_S)
    finally:
        await talk("stop_stream")
    assert [int(result.as_numpy("OUT")[0]) for result, _ in got[:3]] == [0, 1, 2]
    final = [result.get_response().parameters["triton_final_response"].bool_param for result, _ in got]
    assert final == [False, False, False, True]
    assert "'not there' is not found" in str(error)


async def stop_stream(talk: Talk) -> None:
    answers: queue.Queue[tuple[Any, Any]] = queue.Queue()
    await talk("start_stream", lambda result, error: answers.put((result, error)))
    for number in range(20):
        await talk("async_stream_infer", "add_sub", talk.inputs(), request_id=str(number))
    await talk("stop_stream")  # waits for what is under way
    assert [answers.get_nowait()[0].get_response().id for _ in range(20)] == [str(number) for number in range(20)]
    with pytest.raises(InferenceServerException, match="stream"):
        await talk("async_stream_infer", "add_sub", talk.inputs())


async def stream_infer(talk: Talk) -> None:
    async def requests() -> AsyncIterator[dict[str, Any]]:
        for number in range(8):
            yield {"model_name": "add_sub", "inputs": talk.inputs(), "request_id": str(number)}
        yield {"model_name": "not there", "inputs": talk.inputs()}

    answers = [answer async for answer in await talk("stream_infer", requests())]
    for number, (result, error) in enumerate(answers[:8]):
        assert error is None
        assert result.get_response().id == str(number)
        assert_added(result)
    assert "'not there' is not found" in str(answers[8][1])
    endless = await talk("stream_infer", _endless(talk))
    await anext(endless)
    endless.cancel()
    with contextlib.suppress(asyncio.CancelledError, InferenceServerException):
        async for _ in endless:
            pass


async def generate_request_body(talk: Talk) -> None:
    body, header_length = await talk("generate_request_body", talk.inputs(), request_id="made by hand")
    headers, answer = _post(talk, body, header_length)
    assert b'"made by hand"' in answer[: int(headers["Inference-Header-Content-Length"])]


async def parse_response_body(talk: Talk) -> None:
    headers, answer = _post(talk, *await talk("generate_request_body", talk.inputs()))
    length = int(headers["Inference-Header-Content-Length"])
    assert_added(await talk("parse_response_body", answer, header_length=length))


async def _endless(talk: Talk) -> AsyncIterator[dict[str, Any]]:
    while True:
        yield {"model_name": "add_sub", "inputs": talk.inputs()}
        await asyncio.sleep(0)


def _count(talk: Talk, count: int) -> Any:
    given = talk.protocol.InferInput("IN", [1, 1], "INT32")
    given.set_data_from_numpy(np.array([[count]], np.int32))
    return given


def _post(talk: Talk, body: bytes, header_length: int) -> tuple[Any, bytes]:
    connection = http.client.HTTPConnection(talk.server.http, timeout=WAIT_S)
    try:
        headers = {"Inference-Header-Content-Length": str(header_length)}
        connection.request("POST", "/v2/models/add_sub/infer", body, headers)
        answer = connection.getresponse()
        return answer.headers, answer.read()
    finally:
        connection.close()
