"""gRPC through a real Envoy, with real clients."""

from __future__ import annotations

import queue
import signal

import grpc
import numpy as np
import pytest
import tritonclient.grpc as client_module
from google.protobuf.descriptor_pool import DescriptorPool
from grpc_health.v1.health_pb2 import HealthCheckRequest, HealthCheckResponse
from grpc_health.v1.health_pb2_grpc import HealthStub
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import ProtoReflectionDescriptorDatabase
from tritonclient.utils import InferenceServerException

from tritonpy_protos import METHODS, SERVICE

from ..serving import COUNTING, PATIENCE_S, WAITING

MEGABYTES = 16


@pytest.fixture
def served(start, models):
    models.add("identity")
    models.add("waiting", WAITING)
    models.add("counting", COUNTING, answered="TYPE_INT32", more="model_transaction_policy { decoupled: true }")
    return start(f"--model-repository={models.path}")


@pytest.fixture
def client(served):
    with client_module.InferenceServerClient(f"127.0.0.1:{served.ports['grpc']}") as connection:
        yield connection


@pytest.fixture
def channel(served):
    with grpc.insecure_channel(f"127.0.0.1:{served.ports['grpc']}") as connection:
        yield connection


def numbers(count=4):
    data = np.arange(count, dtype=np.float32)
    return [client_module.InferInput("IN", [count], "FP32").set_data_from_numpy(data)]


def test_tensors_of_every_size_pass_both_ways_compressed_or_not(client):
    for algorithm in (None, "gzip", "deflate"):
        for count in (1, 10_000, MEGABYTES * 2**18):
            result = client.infer("identity", numbers(count), compression_algorithm=algorithm)
            np.testing.assert_array_equal(result.as_numpy("OUT"), np.arange(count, dtype=np.float32))


def test_many_calls_of_one_connection_run_at_once(client):
    answers = queue.Queue()
    for _ in range(500):
        client.async_infer("identity", numbers(), lambda result, error: answers.put((result, error)))
    for _ in range(500):
        result, error = answers.get(timeout=PATIENCE_S)
        assert error is None
        assert result.as_numpy("OUT").tolist() == [0, 1, 2, 3]


def test_a_stream_answers_in_order_and_any_number_of_times(client):
    answers = queue.Queue()
    client.start_stream(lambda result, error: answers.put((result, error)))
    for at in range(100):
        client.async_stream_infer("identity", numbers(), request_id=str(at))
    found = [answers.get(timeout=PATIENCE_S) for _ in range(100)]
    assert [result.get_response().id for result, _ in found] == [str(at) for at in range(100)]
    client.async_stream_infer("counting", numbers())
    counted = [answers.get(timeout=PATIENCE_S)[0].as_numpy("OUT").tolist() for _ in range(3)]
    assert counted == [[0], [1], [2]]
    client.stop_stream()


def test_errors_have_their_status_and_their_text(client):
    for model, status, text in (
        ("nobody", "StatusCode.INVALID_ARGUMENT", "Request for unknown model: 'nobody' is not found"),
        (
            "counting",
            "StatusCode.UNIMPLEMENTED",
            "ModelInfer RPC doesn't support models with decoupled transaction policy",
        ),
    ):
        with pytest.raises(InferenceServerException) as error:
            client.infer(model, numbers())
        assert (error.value.status(), error.value.message()) == (status, text)


def test_a_deadline_that_passes_cancels_the_request(client, models, served):
    with pytest.raises(InferenceServerException, match="Deadline Exceeded"):
        client.infer("waiting", numbers(), client_timeout=1)
    served.until((models.path / "waiting/1/cancelled").exists, "the model was told")


def test_a_client_that_cancels_cancels_its_request(client, models, served):
    answers = queue.Queue()
    call = client.async_infer("waiting", numbers(), lambda result, error: answers.put(error))
    served.until((models.path / "waiting/1/entered").exists, "the request is being executed")
    call.cancel()
    assert "Locally cancelled" in str(answers.get(timeout=PATIENCE_S))
    served.until((models.path / "waiting/1/cancelled").exists, "the model was told")


def test_reflection_describes_every_service(channel):
    database = ProtoReflectionDescriptorDatabase(channel)
    pool = DescriptorPool(database)
    assert sorted(database.get_services()) == sorted(
        ["grpc.health.v1.Health", "grpc.reflection.v1alpha.ServerReflection", SERVICE]
    )
    assert list(pool.FindServiceByName(SERVICE).methods_by_name) == [method.name for method in METHODS]


def test_a_watcher_sees_the_server_end(channel, served, client, models):
    answers = queue.Queue()
    client.async_infer("waiting", numbers(), lambda result, error: answers.put((result, error)))
    served.until((models.path / "waiting/1/entered").exists, "the request is being executed")
    watch = HealthStub(channel).Watch(HealthCheckRequest(), timeout=PATIENCE_S)
    assert next(watch).status == HealthCheckResponse.SERVING
    served.process.send_signal(signal.SIGTERM)
    assert next(watch).status == HealthCheckResponse.NOT_SERVING
    (models.path / "waiting/1/open").touch()
    assert answers.get(timeout=PATIENCE_S)[0].as_numpy("OUT").tolist() == [0, 1, 2, 3]
    assert list(watch) == []
    assert served.until_ended() == 0


def test_a_method_that_does_not_exist_and_bytes_that_are_no_message_are_told_so(channel):
    for path, sent, status in (
        ("/x.Y/Z", b"", grpc.StatusCode.UNIMPLEMENTED),
        (f"/{SERVICE}/Nothing", b"", grpc.StatusCode.UNIMPLEMENTED),
        (f"/{SERVICE}/ModelInfer", b"\xff\xff", grpc.StatusCode.INVALID_ARGUMENT),
        (f"/{SERVICE}/ServerMetadata", b"\xff\xff", grpc.StatusCode.INVALID_ARGUMENT),
    ):
        with pytest.raises(grpc.RpcError) as error:
            channel.unary_unary(path)(sent, timeout=PATIENCE_S)
        assert error.value.code() is status
