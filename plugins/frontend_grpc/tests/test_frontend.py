from __future__ import annotations

import logging
import socket

import msgspec
import pytest

from tritonpy import StartupError
from tritonpy.frontend import FrontendContext
from tritonpy_frontend_grpc.options import GrpcOptions

from .fake_engine import FakeEngine, frontend_class, run, serving


def has_ipv6():
    """Return whether this machine has the address ::1, which containers often lack."""
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        return False
    return True


def test_the_default_port_is_tritons():
    assert GrpcOptions().port == 8001


def test_a_wrong_option_is_refused():
    with pytest.raises(msgspec.ValidationError, match="prot"):
        msgspec.convert({"prot": 1}, GrpcOptions)
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert({"port": 70000}, GrpcOptions)


@pytest.mark.skipif(not has_ipv6(), reason="needs IPv6")
def test_the_host_option_overrides_the_server_host():
    async def scenario():
        frontend = frontend_class()(
            GrpcOptions(port=0, host="::1"), FrontendContext("192.0.2.1", logging.getLogger())
        )
        await frontend.start(FakeEngine())
        assert frontend.address().startswith("[::1]:")
        await frontend.stop()

    run(scenario)


def test_a_port_is_shared_only_with_reuse_port():
    async def scenario():
        async with serving(FakeEngine(), reuse_port=True) as first:
            port = int(first.address().rpartition(":")[2])
            for reuse in (True, False):
                options = GrpcOptions(port=port, reuse_port=reuse)
                other = frontend_class()(options, FrontendContext("127.0.0.1", logging.getLogger()))
                if reuse:
                    await other.start(FakeEngine())
                    assert other.address() == first.address()
                else:
                    with pytest.raises(StartupError, match=f"cannot listen on 127.0.0.1:{port}"):
                        await other.start(FakeEngine())
                await other.stop()

    run(scenario)


@pytest.mark.parametrize("reuse", [False, True])
def test_an_unavailable_address_is_reported_with_the_reason(reuse, capfd):
    async def scenario():
        frontend = frontend_class()(
            GrpcOptions(reuse_port=reuse), FrontendContext("192.0.2.1", logging.getLogger())
        )
        with pytest.raises(
            StartupError, match=r"cannot listen on 192.0.2.1:8001: Cannot assign requested address"
        ):
            await frontend.start(FakeEngine())
        await frontend.stop()

    run(scenario)
    assert capfd.readouterr().err == ""
