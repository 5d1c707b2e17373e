from __future__ import annotations

import pytest

from tritonpy.frontend import Frontend, Transport
from tritonpy_testing import TransportContract


class Line(Frontend):
    """A frontend that never starts."""

    async def start(self, engine):
        raise NotImplementedError


class NoFrontend:
    pass


class Wire(Transport):
    carries = {"line": f"{__name__}:Line"}  # noqa: RUF012


class TestWire(TransportContract):
    plugin_class = Wire
    frontend = "line"


class Empty(Wire):
    carries = {}  # noqa: RUF012


class Strange(Wire):
    carries = {"line": f"{__name__}:NoFrontend"}  # noqa: RUF012


@pytest.mark.parametrize("transport", [Empty, Strange], ids=lambda kind: kind.__name__)
def test_a_broken_transport_fails(failures, transport):
    contract = type("Broken", (TransportContract,), {"plugin_class": transport, "frontend": "line"})
    assert "test_it_carries_frontends" in failures(contract)
