from __future__ import annotations

import pytest

from tritonpy import StartupError
from tritonpy_bench.options import BenchOptions
from tritonpy_load_generator.target.control import RequestRejected
from tritonpy_load_generator.target.description import describe, open_control, read_statistics
from tritonpy_testing.toy_http import METADATA, http_response, kserve, toy_http


def describe_model(server, name, protocol):
    control = open_control(
        BenchOptions(model=name, url=getattr(server, protocol), protocol=protocol)
    )
    target = describe(control, name, "")
    return control, target


@pytest.mark.parametrize("name", ["sums", "varied", "texts", "many", "sequence", "chain"])
def test_both_protocols_describe_a_model_equally(server, name):
    found = []
    for protocol in ("http", "grpc"):
        control, target = describe_model(server, name, protocol)
        found.append((target, set(read_statistics(control, target.model))))
        control.close()
    assert found[0] == found[1]


def test_a_models_description_comes_from_its_configuration(server):
    control, target = describe_model(server, "sums", "http")
    assert (target.model.max_batch_size, target.model.inputs[0].dims, target.server.binary) == (
        8,
        (4,),
        True,
    )
    control.close()
    for name, expected in (
        ("many", (True, False)),
        ("sequence", (False, True)),
        ("chain", (False, False)),
    ):
        control, target = describe_model(server, name, "grpc")
        assert (target.model.decoupled, target.model.sequence) == expected
        control.close()
    assert target.model.members == ("varied",)


def test_a_server_without_configuration_and_statistics_is_supported():
    async def infer(body):
        return http_response()

    with toy_http(kserve(infer)) as toy:
        control = open_control(BenchOptions(model="m", url=f"127.0.0.1:{toy.port}"))
        target = describe(control, "m", "")
        assert (target.model.max_batch_size, target.model.inputs[0].dims, target.server.binary) == (
            1,
            (3,),
            False,
        )
        assert read_statistics(control, target.model) is None
        control.close()


def test_a_server_error_is_not_a_missing_operation():
    async def respond(method, path, body):
        if path.endswith("/config"):
            return http_response({"error": "out of order"}, "500 x")
        return http_response(METADATA)

    with toy_http(respond) as toy:
        control = open_control(BenchOptions(model="m", url=f"127.0.0.1:{toy.port}"))
        with pytest.raises(RequestRejected, match="500: out of order"):
            describe(control, "m", "")
        control.close()


def test_a_closed_connection_is_reopened():
    async def respond(method, path, body):
        return http_response(METADATA, more="Connection: close\r\n")

    with toy_http(respond) as toy:
        control = open_control(BenchOptions(model="m", url=f"127.0.0.1:{toy.port}"))
        for _ in range(3):
            control.metadata("m", "")
        assert toy.connections == 3
        control.close()


def test_a_grpc_port_is_named_in_the_error_without_its_bytes():
    async def respond(method, path, body):
        return b"\x00\x00\x06\x04\x00\x00\x00\x00\x00\x00\x04\x00\x10\x00\x00\r\n\r\n"  # the first frame of an HTTP/2 server

    with toy_http(respond) as toy:
        control = open_control(BenchOptions(model="m", url=f"127.0.0.1:{toy.port}"))
        with pytest.raises(
            StartupError, match=rf"at 127.0.0.1:{toy.port} does not speak HTTP: .*-i grpc"
        ):
            control.server()


def test_a_server_that_closes_immediately_is_unreachable():
    async def respond(method, path, body):
        return None

    with toy_http(respond) as toy:
        control = open_control(BenchOptions(model="m", url=f"127.0.0.1:{toy.port}"))
        with pytest.raises(StartupError, match="cannot reach a server over HTTP"):
            control.server()
