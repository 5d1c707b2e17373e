from __future__ import annotations

import json
import socket
import sys

import msgspec
import pytest

from tritonpy.frontend import Claim, LogSettings
from tritonpy_config.server import decode_server_config
from tritonpy_frontend_processes.start_message import StartMessage, TracerState
from tritonpy_types.errors import StartupError

RAW = {
    "repositories": [{"url": "/models"}],
    "frontend_processes": 3,
    "frontends": {"http": {"port": 0, "restricted_apis": [{"apis": ["health"], "key": "k", "value": "v"}]}, "grpc": False},
    "access": {"open": ["metrics"]},
    "auth": {"api_keys": {"file": "/keys"}},
    "trace": {"level": ["TIMESTAMPS"], "rate": 5},
}  # fmt: skip


def test_the_start_message_has_the_server_s_state() -> None:
    config = decode_server_config(RAW)
    with socket.socket() as listening:
        claims = {
            "http": Claim("unix:/a", listening=listening, process=2),
            "grpc": Claim("127.0.0.1:7", 7, process=2),
        }
        start = StartMessage.of(
            2,
            config,
            ["x-tenant"],
            claims,
            LogSettings(verbose=1),
            TracerState(active=True, headers=("traceparent",)),
        )
    read = StartMessage.read(json.loads(json.dumps(msgspec.to_builtins(start))))
    assert read == start
    assert decode_server_config(read.config) == config
    assert read.search == sys.path
    assert [(claim.address, claim.port, claim.listens) for claim in read.claims.values()] == [
        ("unix:/a", 0, True), ("127.0.0.1:7", 7, False),
    ]  # fmt: skip


def test_another_version_is_an_error() -> None:
    with pytest.raises(StartupError, match="was tritonpy replaced while the server ran"):
        StartMessage.read({"version": 1})
