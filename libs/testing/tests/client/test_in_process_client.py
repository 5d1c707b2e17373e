from __future__ import annotations

import base64
import queue
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import tritonclient.grpc
import tritonclient.http

from tritonpy_testing import (
    InferenceServerException,
    InferInput,
    InferRequestedOutput,
    InProcessClient,
    ToyEngine,
    shared_object,
)

VALUES = np.array([1.5, -2.0], np.float32)
WAIT_S = 20


@pytest.fixture
def engine():
    with ToyEngine() as engine:
        yield engine


@pytest.fixture
def client(engine):
    with InProcessClient(engine) as client:
        yield client


def fp32(values=VALUES, kind=InferInput):
    return kind("IN", list(values.shape), "FP32").set_data_from_numpy(values)


def count(number):
    return InferInput("IN", [1], "INT32").set_data_from_numpy(np.array([number], np.int32))


class ResponseRecorder:
    """A callback that records its arguments."""

    def __init__(self):
        self.called = []

    def __call__(self, result, error):
        self.called.append((result, error))


def test_health_and_metadata(client):
    assert client.is_server_live()
    assert client.is_server_ready()
    assert client.is_model_ready("identity", "1")
    assert not client.is_model_ready("unknown")
    assert client.get_server_metadata()["name"] == "toy"
    assert client.get_model_metadata("identity")["inputs"] == [
        {"name": "IN", "datatype": "FP32", "shape": [-1]}
    ]


def test_a_configuration_has_the_protocol_s_number_types(client):
    config = client.get_model_config("repeat")
    assert config["input"][0]["dims"] == [1]
    assert config["model_transaction_policy"] == {"decoupled": True}


def test_the_index_follows_loading_and_unloading(client):
    client.unload_model("text")
    assert {
        "name": "text",
        "version": "1",
        "state": "UNAVAILABLE",
        "reason": "unloaded",
    } in client.get_model_repository_index()
    assert not client.is_server_ready()
    client.load_model("text")
    assert {"name": "text", "version": "1", "state": "READY"} in client.get_model_repository_index()


def test_statistics_count_inferences(client):
    client.infer("identity", [fp32()])
    [statistics] = client.get_inference_statistics("identity")["model_stats"]
    assert statistics["inference_stats"]["success"]["count"] == 1
    assert len(client.get_inference_statistics()["model_stats"]) == 4


@pytest.mark.parametrize(
    "kind", [InferInput, tritonclient.http.InferInput, tritonclient.grpc.InferInput]
)
def test_it_accepts_inputs_of_every_client(client, kind):
    result = client.infer("identity", [fp32(kind=kind)])
    assert result.as_numpy("OUT").tolist() == VALUES.tolist()


@pytest.mark.parametrize(
    "kind", [InferInput, tritonclient.http.InferInput, tritonclient.grpc.InferInput]
)
def test_it_accepts_strings_of_every_client(client, kind):
    texts = np.array([b"a", b"", "ö".encode()], np.object_)
    result = client.infer("text", [kind("IN", [3], "BYTES").set_data_from_numpy(texts)])
    assert result.as_numpy("OUT").tolist() == texts.tolist()


def test_it_accepts_json_data_of_tritonclient(client):
    numbers = tritonclient.http.InferInput("IN", [2], "FP32").set_data_from_numpy(
        VALUES, binary_data=False
    )
    assert client.infer("identity", [numbers]).as_numpy("OUT").tolist() == VALUES.tolist()
    texts = tritonclient.http.InferInput("IN", [1], "BYTES")
    texts.set_data_from_numpy(np.array(["ö"], np.object_), binary_data=False)
    assert client.infer("text", [texts]).as_numpy("OUT").tolist() == ["ö".encode()]


@pytest.mark.parametrize(
    "kind",
    [
        InferRequestedOutput,
        tritonclient.http.InferRequestedOutput,
        tritonclient.grpc.InferRequestedOutput,
    ],
)
def test_it_accepts_requested_outputs_of_every_client(engine, client, kind):
    with engine.hold():
        call = client.async_infer("identity", [fp32()], outputs=[kind("OUT", class_count=2)])
        [request] = engine.wait_for_requests(1)
    assert request.outputs["OUT"].classification == 2
    assert request.classifies
    assert call.get_result().get_output("OUT") == {"name": "OUT", "datatype": "FP32", "shape": [2]}


@pytest.fixture
def region(client):
    """A region `r` of 4096 bytes that begins with the values."""
    with shared_object(4096, VALUES.tobytes()) as memory:
        client.register_system_shared_memory("r", memory.key, 4096)
        yield memory


KINDS = [(InferInput, InferRequestedOutput)] + [
    (module.InferInput, module.InferRequestedOutput)
    for module in (tritonclient.http, tritonclient.grpc)
]


@pytest.mark.parametrize(("input_kind", "output_kind"), KINDS)
@pytest.mark.parametrize("offset", [0, 4])
def test_tensors_can_be_in_shared_memory(client, region, input_kind, output_kind, offset):
    region.write(VALUES.tobytes(), offset)
    item = input_kind("IN", [2], "FP32")
    item.set_shared_memory("r", 8, offset)
    output = output_kind("OUT")
    output.set_shared_memory("r", 8, 16 + offset)
    result = client.infer("identity", [item], outputs=[output])
    assert region.read(8, 16 + offset) == VALUES.tobytes()
    assert result.as_numpy("OUT") is None
    assert result.get_output("OUT") == {"name": "OUT", "datatype": "FP32", "shape": [2]}
    assert client.infer("identity", [item]).as_numpy("OUT").tolist() == VALUES.tolist()


def test_an_output_can_return_to_the_response(client, region):
    output = InferRequestedOutput("OUT")
    output.set_shared_memory("r", 8)
    output.unset_shared_memory()
    assert (
        client.infer("identity", [fp32()], outputs=[output]).as_numpy("OUT").tolist()
        == VALUES.tolist()
    )
    with pytest.raises(
        InferenceServerException, match="shared memory can't be set on classification output"
    ):
        InferRequestedOutput("OUT", class_count=1).set_shared_memory("r", 8)


def test_regions_are_managed(client, region):
    assert client.get_system_shared_memory_status() == [
        {"name": "r", "key": region.key, "offset": 0, "byte_size": 4096}
    ]
    assert client.get_cuda_shared_memory_status() == []
    with pytest.raises(InferenceServerException, match="already in manager"):
        client.register_system_shared_memory("r", region.key, 8, 0)
    with pytest.raises(InferenceServerException, match="shared memory region"):
        client.register_cuda_shared_memory("c", base64.b64encode(bytes(64)), 0, 8)
    client.unregister_cuda_shared_memory("r")
    client.unregister_system_shared_memory("r")
    assert client.get_system_shared_memory_status() == []
    with pytest.raises(
        InferenceServerException, match="Unable to find cuda shared memory region: 'c'"
    ):
        client.get_cuda_shared_memory_status("c")
    with pytest.raises(
        InferenceServerException, match="Unable to find system shared memory region: 'r'"
    ):
        client.get_system_shared_memory_status("r")


def test_every_field_of_a_request_arrives(engine, client):
    with engine.hold():
        client.async_infer(
            "identity", [fp32()], model_version="1", request_id="an id", sequence_id="s", sequence_start=True, priority=2, timeout=7,
            headers={"x-key": "k"}, parameters={"p": 1.5},
        )  # fmt: skip
        [request] = engine.wait_for_requests(1)
    assert (request.model_version, request.id, request.priority, request.timeout_us) == (
        1,
        "an id",
        2,
        7,
    )
    assert (request.sequence.id, request.sequence.start, request.sequence.end) == ("s", True, False)
    assert (request.headers, request.parameters) == ({"x-key": "k"}, {"p": 1.5})
    assert request.received_ns > 0
    assert not request.accepts_decoupled


def test_a_result_has_the_response(client):
    result = client.infer("identity", [fp32()], request_id="an id")
    assert result.get_response() == {
        "model_name": "identity", "model_version": "1", "id": "an id",
        "outputs": [{"name": "OUT", "datatype": "FP32", "shape": [2]}],
    }  # fmt: skip
    assert result.as_numpy("NONE") is None
    assert result.get_output("NONE") is None


@pytest.mark.parametrize(
    ("model", "text", "status"),
    [
        ("failing", "this model always fails", "INTERNAL"),
        ("unknown", "Request for unknown model: 'unknown' is not found", "INVALID_ARG"),
        (
            "repeat",
            "model 'repeat' is decoupled, but the caller accepts only one response",
            "UNSUPPORTED",
        ),
    ],
)
def test_errors_carry_text_and_status(client, model, text, status):
    with pytest.raises(InferenceServerException) as raised:
        client.infer(model, [fp32()])
    assert (raised.value.message(), raised.value.status()) == (text, status)
    assert str(raised.value) == f"[{status}] {text}"


def test_errors_of_queries_are_the_client_s_exception(client):
    with pytest.raises(InferenceServerException, match="unknown model"):
        client.get_model_metadata("unknown")
    with pytest.raises(InferenceServerException, match="failed to poll"):
        client.load_model("unknown")


@pytest.mark.parametrize("version", ["0", "-1", "one", "1.0"])
def test_a_version_that_is_no_number_is_refused(client, version):
    with pytest.raises(InferenceServerException, match="version should be an integral value > 0"):
        client.infer("identity", [fp32()], model_version=version)


def test_a_client_timeout_cancels_the_request(engine, client):
    with engine.hold(), pytest.raises(InferenceServerException, match="Deadline Exceeded"):
        client.infer("identity", [fp32()], client_timeout=0.01)
    assert client.infer("identity", [fp32()], client_timeout=5).as_numpy("OUT") is not None
    [statistics] = engine.statistics("identity")
    assert statistics.inference_stats.fail.count == 1


def test_an_asynchronous_timeout_cancels_the_request_and_drops_the_late_response(engine, client):
    responses = queue.SimpleQueue()
    with engine.hold():
        call = client.async_infer(
            "identity", [fp32()], lambda result, error: responses.put(error), client_timeout=0.01
        )
        assert responses.get(timeout=WAIT_S).status() == "DEADLINE_EXCEEDED"
    with pytest.raises(InferenceServerException, match="Deadline Exceeded"):
        call.get_result()
    client.async_infer(
        "identity", [fp32()], lambda result, error: responses.put(result), client_timeout=600
    )
    assert responses.get(timeout=WAIT_S).as_numpy("OUT").tolist() == VALUES.tolist()
    assert responses.empty()
    assert not [
        each
        for each in threading.enumerate()
        if isinstance(each, threading.Timer) and not each.finished.is_set()
    ]


def test_an_asynchronous_request_is_awaited_or_cancelled(engine, client):
    with engine.hold():
        call, lost = (client.async_infer("identity", [fp32()]) for _ in range(2))
        with pytest.raises(InferenceServerException, match="failed to obtain"):
            call.get_result(block=False)
        lost.cancel()
        with pytest.raises(InferenceServerException, match="cancelled"):
            lost.get_result()
    assert call.get_result(timeout=5).as_numpy("OUT").tolist() == VALUES.tolist()


def test_a_callback_gets_result_or_error(client):
    done = threading.Semaphore(0)
    called = []

    def callback(result, error):
        called.append((result, error))
        done.release()

    client.async_infer("identity", [fp32()], callback)
    client.async_infer("failing", [fp32()], callback)
    assert done.acquire(timeout=5)
    assert done.acquire(timeout=5)
    (result, no_error), (no_result, error) = called
    assert (no_error, no_result) == (None, None)
    assert result.as_numpy("OUT").tolist() == VALUES.tolist()
    assert error.message() == "this model always fails"


def test_a_callback_that_raises_stops_nothing(client, caplog):
    client.async_infer("identity", [fp32()], lambda result, error: 1 / 0)
    assert client.infer("identity", [fp32()]).as_numpy("OUT") is not None
    assert "callback raised" in caplog.text


def test_a_stream_returns_every_response_of_a_decoupled_model(client):
    responses = ResponseRecorder()
    client.start_stream(responses)
    client.async_stream_infer("repeat", [count(3)], request_id="one")
    client.stop_stream()
    assert [result.as_numpy("OUT").tolist() for result, _ in responses.called] == [[0], [1], [2]]
    assert [result.get_response()["parameters"] for result, _ in responses.called] == [
        {"triton_final_response": False}
    ] * 3


def test_an_empty_final_response_is_delivered_on_request(client):
    responses = ResponseRecorder()
    client.start_stream(responses)
    client.async_stream_infer("repeat", [count(0)], enable_empty_final_response=True)
    client.stop_stream()
    [(result, error)] = responses.called
    assert error is None
    assert result.get_response()["parameters"] == {"triton_final_response": True}


def test_errors_of_a_stream_go_to_the_callback_and_leave_it_open(client):
    responses = ResponseRecorder()
    client.start_stream(responses)
    client.async_stream_infer("unknown", [count(1)])
    client.async_stream_infer("failing", [fp32()])
    client.async_stream_infer("identity", [fp32()])
    client.stop_stream()
    assert [error and error.status() for _, error in responses.called] == [
        "INVALID_ARG",
        "INTERNAL",
        None,
    ]


def test_a_stream_can_be_stopped_by_cancelling(engine, client):
    responses = ResponseRecorder()
    with engine.hold():
        client.start_stream(responses)
        client.async_stream_infer("identity", [fp32()])
        client.stop_stream(cancel_requests=True)
    assert [error.status() for _, error in responses.called] == ["CANCELLED"]


def test_a_client_has_one_stream(client):
    with pytest.raises(InferenceServerException, match="no stream is open"):
        client.async_stream_infer("repeat", [count(1)])
    client.start_stream(ResponseRecorder())
    with pytest.raises(InferenceServerException, match="already open"):
        client.start_stream(ResponseRecorder())


def test_threads_may_share_a_client(client):
    def call(number):
        return client.infer("identity", [fp32(VALUES + number)]).as_numpy("OUT").tolist()

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(call, range(50))) == [
            (VALUES + number).tolist() for number in range(50)
        ]
