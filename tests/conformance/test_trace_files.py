"""The real Triton and tritonpy write the same records into their trace files."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.conformance import grpc_response, http_response
from tests.conformance.exchange import Grpc, Http, Stream, load, post
from tests.conformance.inference import Inference, given, text
from tests.conformance.server import TRITONSERVER, Server, running, triton_command, tritonpy_command
from tests.conformance.trace_files import TraceFiles, out_of_order, structure

MODELS = (
    "add_sub",
    "bls_traced",
    "repeat",
    "trouble",
    "echo_request",
    "joined_line",
    "joined_deeper",
)
FLAGS = (
    "--trace-config=triton,file=traces.json", "--trace-config=triton,log-frequency=1", "--trace-config=rate=1",
    "--trace-config=level=TIMESTAMPS", "--trace-config=level=TENSORS",
)  # fmt: skip
ADDED = {"INPUT0": given("FP32", 1, 2.5, -3, 1e10), "INPUT1": given("FP32", 10, 20, 30, 40)}
JOINED = {"A": given("FP32", 1, 2, 3, 4), "B": given("FP32", 10, 20, 30, 40)}
SETTING = "/v2/trace/setting"
STAMPS_ALONE = {"trace_level": ["TIMESTAMPS"]}
BOTH_LEVELS = {"trace_level": ["TIMESTAMPS", "TENSORS"]}


class TracedServer(NamedTuple):
    """A server and its trace files."""

    server: Server
    files: TraceFiles

    def send(self, step: Http | Grpc | Stream) -> Any:
        if isinstance(step, Http):
            return http_response.send(self.server.ports["http"], step)
        if isinstance(step, Grpc):
            return grpc_response.send(self.server.channel, step)
        return grpc_response.send_stream(self.server.channel, step)

    def set(self, path: str = SETTING, **settings: Any) -> None:
        assert self.send(post(path, settings))["status"] == 200


@pytest.fixture(scope="module")
def servers(
    served_models: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[TracedServer, TracedServer]]:
    """The real Triton and tritonpy; both trace every request to a separate file."""
    if TRITONSERVER not in os.environ:
        pytest.skip(
            f"needs the real tritonserver: set {TRITONSERVER} to its path (tests/conformance/oracle.sh builds it)"
        )
    folders = [tmp_path_factory.mktemp(name) for name in ("triton_traces", "tritonpy_traces")]
    with (
        running(triton_command(), served_models, folders[0] / "log", *FLAGS) as one,
        running(tritonpy_command(), served_models, folders[1] / "log", *FLAGS) as other,
    ):
        found = tuple(
            TracedServer(server, TraceFiles(folder / "traces.json"))
            for server, folder in zip((one, other), folders, strict=True)
        )
        for traced in found:
            for model in MODELS:
                assert traced.send(load(model))["status"] == 200
        yield found


def streamed(*inferences: Inference) -> Stream:
    return Stream(tuple(inference.message() for inference in inferences))


REQUESTS: dict[str, Http | Grpc | Stream] = {
    "JSON": Inference("add_sub", ADDED, id="an id").json(),
    "bytes": Inference("add_sub", ADDED, ("OUTPUT1",), version="1").binary(),
    "gRPC": Inference("add_sub", ADDED).grpc(),
    "generate": post(
        "/v2/models/add_sub/generate",
        {"INPUT0": [1, 2, 3, 4], "INPUT1": [5, 6, 7, 8], "id": "generated"},
    ),
    "a stream": streamed(Inference("add_sub", ADDED, id="streamed")),
    "a decoupled stream of nothing": streamed(
        Inference("repeat", {"IN": given("INT32", shape=(0,))})
    ),
    "a model that calls others": Inference("bls_traced", ADDED, id="outer").json(),
    "a model that calls others, by gRPC": Inference("bls_traced", ADDED).grpc(),
}
ENSEMBLES: dict[str, Http | Grpc] = {
    "JSON": Inference("joined_line", JOINED, id="joined").json(),
    "gRPC": Inference("joined_line", JOINED).grpc(),
    "an ensemble of ensembles": Inference("joined_deeper", JOINED, id="deeper").binary(),
}
DECOUPLED: dict[str, tuple[Http | Stream, int]] = {
    "gRPC": (streamed(Inference("repeat", {"IN": given("INT32", 4, 5, 6)})), 3),
    "generate_stream": (post("/v2/models/repeat/generate_stream", {"IN": [4, 5]}), 2),
}
"""Requests of a decoupled model, and how many answers it gives."""
FAILING: dict[str, Http | Grpc | Stream] = {
    "a failure": Inference("trouble", {"WHAT": text("raises")}, ("OUT",)).json(),
    "a failure, by gRPC": Inference("trouble", {"WHAT": text("error:NOT_FOUND")}, ("OUT",)).grpc(),
}


@pytest.mark.parametrize("name", REQUESTS)
def test_traces_of_a_request_are_identical(
    servers: tuple[TracedServer, TracedServer], name: str
) -> None:
    found = []
    for traced in servers:
        traced.send(REQUESTS[name])
        records = traced.files.next()
        assert out_of_order(records) == []
        found.append(structure(records))
    assert found[1] == found[0]


@pytest.mark.parametrize("name", ENSEMBLES)
def test_traces_of_an_ensemble_and_its_steps_are_identical(
    servers: tuple[TracedServer, TracedServer], name: str
) -> None:
    found = []
    for traced in servers:
        traced.send(ENSEMBLES[name])
        records = traced.files.next()
        assert out_of_order(records) == []
        # the real server passes inputs to a step in the order of a hash table
        found.append(
            [
                {**trace, "tensors": sorted(trace["tensors"], key=str)}
                for trace in structure(records)
            ]
        )
    assert found[1] == found[0]


@pytest.mark.parametrize("name", DECOUPLED)
def test_traces_of_a_decoupled_request_are_identical(
    servers: tuple[TracedServer, TracedServer], name: str
) -> None:
    step, responses = DECOUPLED[name]
    found, outputs = [], []
    for traced in servers:
        traced.send(step)
        (trace,) = structure(traced.files.next())
        outputs.append(
            [tensor for tensor in trace["tensors"] if tensor[0] == "TENSOR_BACKEND_OUTPUT"]
        )
        found.append(
            {
                **trace,
                "tensors": [tensor for tensor in trace["tensors"] if tensor not in outputs[-1]],
            }
        )
    assert found[1] == found[0]
    # the real server loses some: recording a response races with sending it
    assert len(outputs[1]) == 2 * responses
    assert [tensor for tensor in outputs[0] if tensor not in outputs[1]] == []


@pytest.mark.parametrize("name", FAILING)
def test_traces_of_a_failing_request_are_identical(
    servers: tuple[TracedServer, TracedServer], name: str
) -> None:
    found = []
    for traced in servers:
        traced.set(**STAMPS_ALONE)
        traced.send(FAILING[name])
        found.append(structure(traced.files.next()))
        traced.set(**BOTH_LEVELS)
    assert found[1] == found[0]


@pytest.mark.parametrize("level", [["TIMESTAMPS"], ["TENSORS"]], ids=lambda level: level[0])
@pytest.mark.parametrize(
    "path", [SETTING, "/v2/models/add_sub/trace/setting"], ids=["server", "model"]
)
def test_the_trace_level_selects_the_recorded_data(
    servers: tuple[TracedServer, TracedServer], level: list[str], path: str
) -> None:
    found = []
    for traced in servers:
        traced.set(path, trace_level=level)
        traced.send(REQUESTS["JSON"])
        found.append(structure(traced.files.next()))
        traced.set(path, trace_level=None)
    assert found[1] == found[0]
    assert bool(found[1][0]["timestamps"]) == (level == ["TIMESTAMPS"])


def test_frequency_rate_and_count_decide_how_many_traces_are_in_which_file(
    servers: tuple[TracedServer, TracedServer],
) -> None:
    found = []
    for traced in servers:
        traced.set(log_frequency="2")
        counts = []
        for settings, requests, files in (
            ({"trace_rate": "2"}, 4, 1),
            ({"trace_rate": "1", "trace_count": "3"}, 6, 2),
        ):
            traced.set(**settings)
            for _ in range(requests):
                traced.send(REQUESTS["gRPC"])
            counts.append([len(structure(traced.files.next())) for _ in range(files)])
        found.append(counts)
        traced.set(trace_rate=None, trace_count=None, log_frequency=None)
    assert found == [[[2], [2, 1]]] * 2


def test_pending_traces_are_written_when_the_settings_change(
    servers: tuple[TracedServer, TracedServer],
) -> None:
    for traced in servers:
        traced.set(log_frequency="5")
        for _ in range(2):
            traced.send(REQUESTS["gRPC"])
        traced.set(log_frequency=None)
        assert len(structure(traced.files.next())) == 2


def test_nothing_is_written_while_tracing_is_off(
    servers: tuple[TracedServer, TracedServer],
) -> None:
    for traced in servers:
        traced.set(trace_level=["OFF"])
        for step in REQUESTS.values():
            traced.send(step)
        traced.set(trace_level=None)
        before = traced.files.there()
        traced.send(REQUESTS["JSON"])
        traced.files.next()
        assert traced.files.there() == before + 1
