"""The request log."""

from __future__ import annotations

import gzip
import logging

import pytest

from tritonpy_protos import SERVICE
from tritonpy_protos import grpc_service_pb2 as pb

from ..fake_engine import eventually, run
from .messages import frame, infer_request

LOG = "tritonpy.grpc"


@pytest.fixture
def logged_lines(serve, caplog):
    """Return a function that runs `use(server)` and returns `count` lines with models."""
    caplog.set_level(logging.DEBUG, LOG)

    def collect(use, count):
        async def scenario():
            await use(serve())
            await eventually(lambda: len(caplog.records) >= count)

        run(scenario)
        return [
            (record.message.removeprefix(f"/{SERVICE}/"), getattr(record, "model", None))
            for record in caplog.records
        ]

    return collect


def test_an_inference_is_logged_with_model_and_status(logged_lines):
    async def use(server):
        for body in (
            frame(infer_request()),
            frame(infer_request("unknown")),
            frame(gzip.compress(infer_request()), 1),
            frame(b"\xff no message"),
        ):
            await server.stream("ModelInfer", body=body, grpc_encoding=b"gzip").outcome()

    assert logged_lines(use, 4) == [
        ("ModelInfer: OK", "identity"),
        ("ModelInfer: INVALID_ARGUMENT", "unknown"),
        ("ModelInfer: OK", "identity"),
        ("ModelInfer: INVALID_ARGUMENT", None),
    ]


def test_other_calls_are_logged(logged_lines):
    async def use(server):
        await server.stream(
            "ModelMetadata", pb.ModelMetadataRequest(name="identity").SerializeToString()
        ).outcome()
        await server.stream("ModelStreamInfer", infer_request(), infer_request()).outcome()
        await server.stream("/grpc.health.v1.Health/Check", b"").outcome()

    assert logged_lines(use, 3) == [
        ("ModelMetadata: OK", "identity"),
        ("ModelStreamInfer: OK", None),
        ("/grpc.health.v1.Health/Check: OK", None),
    ]


def test_abandoned_calls_are_logged_as_cancelled(logged_lines):
    async def use(server):
        stream = server.stream("ModelStreamInfer", infer_request("later"), ended=False)
        infer = server.stream("ModelInfer", infer_request("later"))
        await eventually(lambda: len(server.engine.held) == 2)
        stream.leave()
        infer.leave()

    assert sorted(logged_lines(use, 2)) == [
        ("ModelInfer: CANCELLED", "later"),
        ("ModelStreamInfer: CANCELLED", None),
    ]


def test_unknown_methods_are_not_logged(logged_lines):
    async def use(server):
        await server.stream("/unknown/Method", b"").outcome()

    assert logged_lines(use, 0) == []


def test_nothing_is_logged_by_default(serve, caplog):
    async def scenario():
        await serve().stream("ModelInfer", infer_request()).outcome()

    run(scenario)
    assert not caplog.records
