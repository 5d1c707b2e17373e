"""The contract of frontend hosts."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, ClassVar

from tritonpy.frontend import FrontendHost
from tritonpy_testing.contracts.plugin import PluginContract
from tritonpy_testing.in_process_server import RunningServer, running_server

PROCESSES = 2
CALLS = 8  # more than one per process
WAIT_S = 30


class FrontendHostContract(PluginContract):
    """The contract of `FrontendHost`. Set `plugin_class`, `name`, and `plugin`.

    The tests run servers whose frontends the host runs. They need the frontends "http" and
    "metrics".

    - `installed`: whether `plugin` is found by its entry point. Otherwise, the tests register it.
    """

    interface = FrontendHost
    hook = "tritonpy_frontend_hosts"
    installed: ClassVar[bool] = False

    @contextmanager
    def serving(self, folder: Path) -> Iterator[RunningServer]:
        """Run a server without models in `folder`."""
        frontends = {"http": {"port": 0}, "grpc": False, "metrics": {"port": 0}}
        config = {
            "repositories": [{"url": str(folder)}],
            "frontends": frontends,
            "frontend_processes": PROCESSES,
        }
        plugins: Sequence[Any] = [] if self.installed or self.plugin is None else [self.plugin]
        with running_server(config, plugins) as server:
            yield server

    def test_every_connection_is_served(self, tmp_path: Path) -> None:
        with self.serving(tmp_path) as server:
            for _ in range(CALLS):
                assert json.loads(_get(server.address("http"), "/v2"))["name"] == "triton"

    def test_a_frontend_that_does_not_scale_is_served_too(self, tmp_path: Path) -> None:
        with self.serving(tmp_path) as server:
            assert b"nv_" in _get(server.address("metrics"), "/metrics")

    def test_the_addresses_are_released_at_the_end(self, tmp_path: Path) -> None:
        with self.serving(tmp_path) as server:
            addresses = [server.address(name) for name in ("http", "metrics")]
        for address in addresses:
            try:
                _get(address, "/")
            except OSError:
                continue
            raise AssertionError(f"{address} still accepts connections after the server stopped")


def _get(address: str, path: str) -> bytes:
    with closing(http.client.HTTPConnection(address, timeout=WAIT_S)) as connection:
        connection.request("GET", path)
        return connection.getresponse().read()
