"""Calls that are told of, on any transport: `serve` makes a server of its own; a module of tests takes these in."""

from __future__ import annotations

import gzip
import logging

import pytest

from tritonpy_protos import SERVICE
from tritonpy_protos import grpc_service_pb2 as pb

from ...fake_engine import eventually, run
from .frames import frame
from .messages import asked

LOG = "tritonpy.grpc"


@pytest.fixture
def told(serve, caplog):
    """Return a function that runs `use(server)` and gives each line with its model, once there are so many."""
    caplog.set_level(logging.DEBUG, LOG)

    def ask(use, count):
        async def scenario():
            await use(serve())
            await eventually(lambda: len(caplog.records) >= count)

        run(scenario)
        return [
            (record.message.removeprefix(f"/{SERVICE}/"), getattr(record, "model", None)) for record in caplog.records
        ]

    return ask


def test_an_inference_is_told_of_with_its_model_and_status(told):
    async def use(server):
        for body in (
            frame(asked()),
            frame(asked("nobody")),
            frame(gzip.compress(asked()), 1),
            frame(b"\xff no message"),
        ):
            await server.stream("ModelInfer", body=body, grpc_encoding=b"gzip").outcome()

    assert told(use, 4) == [
        ("ModelInfer: OK", "identity"),
        ("ModelInfer: INVALID_ARGUMENT", "nobody"),
        ("ModelInfer: OK", "identity"),
        ("ModelInfer: INVALID_ARGUMENT", None),
    ]


def test_other_calls_are_told_of(told):
    async def use(server):
        await server.stream("ModelMetadata", pb.ModelMetadataRequest(name="identity").SerializeToString()).outcome()
        await server.stream("ModelStreamInfer", asked(), asked()).outcome()
        await server.stream("/grpc.health.v1.Health/Check", b"").outcome()

    assert told(use, 3) == [
        ("ModelMetadata: OK", "identity"),
        ("ModelStreamInfer: OK", None),
        ("/grpc.health.v1.Health/Check: OK", None),
    ]


def test_who_leaves_is_told_of_as_cancelled(told):
    async def use(server):
        stream = server.stream("ModelStreamInfer", asked("later"), ended=False)
        infer = server.stream("ModelInfer", asked("later"))
        await eventually(lambda: len(server.engine.held) == 2)
        stream.leave()
        infer.leave()

    assert sorted(told(use, 2)) == [("ModelInfer: CANCELLED", "later"), ("ModelStreamInfer: CANCELLED", None)]


def test_a_method_that_does_not_exist_is_not_told_of(told):
    async def use(server):
        await server.stream("/what/ever", b"").outcome()

    assert told(use, 0) == []


def test_nothing_is_told_where_that_is_not_wanted(serve, caplog):
    async def scenario():
        await serve().stream("ModelInfer", asked()).outcome()

    run(scenario)
    assert not caplog.records
