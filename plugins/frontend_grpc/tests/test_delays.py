from __future__ import annotations

import asyncio
import logging

import numpy as np
import pytest
import tritonclient.grpc as sync_client
import tritonclient.grpc.aio as aio_client

from tritonpy_frontend_grpc import delays
from tritonpy_frontend_grpc.delays import Delays, read_delays
from tritonpy_frontend_grpc.service import InferenceService

from .fake_engine import FakeEngine, run, serving

LOG = logging.getLogger("test")
VARIABLES = {
    "TRITONSERVER_DELAY_GRPC_PROCESS_ENTRY": "1000",
    "TRITONSERVER_DELAY_GRPC_PROCESS": "500",
    "TRITONSERVER_DELAY_RESPONSE_COMPLETE_EXEC": "1000",
    "TRITONSERVER_DELAY_GRPC_ENQUEUE": "1000",
    "TRITONSERVER_DELAY_GRPC_COMPLETE": "500",
    "TRITONSERVER_DELAY_GRPC_RESPONSE": "3000",
    "TRITONSERVER_SERVER_DELAY_GRPC_RESPONSE_SEC": "4",
}


def numbers():
    data = np.arange(4, dtype=np.int32)
    return [sync_client.InferInput("X", [4], "INT32").set_data_from_numpy(data)]


def test_without_a_variable_there_is_no_delay():
    assert read_delays({"TRITONSERVER_DELAY_SCHEDULER": "4"}, LOG) is None
    assert delays.delayed_service({}, LOG) is InferenceService


def test_delays_of_the_same_step_are_added():
    assert read_delays(VARIABLES, LOG) == Delays(1.5, 2.5, 3.0, 4.0)


@pytest.mark.parametrize(("text", "is_logged"), [("soon", True), ("-5", False)])
def test_an_invalid_delay_counts_as_zero(text, is_logged, caplog):
    assert read_delays({"TRITONSERVER_DELAY_GRPC_PROCESS": text}, LOG) is None
    assert (
        "Unable to parse the debug variable TRITONSERVER_DELAY_GRPC_PROCESS" in caplog.text
    ) is is_logged


@pytest.fixture
def pauses(monkeypatch):
    """The delays of a server with all variables set; they end immediately."""
    made = []

    async def pause(seconds):
        made.append(seconds)
        await asyncio.sleep(0)

    for name, value in VARIABLES.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(delays, "sleep", pause)
    return made


def test_calls_are_delayed_as_configured(pauses):
    async def scenario():
        async with (
            serving(FakeEngine()) as frontend,
            aio_client.InferenceServerClient(frontend.address()) as client,
        ):
            assert await client.is_server_live()
            assert pauses == [4.0]
            result = await client.infer("identity", numbers())
            assert result.as_numpy("X").tolist() == [0, 1, 2, 3]
            assert pauses == [4.0, 1.5, 2.5]

    run(scenario)


def test_streams_are_delayed_before_each_request_and_response(pauses):
    async def infer_request():
        for number in range(2):
            yield {"model_name": "identity", "inputs": numbers(), "request_id": str(number)}

    async def scenario():
        async with (
            serving(FakeEngine()) as frontend,
            aio_client.InferenceServerClient(frontend.address()) as client,
        ):
            answers = [
                result.get_response().id async for result, _ in client.stream_infer(infer_request())
            ]
            assert answers == ["0", "1"]
            assert sorted(pause for pause in pauses if pause) == [1.5, 1.5, 3.0, 3.0]

    run(scenario)
