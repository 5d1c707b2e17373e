"""The real Triton and tritonpy write the same into their trace files."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.conformance import grpc_answer, http_answer
from tests.conformance.exchange import Grpc, Http, Stream, load, post
from tests.conformance.inferring import Inference, given, text
from tests.conformance.server import TRITONSERVER, Server, running, triton_command, tritonpy_command
from tests.conformance.trace_files import TraceFiles, out_of_order, structure

MODELS = ("add_sub", "bls_traced", "repeat", "trouble", "echo_request", "joined_line", "joined_deeper")
FLAGS = (
    "--trace-config=triton,file=traces.json", "--trace-config=triton,log-frequency=1", "--trace-config=rate=1",
    "--trace-config=level=TIMESTAMPS", "--trace-config=level=TENSORS",
)  # fmt: skip
ADDED = {"INPUT0": given("FP32", 1, 2.5, -3, 1e10), "INPUT1": given("FP32", 10, 20, 30, 40)}
JOINED = {"A": given("FP32", 1, 2, 3, 4), "B": given("FP32", 10, 20, 30, 40)}
SETTING = "/v2/trace/setting"
STAMPS_ALONE = {"trace_level": ["TIMESTAMPS"]}
BOTH_LEVELS = {"trace_level": ["TIMESTAMPS", "TENSORS"]}


class Asked(NamedTuple):
    """A server and its trace files."""

    server: Server
    files: TraceFiles

    def ask(self, step: Http | Grpc | Stream) -> Any:
        if isinstance(step, Http):
            return http_answer.ask(self.server.ports["http"], step)
        if isinstance(step, Grpc):
            return grpc_answer.ask(self.server.channel, step)
        return grpc_answer.ask_stream(self.server.channel, step)

    def set(self, path: str = SETTING, **settings: Any) -> None:
        assert self.ask(post(path, settings))["status"] == 200


@pytest.fixture(scope="module")
def servers(served_models: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Asked, Asked]]:
    """The real Triton and tritonpy, both of which trace every request to a file of its own."""
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
            Asked(server, TraceFiles(folder / "traces.json"))
            for server, folder in zip((one, other), folders, strict=True)
        )
        for asked in found:
            for model in MODELS:
                assert asked.ask(load(model))["status"] == 200
        yield found


def streamed(*inferences: Inference) -> Stream:
    return Stream(tuple(inference.message() for inference in inferences))


REQUESTS: dict[str, Http | Grpc | Stream] = {
    "JSON": Inference("add_sub", ADDED, id="an id").json(),
    "bytes": Inference("add_sub", ADDED, ("OUTPUT1",), version="1").binary(),
    "gRPC": Inference("add_sub", ADDED).grpc(),
    "generate": post(
        "/v2/models/add_sub/generate", {"INPUT0": [1, 2, 3, 4], "INPUT1": [5, 6, 7, 8], "id": "generated"}
    ),
    "a stream": streamed(Inference("add_sub", ADDED, id="streamed")),
    "a decoupled stream of nothing": streamed(Inference("repeat", {"IN": given("INT32", shape=(0,))})),
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
def test_the_traces_of_a_request_are_alike(servers: tuple[Asked, Asked], name: str) -> None:
    found = []
    for asked in servers:
        asked.ask(REQUESTS[name])
        records = asked.files.next()
        assert out_of_order(records) == []
        found.append(structure(records))
    assert found[1] == found[0]


@pytest.mark.parametrize("name", ENSEMBLES)
def test_the_traces_of_an_ensemble_and_its_steps_are_alike(servers: tuple[Asked, Asked], name: str) -> None:
    found = []
    for asked in servers:
        asked.ask(ENSEMBLES[name])
        records = asked.files.next()
        assert out_of_order(records) == []
        # the real server hands a step its inputs in the order of a hash table
        found.append([{**told, "tensors": sorted(told["tensors"], key=str)} for told in structure(records)])
    assert found[1] == found[0]


@pytest.mark.parametrize("name", DECOUPLED)
def test_the_traces_of_a_decoupled_request_are_alike(servers: tuple[Asked, Asked], name: str) -> None:
    step, answers = DECOUPLED[name]
    found, outputs = [], []
    for asked in servers:
        asked.ask(step)
        (told,) = structure(asked.files.next())
        outputs.append([tensor for tensor in told["tensors"] if tensor[0] == "TENSOR_BACKEND_OUTPUT"])
        found.append({**told, "tensors": [tensor for tensor in told["tensors"] if tensor not in outputs[-1]]})
    assert found[1] == found[0]
    # the real server loses some: what it notes of an answer is a race with its sending
    assert len(outputs[1]) == 2 * answers
    assert [tensor for tensor in outputs[0] if tensor not in outputs[1]] == []


@pytest.mark.parametrize("name", FAILING)
def test_the_traces_of_a_failing_request_are_alike(servers: tuple[Asked, Asked], name: str) -> None:
    found = []
    for asked in servers:
        asked.set(**STAMPS_ALONE)
        asked.ask(FAILING[name])
        found.append(structure(asked.files.next()))
        asked.set(**BOTH_LEVELS)
    assert found[1] == found[0]


@pytest.mark.parametrize("level", [["TIMESTAMPS"], ["TENSORS"]], ids=lambda level: level[0])
@pytest.mark.parametrize("path", [SETTING, "/v2/models/add_sub/trace/setting"], ids=["server", "model"])
def test_a_level_decides_what_is_noted(servers: tuple[Asked, Asked], level: list[str], path: str) -> None:
    found = []
    for asked in servers:
        asked.set(path, trace_level=level)
        asked.ask(REQUESTS["JSON"])
        found.append(structure(asked.files.next()))
        asked.set(path, trace_level=None)
    assert found[1] == found[0]
    assert bool(found[1][0]["timestamps"]) == (level == ["TIMESTAMPS"])


def test_frequency_rate_and_count_decide_how_many_traces_are_in_which_file(servers: tuple[Asked, Asked]) -> None:
    found = []
    for asked in servers:
        asked.set(log_frequency="2")
        counts = []
        for settings, requests, files in (({"trace_rate": "2"}, 4, 1), ({"trace_rate": "1", "trace_count": "3"}, 6, 2)):
            asked.set(**settings)
            for _ in range(requests):
                asked.ask(REQUESTS["gRPC"])
            counts.append([len(structure(asked.files.next())) for _ in range(files)])
        found.append(counts)
        asked.set(trace_rate=None, trace_count=None, log_frequency=None)
    assert found == [[[2], [2, 1]]] * 2


def test_what_is_left_is_written_when_the_settings_change(servers: tuple[Asked, Asked]) -> None:
    for asked in servers:
        asked.set(log_frequency="5")
        for _ in range(2):
            asked.ask(REQUESTS["gRPC"])
        asked.set(log_frequency=None)
        assert len(structure(asked.files.next())) == 2


def test_where_tracing_is_off_nothing_is_written(servers: tuple[Asked, Asked]) -> None:
    for asked in servers:
        asked.set(trace_level=["OFF"])
        for step in REQUESTS.values():
            asked.ask(step)
        asked.set(trace_level=None)
        before = asked.files.there()
        asked.ask(REQUESTS["JSON"])
        asked.files.next()
        assert asked.files.there() == before + 1
