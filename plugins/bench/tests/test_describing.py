from __future__ import annotations

import pytest

from tritonpy import StartupError
from tritonpy_bench.options import BenchOptions
from tritonpy_bench.target.control import Refused
from tritonpy_bench.target.describing import describe, open_control, readings

from .toy_http import METADATA, answer, kserve, toy_http


def asked(server, name, protocol):
    control = open_control(BenchOptions(model=name, url=getattr(server, protocol), protocol=protocol))
    facts = describe(control, name, "")
    return control, facts


@pytest.mark.parametrize("name", ["sums", "varied", "texts", "many", "sequence", "chain"])
def test_both_protocols_tell_the_same_of_a_model(server, name):
    found = []
    for protocol in ("http", "grpc"):
        control, facts = asked(server, name, protocol)
        found.append((facts, set(readings(control, facts.model))))
        control.close()
    assert found[0] == found[1]


def test_what_a_model_is_comes_from_its_configuration(server):
    control, facts = asked(server, "sums", "http")
    assert (facts.model.max_batch_size, facts.model.inputs[0].dims, facts.server.binary) == (8, (4,), True)
    control.close()
    for name, expected in (("many", (True, False)), ("sequence", (False, True)), ("chain", (False, False))):
        control, facts = asked(server, name, "grpc")
        assert (facts.model.decoupled, facts.model.sequence) == expected
        control.close()
    assert facts.model.members == ("varied",)


def test_a_server_without_configuration_and_statistics_is_enough():
    async def infer(body):
        return answer()

    with toy_http(kserve(infer)) as toy:
        control = open_control(BenchOptions(model="m", url=f"127.0.0.1:{toy.port}"))
        facts = describe(control, "m", "")
        assert (facts.model.max_batch_size, facts.model.inputs[0].dims, facts.server.binary) == (1, (3,), False)
        assert readings(control, facts.model) is None
        control.close()


def test_an_error_of_the_server_is_no_missing_answer():
    async def respond(method, path, body):
        if path.endswith("/config"):
            return answer({"error": "out of order"}, "500 x")
        return answer(METADATA)

    with toy_http(respond) as toy:
        control = open_control(BenchOptions(model="m", url=f"127.0.0.1:{toy.port}"))
        with pytest.raises(Refused, match="500: out of order"):
            describe(control, "m", "")
        control.close()


def test_a_connection_that_was_closed_meanwhile_is_opened_anew():
    async def respond(method, path, body):
        return answer(METADATA, more="Connection: close\r\n")

    with toy_http(respond) as toy:
        control = open_control(BenchOptions(model="m", url=f"127.0.0.1:{toy.port}"))
        for _ in range(3):
            control.metadata("m", "")
        assert toy.connections == 3
        control.close()


def test_a_port_of_grpc_is_told_as_what_it_is_without_its_bytes():
    async def respond(method, path, body):
        return (
            b"\x00\x00\x06\x04\x00\x00\x00\x00\x00\x00\x04\x00\x10\x00\x00\r\n\r\n"  # what an HTTP/2 server says first
        )

    with toy_http(respond) as toy:
        control = open_control(BenchOptions(model="m", url=f"127.0.0.1:{toy.port}"))
        with pytest.raises(StartupError, match=rf"at 127.0.0.1:{toy.port} does not speak HTTP: .*-i grpc"):
            control.server()


def test_a_server_that_only_hangs_up_is_nobody():
    async def respond(method, path, body):
        return None

    with toy_http(respond) as toy:
        control = open_control(BenchOptions(model="m", url=f"127.0.0.1:{toy.port}"))
        with pytest.raises(StartupError, match="nobody answers over HTTP"):
            control.server()
