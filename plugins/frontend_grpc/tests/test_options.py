"""Tests of the connection options with raw clients."""

from __future__ import annotations

import asyncio

import grpc
import msgspec
import pytest
import tritonclient.grpc.aio as client

from tritonpy_frontend_grpc.options import GrpcOptions

from .fake_engine import FakeEngine, run, serving
from .frames import GOAWAY, HELLO, PING, PREFACE, SETTINGS, RawConnection, frame


def port_of(frontend):
    return int(frontend.address().rpartition(":")[2])


def talk(port, sent, kind):
    """Return the payload of the first frame of a type."""
    with RawConnection(port, sent) as connection:
        return connection.until(kind)


def found(sent, kind, **options):
    """Send bytes to a server with `options`; return the payload of the first frame of a type."""
    payloads = []

    async def scenario():
        async with serving(FakeEngine(), **options) as frontend:
            payloads.append(await asyncio.to_thread(talk, port_of(frontend), sent, kind))

    run(scenario)
    return payloads[0]


@pytest.mark.parametrize(
    "option", ["keepalive-time-ms", "max-connection-age-ms", "max-connections"]
)
def test_invalid_values_are_rejected(option):
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert({option: -1}, GrpcOptions)


def test_a_silent_client_is_pinged_without_calls_if_permitted():
    assert (
        found(HELLO, PING, keepalive_time_ms=1000, keepalive_permit_without_calls=True) is not None
    )


def test_a_client_that_ignores_pings_is_disconnected():
    options = {
        "keepalive_time_ms": 1000,
        "keepalive_timeout_ms": 100,
        "keepalive_permit_without_calls": True,
    }
    assert b"ping_timeout" in found(HELLO, GOAWAY, **options)


def test_a_client_that_pings_too_often_is_disconnected():
    pings = frame(PING, payload=bytes(8)) * 6
    assert b"too_many_pings" in found(HELLO + pings, GOAWAY, http2_max_ping_strikes=2)


def test_frequent_pings_are_accepted_without_a_strike_limit():
    pings = frame(PING, payload=bytes(8)) * 20
    goaway = found(
        HELLO + pings,
        GOAWAY,
        http2_max_ping_strikes=0,
        max_connection_age_ms=1000,
        max_connection_age_grace_ms=100,
    )
    assert b"max_age" in goaway


def test_pings_at_the_configured_interval_are_no_strikes():
    pings = frame(PING, payload=bytes(8)) * 6
    options = {
        "http2_min_recv_ping_interval_without_data_ms": 0,
        "keepalive_permit_without_calls": True,
        "max_connection_age_ms": 1000,
    }
    assert b"max_age" in found(HELLO + pings, GOAWAY, **options)


def test_a_connection_is_closed_at_its_maximum_age():
    assert b"max_age" in found(
        HELLO, GOAWAY, max_connection_age_ms=200, max_connection_age_grace_ms=100
    )


def test_a_connection_without_calls_ends():
    assert b"connection idle" in found(HELLO, GOAWAY, max_connection_idle_ms=200)


@pytest.mark.parametrize("sent", [b"", PREFACE[:10], PREFACE, PREFACE + frame(SETTINGS)[:5]])
def test_a_client_without_a_handshake_is_disconnected(sent):
    async def scenario():
        async with serving(FakeEngine(), handshake_timeout_ms=300) as frontend:
            with RawConnection(port_of(frontend), sent) as connection:
                await asyncio.to_thread(connection.until, -1)  # returns when the server closes

    run(scenario)


def test_a_connection_above_the_limit_is_closed():
    async def scenario():
        async with serving(FakeEngine(), max_connections=2) as frontend:
            port = port_of(frontend)
            with RawConnection(port) as one:
                async with client.InferenceServerClient(frontend.address()) as two:
                    assert await two.is_server_live()
                    with RawConnection(port, b"") as third:
                        assert await asyncio.to_thread(third.file.read) == b""
                    assert await two.is_server_live()
                one.send(frame(PING, payload=bytes(8)))
            async with grpc.aio.insecure_channel(frontend.address()) as again:
                await asyncio.wait_for(again.channel_ready(), 20)

    run(scenario)


def test_thousands_of_concurrent_calls_all_get_responses():
    async def scenario():
        async with (
            serving(FakeEngine()) as frontend,
            grpc.aio.insecure_channel(frontend.address()) as channel,
        ):
            live = channel.unary_unary("/inference.GRPCInferenceService/ServerLive")
            answers = await asyncio.gather(*[live(b"") for _ in range(4000)])
            assert len(answers) == 4000

    run(scenario)


def test_an_oversized_head_is_refused():
    async def scenario():
        async with (
            serving(FakeEngine()) as frontend,
            grpc.aio.insecure_channel(frontend.address()) as channel,
        ):
            live = channel.unary_unary("/inference.GRPCInferenceService/ServerLive")
            with pytest.raises(grpc.RpcError) as error:
                await live(b"", metadata=[("large", "a" * 100_000)])
            assert error.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
            many = [(f"name-{number}", "value") for number in range(2000)]
            with pytest.raises(grpc.RpcError) as error:
                await live(b"", metadata=many)
            assert error.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
            assert await live(b"")

    run(scenario)
