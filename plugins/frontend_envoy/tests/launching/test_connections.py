from __future__ import annotations

import json

import pytest

from tritonpy_frontend_envoy.launching.connections import connection_manager
from tritonpy_frontend_envoy.launching.endpoint import Endpoint
from tritonpy_frontend_grpc.options import GrpcOptions
from tritonpy_frontend_http.options import HttpOptions


def manager(http=None, grpc=None):
    return connection_manager(Endpoint("127.0.0.1", 1, http, grpc), "AUTO")


@pytest.mark.parametrize(
    ("options", "path", "value"),
    [
        ({"keep_alive_s": 5}, "common_http_protocol_options.idle_timeout", "5s"),
        ({"keep_alive_s": 0}, "common_http_protocol_options.idle_timeout", "0.001s"),
        ({"max_headers": 7}, "common_http_protocol_options.max_headers_count", 7),
        ({"head_timeout_s": 1.5}, "request_headers_timeout", "1.5s"),
        ({"body_timeout_s": 9}, "stream_flush_timeout", "9s"),
        ({"body_timeout_s": 9}, "stream_idle_timeout", "0s"),
        ({"max_head_size": 1}, "max_request_headers_kb", 1),
        ({"max_head_size": 2049}, "max_request_headers_kb", 3),
        ({"max_head_size": 2**40}, "max_request_headers_kb", 8192),
    ],
)
def test_options_of_http_become_envoys(options, path, value):
    assert found(manager(HttpOptions(**options)), path) == value


@pytest.mark.parametrize(
    ("options", "path", "value"),
    [
        ({}, "common_http_protocol_options.idle_timeout", "0s"),
        ({"max_connection_idle_ms": 1500}, "common_http_protocol_options.idle_timeout", "1.5s"),
        ({"max_connection_age_ms": 60_000}, "common_http_protocol_options.max_connection_duration", "60.0s"),
        ({"max_connection_age_grace_ms": 500}, "drain_timeout", "0.5s"),
        ({"keepalive_time_ms": 10_000}, "http2_protocol_options.connection_keepalive.interval", "10.0s"),
        ({"keepalive_timeout_ms": 5000}, "http2_protocol_options.connection_keepalive.timeout", "5.0s"),
        ({"handshake_timeout_ms": 2000}, "request_headers_timeout", "2.0s"),
    ],
)
def test_options_of_grpc_become_envoys(options, path, value):
    assert found(manager(grpc=GrpcOptions(**options)), path) == value


def test_the_application_is_that_of_the_endpoint():
    for endpoint, name in (({"http": HttpOptions()}, "http"), ({"grpc": GrpcOptions()}, "grpc")):
        *_, application = manager(**endpoint)["http_filters"]
        told = json.loads(found(application, "typed_config.filter_config.value"))
        assert told["app"] == f"tritonpy_frontend_envoy.embedded.applications:{name}"


def found(configuration, path):
    for part in path.split("."):
        configuration = configuration[part]
    return configuration
