from __future__ import annotations

import asyncio
import logging

import numpy as np
import pytest
import tritonclient.grpc as sync_client
import tritonclient.grpc.aio as aio_client

from tritonpy_frontend_grpc import delays
from tritonpy_frontend_grpc.delays import Delays, delays_in
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
    assert delays_in({"TRITONSERVER_DELAY_SCHEDULER": "4"}, LOG) is None
    assert delays.delayed_service({}, LOG) is InferenceService


def test_variables_add_up_by_the_place_where_they_hold_a_call_up():
    assert delays_in(VARIABLES, LOG) == Delays(1.5, 2.5, 3.0, 4.0)


@pytest.mark.parametrize(("text", "said"), [("soon", True), ("-5", False)])
def test_what_is_no_delay_counts_as_none(text, said, caplog):
    assert delays_in({"TRITONSERVER_DELAY_GRPC_PROCESS": text}, LOG) is None
    assert ("Unable to parse the debug variable TRITONSERVER_DELAY_GRPC_PROCESS" in caplog.text) is said


@pytest.fixture
def pauses(monkeypatch):
    """The pauses that a server makes with all variables set; they pass at once."""
    made = []

    async def pause(seconds):
        made.append(seconds)
        await asyncio.sleep(0)

    for name, value in VARIABLES.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(delays, "sleep", pause)
    return made


def test_calls_pause_where_the_variables_say(pauses):
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


def test_streams_pause_before_each_request_and_each_answer(pauses):
    async def asked():
        for number in range(2):
            yield {"model_name": "identity", "inputs": numbers(), "request_id": str(number)}

    async def scenario():
        async with (
            serving(FakeEngine()) as frontend,
            aio_client.InferenceServerClient(frontend.address()) as client,
        ):
            answers = [result.get_response().id async for result, _ in client.stream_infer(asked())]
            assert answers == ["0", "1"]
            assert sorted(pause for pause in pauses if pause) == [1.5, 1.5, 3.0, 3.0]

    run(scenario)
