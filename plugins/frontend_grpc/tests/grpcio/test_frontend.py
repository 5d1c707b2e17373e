from __future__ import annotations

import logging
import socket

import msgspec
import pytest

from tritonpy import StartupError
from tritonpy.frontend import FrontendContext
from tritonpy_frontend_grpc.call_options import GrpcCallOptions
from tritonpy_frontend_grpc.grpcio.frontend import GrpcFrontend, connection_arguments
from tritonpy_frontend_grpc.grpcio.listeners import listen_again
from tritonpy_frontend_grpc.options import ConnectionOptions, GrpcOptions

from ..contract import GrpcContract
from ..fake_engine import FakeEngine, run


class TestGrpcFrontend(GrpcContract):
    plugin_class = GrpcFrontend


def test_the_defaults_match_triton():
    defaults = ConnectionOptions()
    assert dict(connection_arguments(defaults)) == {
        "grpc.keepalive_time_ms": 7_200_000,
        "grpc.keepalive_timeout_ms": 20_000,
        "grpc.keepalive_permit_without_calls": 0,
        "grpc.http2.max_pings_without_data": 2,
        "grpc.http2.min_ping_interval_without_data_ms": 300_000,
        "grpc.http2.max_ping_strikes": 2,
        "grpc.server_handshake_timeout_ms": 60_000,
        "grpc.http2.ping_timeout_ms": 20_000,
        "grpc.server.max_pending_requests": 2**31 - 1,
        "grpc.server.max_pending_requests_hard_limit": 2**31 - 1,
        "grpc.server_max_unrequested_time_in_server": 2_147_483,
    }


def test_every_option_is_an_argument():
    of_calls = GrpcCallOptions.__struct_fields__
    fields = [
        field for field in msgspec.structs.fields(ConnectionOptions) if field.name not in of_calls
    ]
    options = msgspec.convert(
        {field.encode_name: 1 for field in fields}, ConnectionOptions, strict=False
    )
    arguments = [value for _, value in connection_arguments(options) if value == 1]
    assert len(arguments) == len(fields) + 1


def test_a_failed_start_releases_the_port(monkeypatch):
    addresses = []

    def refuse_the_third(server, address, credentials):
        addresses.append(address)
        if len(addresses) == 2:
            raise StartupError("no more")
        listen_again(server, address, credentials)

    monkeypatch.setattr("tritonpy_frontend_grpc.grpcio.frontend.listen_again", refuse_the_third)

    async def scenario():
        frontend = GrpcFrontend(
            GrpcOptions(port=0), FrontendContext("127.0.0.1", logging.getLogger())
        )
        with pytest.raises(StartupError, match="no more"):
            await frontend.start(FakeEngine())
        port = int(addresses[0].rpartition(":")[2])
        socket.create_server(("127.0.0.1", port)).close()
        await frontend.stop()

    run(scenario)
