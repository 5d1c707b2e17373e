"""The load generator for gRPC: every request differs, and a failed call is counted."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from bench import models, payloads, varied_grpc
from tritonpy import running_server
from tritonpy.config import decode_server_config
from tritonpy_protos import grpc_service_pb2 as pb
from tritonpy_testing import free_port


def test_requests_differ_in_id_and_data() -> None:
    template = varied_grpc.Template(payloads.add_sub().frame[5:])
    for number in (7, 8):
        body = template.body(number)
        assert body[:5] == (len(body) - 5).to_bytes(5, "big")
        message = pb.ModelInferRequest.FromString(body[5:])
        assert int(message.id) == number
        assert message.raw_input_contents[1][-8:] == number.to_bytes(8, "little")


@contextmanager
def serving(folder: Path) -> Iterator[int]:
    models.write_onnx(folder)
    port = free_port()
    config = {
        "repositories": [{"url": str(folder)}],
        "frontends": {"grpc": {"port": port}},
    }
    with running_server(decode_server_config(config)):
        yield port


@pytest.mark.parametrize("in_flight", [1, 16])
def test_a_server_answers_every_request(in_flight: int, tmp_path: Path) -> None:
    with serving(tmp_path) as port:
        message = payloads.add_sub().frame[5:]
        found = asyncio.run(varied_grpc.run(port, message, in_flight, 0.3))
    assert (found["failures"], found["error"]) == (0, "")
    assert found["count"] >= in_flight
    assert 0 < found["p50_us"] <= found["p99_us"]


def test_calls_of_an_unknown_model_are_failures(tmp_path: Path) -> None:
    with serving(tmp_path) as port:
        message = payloads.add_sub("unknown").frame[5:]
        found = asyncio.run(varied_grpc.run(port, message, 1, 0.1))
    assert found["failures"] == found["count"] > 0
    assert "Request for unknown model: 'unknown'" in found["error"]
