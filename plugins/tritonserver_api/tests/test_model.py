from __future__ import annotations

import asyncio
import gc
import json
import queue
from typing import Any

import numpy as np
import pytest
import tritonserver
from tritonserver import InvalidArgumentError, ModelBatchFlag, ModelTxnPropertyFlag


def described(response: tritonserver.InferenceResponse) -> dict[str, Any]:
    """Return what the model `echo` knows of its request."""
    text = response.outputs["request"].to_string_array()[0]
    found: dict[str, Any] = json.loads(text)
    return found


INPUTS: dict[str, Any] = {
    "fp16_in": np.random.default_rng(0).random((2, 3)).astype(np.float16),
    "bool_in": np.array([[True, False]]),
    "int64_in": [[1, -2], [3, 4]],
    "uint8_in": np.zeros((1, 0), np.uint8),
    "fp64_in": np.asfortranarray(np.arange(6.0).reshape(2, 3)),
}


def test_inputs_come_back_unchanged(server: tritonserver.Server) -> None:
    (response,) = server.model("echo").infer(inputs=INPUTS)
    assert response.final
    assert (response.model.name, response.model.version) == ("echo", 1)
    for name, value in INPUTS.items():
        output = response.outputs[f"{name.removesuffix('in')}out"]
        np.testing.assert_array_equal(np.from_dlpack(output), np.array(value))


def test_texts_come_back_unchanged(server: tritonserver.Server) -> None:
    for value in (
        [["hello", "wörld"]],
        tritonserver.Tensor.from_string_array([["hello", "wörld"]]),
        np.array([[b"hello", "wörld".encode()]], object),
    ):
        (response,) = server.model("echo").infer(inputs={"bytes_in": value})
        output = response.outputs["bytes_out"]
        assert output.to_string_array().tolist() == [["hello", "wörld"]]


def test_an_output_outlives_its_response_and_the_iterator(server: tritonserver.Server) -> None:
    array = np.from_dlpack(
        next(server.model("echo").infer(inputs={"fp32_in": np.ones((9, 9), np.float32)})).outputs[
            "fp32_out"
        ]
    )
    gc.collect()
    assert array.sum() == 81


def test_a_request_has_its_fields(server: tritonserver.Server) -> None:
    model = server.models()["echo"]
    request = model.create_request(request_id="r7", timeout=5_000_000, model="ignored")
    request.inputs["fp32_in"] = [[1.0]]
    request.inputs["fp32_in"] = np.float32([[1]])
    request.parameters = {"text": "x", "int": 3, "bool": True, "float": 0.5}
    for _ in range(2):  # it may be sent again
        (response,) = model.infer(request)
        assert response.request_id == "r7"
        found = described(response)
        assert found["id"] == "r7"
        assert found["timeout"] == 5_000_000
        assert found["parameters"] == {"text": "x", "int": 3, "bool": True, "float": 0.5}


def test_flags_and_correlation_ids_reach_the_model(server: tritonserver.Server) -> None:
    inputs = {"bool_in": [[True]]}
    (response,) = server.model("echo").infer(inputs=inputs, correlation_id=5, flags=3)
    assert (described(response)["correlation"], described(response)["flags"]) == (5, 3)
    (response,) = server.model("echo").infer(inputs=inputs, correlation_id="five")
    assert described(response)["correlation"] == "five"


@pytest.mark.parametrize("value", [None, {"a": 1}, [1], b"x"])
def test_parameters_of_other_types_are_refused(server: tritonserver.Server, value: Any) -> None:
    with pytest.raises(InvalidArgumentError, match="Request Parameter"):
        server.model("echo").infer(inputs={"bool_in": [[True]]}, parameters={"x": value})


def test_a_request_that_the_server_refuses_raises_its_error(server: tritonserver.Server) -> None:
    with pytest.raises(tritonserver.NotFoundError, match="unknown model: 'none'"):
        server.model("none").infer(inputs={})
    with pytest.raises(InvalidArgumentError, match="unexpected inference input 'other'"):
        server.model("echo").infer(inputs={"other": [1]})
    with pytest.raises(tritonserver.TritonError):
        server.model("echo").infer(inputs={"fp32_in": [[1]]})  # INT64
    with pytest.raises(InvalidArgumentError, match="is for model 'echo'"):
        server.model("repeat").infer(server.model("echo").create_request())


def test_an_error_of_the_model_is_raised_or_in_the_response(server: tritonserver.Server) -> None:
    model, inputs = server.model("fail"), {"bool_in": [[True]]}
    with pytest.raises(tritonserver.InternalError, match="it fails") as caught:
        next(model.infer(inputs=inputs))
    assert isinstance(caught.value.args[1], tritonserver.InferenceResponse)
    (response,) = model.infer(inputs=inputs, raise_on_error=False)
    assert "it fails" in str(response.error)
    assert response.final
    assert response.outputs == {}


@pytest.mark.parametrize("memory", ["disk", "gpu", "cpu_pinned"])
def test_outputs_in_other_memory_are_refused(server: tritonserver.Server, memory: str) -> None:
    iterator = server.model("echo").infer(inputs={"bool_in": [[True]]}, output_memory_type=memory)
    with pytest.raises(InvalidArgumentError, match=f"Memory type {memory} not supported"):
        next(iterator)


def numbers(responses: list[tritonserver.InferenceResponse]) -> list[int]:
    return [int(np.from_dlpack(each.outputs["number"])[0]) for each in responses if each.outputs]


def test_a_decoupled_model_sends_any_number_of_responses(server: tritonserver.Server) -> None:
    for count in (0, 1, 200):
        responses = list(server.model("repeat").infer(inputs={"count": np.int32([count])}))
        assert numbers(responses) == list(range(count))
        assert [each.final for each in responses].count(True) == 1
        assert responses[-1].final


def test_a_cancelled_request_ends(server: tritonserver.Server) -> None:
    iterator = server.model("repeat").infer(inputs={"count": np.int32([-1])}, raise_on_error=False)
    assert numbers([next(iterator)]) == [0]
    iterator.cancel()
    assert list(iterator)[-1].final
    iterator.cancel()


def test_a_queue_gets_the_responses_too(server: tritonserver.Server) -> None:
    responses: queue.SimpleQueue[Any] = queue.SimpleQueue()
    inputs = {"count": np.int32([3])}
    iterators = [
        server.model("repeat").infer(inputs=inputs, response_queue=responses) for _ in range(2)
    ]
    found = [responses.get(timeout=30) for _ in range(8)]
    assert sorted(numbers(found)) == [0, 0, 1, 1, 2, 2]
    assert [numbers(list(each)) for each in iterators] == [[0, 1, 2]] * 2
    assert responses.empty()


def test_coroutines_get_the_responses(server: tritonserver.Server) -> None:
    async def collect(count: int) -> list[int]:
        iterator = server.model("repeat").async_infer(inputs={"count": np.int32([count])})
        return numbers([each async for each in iterator])

    async def run() -> None:
        assert await asyncio.gather(*map(collect, range(20))) == [
            list(range(count)) for count in range(20)
        ]
        with pytest.raises(tritonserver.InternalError, match="it fails"):
            async for _ in server.model("fail").async_infer(inputs={"bool_in": [[True]]}):
                pass
        endless = server.model("repeat").async_infer(
            inputs={"count": np.int32([-1])}, raise_on_error=False
        )
        assert numbers([await anext(endless)]) == [0]
        endless.cancel()
        assert [each async for each in endless][-1].final

    asyncio.run(run())


def test_a_queue_of_coroutines_gets_the_responses_too(server: tritonserver.Server) -> None:
    async def run() -> None:
        responses: asyncio.Queue[Any] = asyncio.Queue()
        iterator = server.model("repeat").async_infer(
            inputs={"count": np.int32([3])}, response_queue=responses
        )
        found = [await responses.get() for _ in range(4)]
        assert numbers(found) == [0, 1, 2]
        assert numbers([each async for each in iterator]) == [0, 1, 2]
        assert responses.empty()

    asyncio.run(run())


def test_a_queue_of_the_other_kind_is_refused(server: tritonserver.Server) -> None:
    inputs = {"count": np.int32([1])}

    async def run() -> None:
        other: queue.SimpleQueue[Any] = queue.SimpleQueue()
        with pytest.raises(InvalidArgumentError, match=r"must be an asyncio\.Queue"):
            server.model("repeat").async_infer(inputs=inputs, response_queue=other)
        with pytest.raises(InvalidArgumentError, match=r"must be a queue\.SimpleQueue"):
            server.model("repeat").infer(inputs=inputs, response_queue=asyncio.Queue())

    asyncio.run(run())


def test_a_coroutine_that_is_cancelled_loses_no_later_response(
    server: tritonserver.Server,
) -> None:
    async def run() -> None:
        iterator = server.model("repeat").async_infer(inputs={"count": np.int32([2])})
        waiting = asyncio.ensure_future(anext(iterator))
        await asyncio.sleep(0)
        waiting.cancel()
        rest = [each async for each in iterator]
        assert numbers(rest)[-1] == 1

    asyncio.run(run())


def test_requests_leave_no_garbage(server: tritonserver.Server) -> None:
    def send() -> None:
        for response in server.model("echo").infer(inputs={"bool_in": np.ones((1, 9), bool)}):
            np.from_dlpack(response.outputs["bool_out"])

    for _ in range(20):
        send()
    gc.collect()
    gc.disable()
    try:
        for _ in range(50):
            send()
        assert gc.collect() < 50
    finally:
        gc.enable()


def test_properties_of_models(server: tritonserver.Server) -> None:
    echo, repeat = server.model("echo"), server.model("repeat")
    assert (echo.ready(), server.model("none").ready()) == (True, False)
    assert echo.metadata()["platform"] == "python"
    assert {each["name"] for each in repeat.metadata()["inputs"]} == {"count"}
    assert repeat.config()["model_transaction_policy"] == {"decoupled": True}
    with pytest.raises(InvalidArgumentError, match="version 2 not supported"):
        echo.config(2)
    assert echo.batch_properties() is ModelBatchFlag.UNKNOWN
    assert echo.transaction_properties() is ModelTxnPropertyFlag.ONE_TO_ONE
    assert repeat.transaction_properties() is ModelTxnPropertyFlag.DECOUPLED
    (statistics,) = echo.statistics()["model_stats"]
    assert statistics["inference_stats"]["success"]["count"] > 0
    with pytest.raises(tritonserver.NotFoundError):
        server.model("none").metadata()
    assert str(echo) == "{'name': 'echo', 'version': -1, 'state': None}"
