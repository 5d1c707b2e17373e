from __future__ import annotations

import asyncio
import logging
import threading

import grpc
import numpy as np
import pytest
import tritonclient.grpc as sync_client
import tritonclient.grpc.aio as aio_client
from hypothesis import given
from hypothesis import strategies as st
from tritonclient.utils import InferenceServerException

from tritonpy import InvalidArgument
from tritonpy_frontend_grpc.service import InflightCounter, parse_message
from tritonpy_protos.grpc_service_pb2 import ModelReadyRequest

from .fake_engine import FakeEngine, eventually, number, run, serving


def numbers(count=4, name="X"):
    data = np.arange(count, dtype=np.int32)
    return [sync_client.InferInput(name, [count], "INT32").set_data_from_numpy(data)]


def with_sync_client(use, engine=None):
    """Run `use(client)` in a thread against a running server."""

    def in_thread(address):
        with sync_client.InferenceServerClient(address) as client:
            use(client)

    async def scenario():
        async with serving(engine or FakeEngine()) as frontend:
            await asyncio.to_thread(in_thread, frontend.address())

    run(scenario)


def with_aio_client(use, engine=None):
    """Run `use(client, frontend)` on the event loop of a running server."""

    async def scenario():
        async with (
            serving(engine or FakeEngine()) as frontend,
            aio_client.InferenceServerClient(frontend.address()) as client,
        ):
            await use(client, frontend)

    run(scenario)


def test_the_client_reads_health_metadata_configuration_and_statistics():
    def use(client):
        assert client.is_server_live()
        assert client.is_server_ready()
        assert client.is_model_ready("identity")
        assert not client.is_model_ready("identity", "2")
        assert client.get_server_metadata().extensions == ["classification", "sequence"]
        assert client.get_model_metadata("identity").inputs[0].shape == [-1, 4]
        assert client.get_model_config("identity").config.backend == "onnxruntime"
        assert client.get_inference_statistics("identity").model_stats[0].inference_count == 9

    with_sync_client(use)


def test_a_slow_readiness_check_does_not_block_other_calls():
    engine, is_checking, other_finished = FakeEngine(), asyncio.Event(), threading.Event()

    async def use(client, _frontend):
        loop = asyncio.get_running_loop()

        def check_slowly(_name, _version):
            loop.call_soon_threadsafe(is_checking.set)
            return other_finished.wait(20)

        engine.is_model_ready = check_slowly
        readiness = asyncio.create_task(client.is_model_ready("identity"))
        async with asyncio.timeout(20):
            await is_checking.wait()
            assert await client.is_server_ready()
        other_finished.set()
        assert await readiness

    with_aio_client(use, engine)


def test_the_client_manages_the_repository():
    engine = FakeEngine()

    def use(client):
        assert [line.name for line in client.get_model_repository_index().models] == [
            "identity",
            "never",
        ]
        client.load_model("identity", config="{}", files={"file:1/model.onnx": b"\x00"})
        client.unload_model("identity", unload_dependents=True)

    with_sync_client(use, engine)
    assert engine.calls == [
        ("load_model", "identity", "{}", {"file:1/model.onnx": b"\x00"}),
        ("unload_model", "identity", True),
    ]


def test_the_asyncio_client_uses_every_method():
    async def use(client, _frontend):
        assert await client.is_server_live()
        assert await client.is_server_ready()
        assert await client.is_model_ready("identity")
        assert (await client.get_server_metadata()).name == "triton"
        assert (await client.get_model_metadata("identity")).platform == "onnxruntime_onnx"
        assert (await client.get_model_config("identity")).config.max_batch_size == 8
        assert (await client.get_inference_statistics()).model_stats[0].execution_count == 3
        assert len((await client.get_model_repository_index()).models) == 2
        await client.load_model("identity")
        await client.unload_model("identity")

    with_aio_client(use)


def test_inference_returns_the_outputs_of_the_model():
    def use(client):
        result = client.infer("identity", numbers(), request_id="7")
        assert result.as_numpy("X").tolist() == [0, 1, 2, 3]
        assert result.get_response().id == "7"

    with_sync_client(use)


def test_large_messages_are_accepted_and_sent():
    def use(client):
        data = np.random.default_rng(0).random(2**22, np.float32)
        given = sync_client.InferInput("X", [data.size], "FP32").set_data_from_numpy(data)
        np.testing.assert_array_equal(client.infer("identity", [given]).as_numpy("X"), data)

    with_sync_client(use)


@pytest.mark.parametrize(
    ("model", "status", "text"),
    [
        ("failing", "StatusCode.INTERNAL", "the model failed"),
        ("unknown", "StatusCode.INVALID_ARGUMENT", "Request for unknown model: 'unknown' is not found"),
        ("decoupled", "StatusCode.UNIMPLEMENTED", "ModelInfer RPC doesn't support models with decoupled transaction policy"),
    ],
)  # fmt: skip
def test_errors_have_the_status_and_text_of_triton(model, status, text):
    def use(client):
        with pytest.raises(InferenceServerException) as error:
            client.infer(model, numbers())
        assert (error.value.status(), error.value.message()) == (status, text)

    with_sync_client(use)


def test_an_internal_error_is_logged_and_hides_details(caplog):
    def use(client):
        with pytest.raises(InferenceServerException, match="see error id") as error:
            client.infer("broken", numbers())
        assert error.value.status() == "StatusCode.INTERNAL"
        assert "secret" not in error.value.message()
        error_id = error.value.message().split("error id ")[1].split()[0]
        assert [
            record
            for record in caplog.records
            if error_id in record.getMessage() and record.exc_info
        ]

    with caplog.at_level(logging.ERROR):
        with_sync_client(use)


def test_a_very_long_error_is_truncated():
    def use(client):
        with pytest.raises(
            InferenceServerException, match="failed to load 'bad', because"
        ) as error:
            client.load_model("bad")
        assert error.value.message().endswith(" ...")

    with_sync_client(use)


def test_a_client_reads_and_changes_settings():
    def use(client):
        assert client.get_trace_settings(as_json=True)["settings"]["trace_rate"] == {
            "value": ["1000"]
        }
        changed = client.update_trace_settings(
            "identity", {"trace_rate": "5", "trace_level": ["OFF"]}, as_json=True
        )
        assert changed["settings"]["trace_rate"] == {"value": ["5"]}
        cleared = client.update_trace_settings("identity", {"trace_rate": None}, as_json=True)
        assert cleared["settings"]["trace_rate"] == {"value": ["1000"]}
        client.update_log_settings({"log_verbose_level": 2, "log_info": False})
        settings = client.get_log_settings(as_json=True)["settings"]
        assert (settings["log_verbose_level"], settings["log_info"]) == (
            {"uint32_param": 2},
            {"bool_param": False},
        )

    with_sync_client(use)


def test_a_client_that_cancels_cancels_its_request():
    engine = FakeEngine()

    async def use(client, frontend):
        call = asyncio.create_task(client.infer("later", numbers()))
        await eventually(lambda: engine.held)
        call.cancel()
        await eventually(lambda: engine.held[0].cancelled)
        engine.held[0].respond(number(engine.held[0], 1, final=True))  # a late response is ignored
        await frontend.drain()

    with_aio_client(use, engine)


def test_a_deadline_that_passes_cancels_the_request():
    engine = FakeEngine()

    async def use(client, _frontend):
        assert await client.is_server_live()  # connecting must not count for the deadline
        timeout_s = 0.05
        while not engine.held:  # a call may expire before the server reads it
            with pytest.raises(InferenceServerException, match="Deadline Exceeded"):
                await client.infer("later", numbers(), client_timeout=timeout_s)
            timeout_s *= 2
        await eventually(lambda: engine.held[0].cancelled)

    with_aio_client(use, engine)


def test_a_draining_server_finishes_requests_and_refuses_new_ones():
    engine = FakeEngine()

    async def use(client, frontend):
        live = asyncio.create_task(client.infer("later", numbers()))
        await eventually(lambda: engine.held)
        draining = asyncio.create_task(frontend.drain())
        await asyncio.sleep(0)
        with pytest.raises(InferenceServerException) as error:
            await client.infer("identity", numbers())
        assert error.value.status() == "StatusCode.UNAVAILABLE"
        assert (
            error.value.message()
            == "GRPC server is shutting down and has stopped accepting new requests."
        )
        assert not draining.done()
        assert await client.is_server_live()
        engine.held[0].respond(number(engine.held[0], 5, final=True))
        await draining
        await frontend.stop()
        assert (await live).as_numpy("OUT").tolist() == [5]

    with_aio_client(use, engine)


@pytest.mark.parametrize("method", ["ModelInfer", "ModelMetadata"])
def test_invalid_message_bytes_are_an_invalid_argument(method):
    async def scenario():
        async with (
            serving(FakeEngine()) as frontend,
            grpc.aio.insecure_channel(frontend.address()) as channel,
        ):
            with pytest.raises(
                grpc.aio.AioRpcError, match=f"2 bytes are not a message inference.{method}Request"
            ) as error:
                await channel.unary_unary(f"/inference.GRPCInferenceService/{method}")(b"\xff\xff")
            assert error.value.code() is grpc.StatusCode.INVALID_ARGUMENT

    run(scenario)


@given(st.text(), st.text())
def test_a_message_round_trips(name, version):
    message = ModelReadyRequest(name=name, version=version)
    assert parse_message(ModelReadyRequest, message.SerializeToString()) == message


@pytest.mark.parametrize("raw", [b"\xff", b"\x0a\x05abc", b"\x0a\x02\xff\xfe"])
def test_invalid_bytes_and_utf8_are_refused(raw):
    with pytest.raises(
        InvalidArgument, match=f"its {len(raw)} bytes are not a message inference.ModelReadyRequest"
    ):
        parse_message(ModelReadyRequest, raw)


def test_drain_returns_immediately_without_requests():
    async def scenario():
        inflight = InflightCounter()
        await inflight.drain()
        assert inflight.is_draining

    run(scenario)


def test_drain_waits_for_the_last_request():
    async def scenario():
        inflight = InflightCounter()
        inflight.add()
        inflight.add()
        closing = asyncio.create_task(inflight.drain())
        await asyncio.sleep(0)
        assert inflight.is_draining
        inflight.remove()
        await asyncio.sleep(0)
        assert not closing.done()
        inflight.remove()
        await closing

    run(scenario)
