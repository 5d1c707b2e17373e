"""Messages are freed with their response, without garbage collection."""

from __future__ import annotations

import gc
import logging
import tracemalloc
from contextlib import asynccontextmanager

import grpc
import numpy as np
import pytest

from tritonpy import Internal
from tritonpy_protos.grpc_service_pb2 import ModelInferRequest, RepositoryModelLoadRequest

from .fake_engine import FakeEngine, eventually, run, serving

SIZE, CALLS = 2**20, 16
INFER, STREAM, LOAD = (
    f"/inference.GRPCInferenceService/{name}"
    for name in ("ModelInfer", "ModelStreamInfer", "RepositoryModelLoad")
)


def request(model):
    message = ModelInferRequest(model_name=model, raw_input_contents=[bytes(SIZE)])
    message.inputs.add(name="IN", datatype="UINT8", shape=[SIZE])
    return message.SerializeToString()


def loading():
    message = RepositoryModelLoadRequest(model_name="bad")
    message.parameters["file:1/model"].bytes_param = bytes(SIZE)
    return message.SerializeToString()


@asynccontextmanager
async def nothing_retained():
    """Fail if the code inside leaves the bytes of several calls to the garbage collector.

    The threads of grpc may release the last few calls later.
    """
    gc.collect()
    gc.disable()
    tracemalloc.start()
    try:
        yield
        await eventually(lambda: tracemalloc.get_traced_memory()[0] < 4 * SIZE)
    finally:
        tracemalloc.stop()
        gc.enable()


@pytest.fixture
def unlogged():
    """Disable logging: pytest would retain log records and their tracebacks."""
    logging.disable()
    yield
    logging.disable(logging.NOTSET)


class StatelessEngine(FakeEngine):
    """An engine that does not record calls."""

    def load_model(self, name, config=None, files=None, versions=()):
        raise Internal(f"failed to load '{name}'")


class ChainingEngine(StatelessEngine):
    """An engine that raises errors with causes."""

    def infer(self, request):
        try:
            super().infer(request)
        except Exception as error:
            raise Internal("it did not work") from error


@pytest.mark.parametrize("engine", [StatelessEngine, ChainingEngine])
@pytest.mark.parametrize(
    ("path", "sent"),
    [
        (INFER, request("nowhere")),
        (INFER, request("broken")),
        (INFER, request("failing")),
        (LOAD, loading()),
    ],
)
def test_a_refused_call_retains_no_memory(engine, path, sent, unlogged):
    async def scenario():
        async with (
            serving(engine()) as frontend,
            grpc.aio.insecure_channel(frontend.address()) as channel,
            nothing_retained(),
        ):
            for _ in range(CALLS):
                with pytest.raises(grpc.RpcError):
                    await channel.unary_unary(path)(bytes(sent))

    run(scenario)


@pytest.mark.parametrize("model", ["identity", "nowhere", "failing"])
def test_an_open_stream_retains_no_finished_requests(model):
    async def scenario():
        async with (
            serving(FakeEngine()) as frontend,
            grpc.aio.insecure_channel(frontend.address()) as channel,
        ):
            call = channel.stream_stream(STREAM)()
            sent = request(model)
            async with nothing_retained():
                for _ in range(CALLS):
                    await call.write(sent)
                    assert await call.read()
            await call.done_writing()

    run(scenario)


def test_tracemalloc_counts_numpy_arrays():
    tracemalloc.start()
    try:
        kept = [np.ones(SIZE, np.uint8) for _ in range(CALLS)]
        assert tracemalloc.get_traced_memory()[0] >= CALLS * SIZE
    finally:
        tracemalloc.stop()
    assert len(kept) == CALLS
