"""Traces of a whole server, received by a collector."""

from __future__ import annotations

import contextlib
import http.client
import json
from collections.abc import Iterator
from typing import Any

import grpc
import pytest

from tritonpy.tracing import TraceChanges
from tritonpy_protos import grpc_service_pb2 as pb
from tritonpy_testing import ModelRepository, RunningServer, running_server

from .collector import Collector, running_collector

CALLER = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
TRACE_ID = bytes.fromhex(CALLER.split("-")[1])
CONFIG = """
backend: "python"
input { name: "IN" data_type: TYPE_INT32 dims: 1 } output { name: "OUT" data_type: TYPE_STRING dims: 1 }
"""
CALLED = """
import numpy as np
import triton_python_backend_utils as pb_utils

class TritonPythonModel:
    def execute(self, requests):
        return [self.answer(request) for request in requests]

    def answer(self, request):
        context = np.array([(request.trace().get_context() or "none").encode()], np.object_)
        return pb_utils.InferenceResponse([pb_utils.Tensor("OUT", context)])
"""
CALLING = CALLED.replace(
    """        context = np.array([(request.trace().get_context() or "none").encode()], np.object_)
""",
    """        made = pb_utils.InferenceRequest(
            model_name="called", inputs=request.inputs(), requested_output_names=["OUT"], trace=request.trace())
        inner = pb_utils.get_output_tensor_by_name(made.exec(), "OUT").as_numpy()[0]
        context = np.array([request.trace().get_context().encode() + b"\\n" + inner], np.object_)
""",
)


@pytest.fixture(scope="module")
def collector() -> Iterator[Collector]:
    with running_collector() as found:
        yield found


@pytest.fixture(scope="module", autouse=True)
def server(
    tmp_path_factory: pytest.TempPathFactory, collector: Collector
) -> Iterator[RunningServer]:
    repository = ModelRepository(tmp_path_factory.mktemp("models"))
    for name, code in (("called", CALLED), ("calling", CALLING)):
        repository.add(name, config=CONFIG, versions={1: {"model.py": code}})
    options = {"url": collector.url, "bsp_schedule_delay": 10, "resource": ["service.name=mine"]}
    config = {
        "repositories": [{"url": str(repository.path)}],
        "frontends": {"http": {"port": 0}, "grpc": {"port": 0}, "metrics": False},
        "trace": {
            "mode": "opentelemetry",
            "level": ["TIMESTAMPS"],
            "rate": 0,
            "modes": {"opentelemetry": options},
        },
    }
    with running_server(config) as found:
        yield found


@pytest.fixture(scope="module")
def ports(server: RunningServer) -> dict[str, int]:
    return {name: int(getattr(server, name).rpartition(":")[2]) for name in ("http", "grpc")}


def send(port: int, path: str, body: object, **headers: str) -> Any:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    with contextlib.closing(connection):
        connection.request("POST", path, json.dumps(body), headers)
        return json.load(connection.getresponse())


def post(port: int, model: str, **headers: str) -> str:
    body = {"inputs": [{"name": "IN", "datatype": "INT32", "shape": [1], "data": [1]}]}
    return str(send(port, f"/v2/models/{model}/infer", body, **headers)["outputs"][0]["data"][0])


def by_name(found: list[tuple[dict[str, str], Any]]) -> dict[str, list[Any]]:
    spans: dict[str, list[Any]] = {}
    for _, span in found:
        spans.setdefault(span.name, []).append(span)
    return spans


def test_a_call_by_http_and_the_model_that_it_calls_are_one_trace(
    collector: Collector, ports: dict[str, int]
) -> None:
    outer, inner = (
        json.loads(text)["traceparent"].split("-")
        for text in post(ports["http"], "calling", traceparent=CALLER).split("\n")
    )
    found = collector.take(5)
    spans = by_name(found)
    assert {resource["service.name"] for resource, _ in found} == {"mine"}
    assert {span.trace_id for _, span in found} == {TRACE_ID}
    (root,), (calling,), (called,) = spans["InferRequest"], spans["calling"], spans["called"]
    assert root.parent_span_id.hex() == CALLER.split("-")[2]
    assert calling.parent_span_id == root.span_id
    assert called.parent_span_id == calling.span_id
    assert {span.parent_span_id for span in spans["compute"]} == {calling.span_id, called.span_id}
    assert (outer[1], outer[2]) == (TRACE_ID.hex(), calling.span_id.hex())
    assert inner[2] == called.span_id.hex()
    assert [event.name for event in root.events] == [
        "HTTP_RECV_START", "HTTP_RECV_END", "INFER_RESPONSE_COMPLETE", "HTTP_SEND_START", "HTTP_SEND_END",
    ]  # fmt: skip
    assert root.start_time_unix_nano <= calling.start_time_unix_nano <= called.start_time_unix_nano
    assert called.end_time_unix_nano <= calling.end_time_unix_nano <= root.end_time_unix_nano


@pytest.mark.parametrize("streamed", [False, True], ids=["unary", "stream"])
def test_a_call_by_grpc_continues_the_trace_of_its_metadata(
    collector: Collector, ports: dict[str, int], streamed: bool
) -> None:
    message = pb.ModelInferRequest(model_name="called", raw_input_contents=[b"\x01\x00\x00\x00"])
    message.inputs.add(name="IN", datatype="INT32", shape=[1])
    metadata = (("traceparent", CALLER),)
    with grpc.insecure_channel(f"127.0.0.1:{ports['grpc']}") as channel:
        path = "/inference.GRPCInferenceService/"
        if streamed:
            stream = channel.stream_stream(
                f"{path}ModelStreamInfer",
                response_deserializer=pb.ModelStreamInferResponse.FromString,
            )
            (response,) = [
                one.infer_response
                for one in stream(
                    iter([message.SerializeToString()]), metadata=metadata, timeout=20
                )
            ]
        else:
            unary = channel.unary_unary(
                f"{path}ModelInfer", response_deserializer=pb.ModelInferResponse.FromString
            )
            response = unary(message.SerializeToString(), metadata=metadata, timeout=20)
    spans = by_name(collector.take(3))
    (root,), (called,) = spans["InferRequest"], spans["called"]
    assert (root.trace_id, root.parent_span_id.hex()) == (TRACE_ID, CALLER.split("-")[2])
    assert called.span_id.hex().encode() in response.raw_output_contents[0]
    assert [event.name for event in root.events] == [
        "GRPC_WAITREAD_START", "GRPC_WAITREAD_END", "INFER_RESPONSE_COMPLETE", "GRPC_SEND_START", "GRPC_SEND_END",
    ]  # fmt: skip


def test_a_rate_of_zero_traces_only_requests_with_a_header(
    collector: Collector, ports: dict[str, int]
) -> None:
    assert post(ports["http"], "called") == "none"
    settings = send(ports["http"], "/v2/trace/setting", {"trace_rate": "1"})
    assert (settings["trace_mode"], settings["trace_rate"], settings["url"]) == (
        "opentelemetry",
        "1",
        collector.url,
    )
    assert "traceparent" in post(ports["http"], "called")
    spans = by_name(collector.take(3))
    assert spans["InferRequest"][0].parent_span_id == b""


def test_an_invalid_header_is_ignored(ports: dict[str, int], server: RunningServer) -> None:
    server.engine.change_trace_settings(TraceChanges(level=[]))
    server.engine.change_trace_settings(TraceChanges(level=None, rate=1000))
    assert post(ports["http"], "called", traceparent="nonsense") == "none"
