"""tritonclient's blocking clients: every method in scope, over HTTP and gRPC."""

from __future__ import annotations

import queue
from typing import Any

import numpy as np
import pytest
from tritonclient.utils import InferenceServerException

LEFT = np.arange(16, dtype=np.int32).reshape(1, 16)
RIGHT = np.full((1, 16), 3, np.int32)


def add_sub_inputs(protocol: Any, **how: Any) -> list[Any]:
    inputs = [protocol.InferInput(name, [1, 16], "INT32") for name in ("INPUT0", "INPUT1")]
    for given, values in zip(inputs, (LEFT, RIGHT), strict=True):
        given.set_data_from_numpy(values, **how)
    return inputs


def assert_add_sub(result: Any) -> None:
    assert (result.as_numpy("OUTPUT0") == LEFT + RIGHT).all()
    assert (result.as_numpy("OUTPUT1") == LEFT - RIGHT).all()


def as_json(protocol: Any) -> dict[str, bool]:
    """Return the option for JSON results, which only the gRPC client needs."""
    return {"as_json": True} if protocol.__name__.endswith("grpc") else {}


def state_of(client: Any, protocol: Any, name: str) -> tuple[str, str]:
    index = client.get_model_repository_index(**as_json(protocol))
    models = index["models"] if isinstance(index, dict) else index
    return next(
        (model.get("state", ""), model.get("reason", ""))
        for model in models
        if model["name"] == name
    )


def test_the_server_is_live_and_ready(client: Any) -> None:
    assert client.is_server_live()
    assert client.is_server_ready()


def test_a_model_is_ready_by_name_and_by_version(client: Any) -> None:
    assert client.is_model_ready("add_sub")
    assert client.is_model_ready("add_sub", "1")


def test_the_server_describes_itself(client: Any, protocol: Any) -> None:
    metadata = client.get_server_metadata(**as_json(protocol))
    assert metadata["name"] == "triton"
    assert {"classification", "binary_tensor_data", "statistics", "model_repository"} <= set(
        metadata["extensions"]
    )


def test_a_model_describes_its_tensors(client: Any, protocol: Any) -> None:
    metadata = client.get_model_metadata("add_sub", **as_json(protocol))
    assert metadata["versions"] == ["1"]
    assert [tensor["name"] for tensor in metadata["inputs"]] == ["INPUT0", "INPUT1"]
    assert [int(dim) for dim in metadata["outputs"][0]["shape"]] == [-1, 16]
    assert client.get_model_metadata("add_sub", "1", **as_json(protocol)) == metadata


def test_the_configuration_is_the_completed_configuration(client: Any, protocol: Any) -> None:
    given = client.get_model_config("completed", **as_json(protocol))
    config = given.get("config", given)
    assert config["backend"] == "onnxruntime"
    assert config["max_batch_size"] == 4
    assert config["input"][0]["name"] == "IN"
    assert [int(dim) for dim in config["input"][0]["dims"]] == [3]
    assert "dynamic_batching" in config


def test_statistics_count_requests(client: Any, protocol: Any) -> None:
    def counts() -> tuple[int, int]:
        statistics = client.get_inference_statistics("completed", **as_json(protocol))[
            "model_stats"
        ][0]
        return int(statistics.get("inference_count", 0)), int(
            statistics["inference_stats"]["success"].get("count", 0)
        )

    before = counts()
    given = protocol.InferInput("IN", [2, 3], "FP32")
    given.set_data_from_numpy(np.ones((2, 3), np.float32))
    client.infer("completed", [given])
    assert counts() == (before[0] + 2, before[1] + 1)


def test_statistics_without_a_name_are_those_of_every_model(client: Any, protocol: Any) -> None:
    named = {
        model["name"]
        for model in client.get_inference_statistics(**as_json(protocol))["model_stats"]
    }
    assert {"add_sub", "digits", "raising"} <= named
    assert "spare" not in named


def test_inference_without_requested_outputs_returns_all_outputs(
    client: Any, protocol: Any
) -> None:
    result = client.infer("add_sub", add_sub_inputs(protocol))
    assert_add_sub(result)


def test_inference_returns_only_the_requested_outputs(client: Any, protocol: Any) -> None:
    wanted = [protocol.InferRequestedOutput("OUTPUT1")]
    result = client.infer("add_sub", add_sub_inputs(protocol), "1", wanted, request_id="some id")
    assert (result.as_numpy("OUTPUT1") == LEFT - RIGHT).all()
    assert result.as_numpy("OUTPUT0") is None
    described = result.get_response(**as_json(protocol))
    assert (described["id"], described["model_name"], described["model_version"]) == (
        "some id",
        "add_sub",
        "1",
    )


@pytest.mark.parametrize("sent", [True, False])
@pytest.mark.parametrize("wanted", [True, False])
def test_json_and_binary_data_mix(http_client: Any, sent: bool, wanted: bool) -> None:
    import tritonclient.http as protocol

    inputs = [
        add_sub_inputs(protocol, binary_data=sent)[0],
        add_sub_inputs(protocol, binary_data=not sent)[1],
    ]
    outputs = [
        protocol.InferRequestedOutput(f"OUTPUT{index}", binary_data=wanted != bool(index))
        for index in (0, 1)
    ]
    assert_add_sub(http_client.infer("add_sub", inputs, outputs=outputs))


def test_classification_gives_value_index_and_label(client: Any, protocol: Any) -> None:
    image = protocol.InferInput("image", [2, 64], "FP32")
    image.set_data_from_numpy(np.zeros((2, 64), np.float32))
    classes = protocol.InferRequestedOutput("scores", class_count=3)
    found = client.infer("digits", [image], outputs=[classes]).as_numpy("scores")
    assert found.shape == (2, 3)
    values = []
    labels = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]
    for text in found[0]:
        value, index, label = (text.decode() if isinstance(text, bytes) else text).split(":")
        values.append(float(value))
        assert label == labels[int(index)]
    assert values == sorted(values, reverse=True)


@pytest.mark.parametrize("request_algorithm", [None, "gzip", "deflate"])
@pytest.mark.parametrize("response_algorithm", [None, "gzip", "deflate"])
def test_http_bodies_can_be_compressed(
    http_client: Any, request_algorithm: str | None, response_algorithm: str | None
) -> None:
    import tritonclient.http as protocol

    result = http_client.infer(
        "add_sub",
        add_sub_inputs(protocol),
        request_compression_algorithm=request_algorithm,
        response_compression_algorithm=response_algorithm,
    )
    assert_add_sub(result)


@pytest.mark.parametrize("algorithm", ["gzip", "deflate"])
def test_grpc_messages_can_be_compressed(grpc_client: Any, algorithm: str) -> None:
    import tritonclient.grpc as protocol

    assert_add_sub(
        grpc_client.infer("add_sub", add_sub_inputs(protocol), compression_algorithm=algorithm)
    )


def test_parameters_and_scheduling_arguments_are_accepted(client: Any, protocol: Any) -> None:
    result = client.infer(
        "add_sub",
        add_sub_inputs(protocol),
        timeout=5_000_000,
        priority=0,
        parameters={"mine": "kept", "number": 3, "flag": True},
    )
    assert_add_sub(result)


def test_asynchronous_http_calls_get_their_own_responses(http_client: Any) -> None:
    import tritonclient.http as protocol

    calls = [
        http_client.async_infer("add_sub", add_sub_inputs(protocol), request_id=str(number))
        for number in range(20)
    ]
    results = [call.get_result() for call in calls]
    assert [result.get_response()["id"] for result in results] == [
        str(number) for number in range(20)
    ]
    for result in results:
        assert_add_sub(result)


def test_asynchronous_grpc_calls_get_their_own_responses(grpc_client: Any) -> None:
    import tritonclient.grpc as protocol

    responses: queue.Queue[tuple[Any, Any]] = queue.Queue()
    for number in range(20):
        grpc_client.async_infer(
            "add_sub",
            add_sub_inputs(protocol),
            lambda result, error: responses.put((result, error)),
            request_id=str(number),
        )
    got = [responses.get(timeout=60) for _ in range(20)]
    assert all(error is None for _, error in got)
    assert {result.get_response().id for result, _ in got} == {str(number) for number in range(20)}


def test_a_stream_responds_in_order_and_continues_after_an_error(grpc_client: Any) -> None:
    import tritonclient.grpc as protocol

    responses: queue.Queue[tuple[Any, Any]] = queue.Queue()
    grpc_client.start_stream(lambda result, error: responses.put((result, error)))
    try:
        for number in range(30):
            model = "no such model" if number == 7 else "add_sub"
            grpc_client.async_stream_infer(model, add_sub_inputs(protocol), request_id=str(number))
        got = [responses.get(timeout=60) for _ in range(30)]
    finally:
        grpc_client.stop_stream()
    assert "'no such model' is not found" in str(got[7][1])
    for number, (result, error) in enumerate(got):
        if number != 7:
            assert error is None
            assert result.get_response().id == str(number)
            assert result.get_response().parameters["triton_final_response"].bool_param
            assert_add_sub(result)


@pytest.mark.parametrize("count", [0, 1, 5])
def test_a_decoupled_model_sends_any_number_of_responses(grpc_client: Any, count: int) -> None:
    import tritonclient.grpc as protocol

    given = protocol.InferInput("IN", [1, 1], "INT32")
    given.set_data_from_numpy(np.array([[count]], np.int32))
    responses: queue.Queue[tuple[Any, Any]] = queue.Queue()
    grpc_client.start_stream(lambda result, error: responses.put((result, error)))
    try:
        grpc_client.async_stream_infer("repeat", [given], enable_empty_final_response=True)
        got = [responses.get(timeout=60) for _ in range(count + 1)]
    finally:
        grpc_client.stop_stream()
    assert [error for _, error in got] == [None] * (count + 1)
    assert [int(result.as_numpy("OUT")[0]) for result, _ in got[:-1]] == list(range(count))
    final = [
        result.get_response().parameters["triton_final_response"].bool_param for result, _ in got
    ]
    assert final == [False] * count + [True]


def test_a_model_is_loaded_with_another_configuration_and_unloaded(
    client: Any, protocol: Any
) -> None:
    client.load_model("spare", config='{"backend": "onnxruntime", "max_batch_size": 3}')
    assert client.is_model_ready("spare")
    given = client.get_model_config("spare", **as_json(protocol))
    assert given.get("config", given)["max_batch_size"] == 3
    client.unload_model("spare")
    while (state := state_of(client, protocol, "spare"))[0] == "UNLOADING":
        pass
    assert state == ("UNAVAILABLE", "unloaded")
    with pytest.raises(
        InferenceServerException,
        match="Request for unknown model: 'spare' has no available versions",
    ):
        client.infer("spare", [])


def test_a_model_is_loaded_from_files_that_the_client_sends(
    client: Any, protocol: Any, onnx_identity: Any
) -> None:
    client.load_model(
        "spare",
        config='{"backend": "onnxruntime"}',
        files={"file:1/model.onnx": onnx_identity("INT64", [2])},
    )
    values = np.array([1, 2], np.int64)
    given = protocol.InferInput("IN", [2], "INT64")
    given.set_data_from_numpy(values)
    assert (client.infer("spare", [given]).as_numpy("OUT") == values).all()
    client.unload_model("spare")


def test_a_model_that_is_not_in_the_repository_cannot_be_loaded(client: Any) -> None:
    with pytest.raises(
        InferenceServerException,
        match="failed to load 'nowhere', failed to poll from model repository",
    ):
        client.load_model("nowhere")
