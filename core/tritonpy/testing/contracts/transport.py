"""The contracts of transports."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import msgspec
import pytest

from tritonpy.api.frontend import Frontend
from tritonpy.api.transport import Launch, ProcessTransport, Transport
from tritonpy.config.server import decode_options, decode_server_config
from tritonpy.errors import StartupError
from tritonpy.plugins.registration import Registration
from tritonpy.testing.contracts.plugin import PluginContract
from tritonpy.testing.ports import free_port
from tritonpy.testing.witness import PATIENCE_S

HOST = "127.0.0.1"


class TransportContract(PluginContract):
    """What `Transport` promises. Give `plugin_class`, `name`, and the name of one frontend that it carries, whose options have a `port`."""

    interface: ClassVar[type] = Transport
    hook = "tritonpy_transports"
    frontend: ClassVar[str] = "http"

    def kinds(self) -> dict[str, type[Frontend]]:
        """Return the classes of the frontends that it carries."""
        return {
            name: Registration(self.hook, name, target, self.name, "").load()
            for name, target in self.plugin_class.carries.items()
        }

    def test_it_carries_frontends(self) -> None:
        kinds = self.kinds()
        assert self.frontend in kinds
        assert [name for name, kind in kinds.items() if not issubclass(kind, Frontend)] == []


class ProcessTransportContract(TransportContract):
    """What `ProcessTransport` promises."""

    interface: ClassVar[type] = ProcessTransport

    def transport(self) -> ProcessTransport:
        """Return one with the options that it has by default."""
        transport: ProcessTransport = self.plugin_class(decode_options(self.plugin_class.Options, {}, ""))
        return transport

    def launch(self, port: int, repository: Path) -> Launch:
        """Return what to start: a server without models on that port."""
        listening = {"port": port}
        others = {name: False for name in ("http", "grpc", "metrics") if name != self.frontend}
        raw: dict[str, Any] = {
            "repositories": [{"url": str(repository)}],
            "transport": {self.name: {}},
            "frontends": {**others, self.frontend: listening},
            "logging": {"info": False},
        }
        options = decode_options(self.kinds()[self.frontend].Options, listening, "")
        return Launch(msgspec.json.encode(decode_server_config(raw)), HOST, {self.frontend: options}, 30)

    def test_it_serves_until_a_signal_comes_and_ends_well(self, tmp_path: Path) -> None:
        port = free_port()
        with _signal_to_us_when_it_listens(port):
            before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
            assert self.transport().run(self.launch(port, tmp_path)) == 0
            assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == before
        with pytest.raises(ConnectionError):
            socket.create_connection((HOST, port), PATIENCE_S)

    def test_a_taken_port_is_named(self, tmp_path: Path) -> None:
        with socket.create_server((HOST, 0)) as taken:
            port = taken.getsockname()[1]
            with pytest.raises(StartupError, match=str(port)):
                self.transport().run(self.launch(port, tmp_path))


@contextlib.contextmanager
def _signal_to_us_when_it_listens(port: int) -> Iterator[None]:
    """Send SIGTERM to this process as soon as somebody listens, or when nobody did for long."""
    over = threading.Event()
    before = signal.signal(signal.SIGTERM, lambda _number, _frame: None)
    thread = threading.Thread(target=_ask_to_end, args=(port, over))
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
        signal.signal(signal.SIGTERM, before)


def _ask_to_end(port: int, over: threading.Event) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline and not over.wait(0.01):
        with contextlib.suppress(OSError), socket.create_connection((HOST, port), 1):
            break
    if not over.is_set():
        os.kill(os.getpid(), signal.SIGTERM)
