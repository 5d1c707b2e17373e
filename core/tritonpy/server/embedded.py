"""A complete server inside another program: a test, a debugger or a notebook."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from tritonpy.api.engine import Engine
from tritonpy.plugins import make_plugin_manager
from tritonpy.repository import builtin
from tritonpy.server.server import Server, build
from tritonpy_config.server import ServerConfig, decode_server_config


class RunningServer:
    """A started server: `engine` for in-process calls, addresses (`host:port`) for clients."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.engine: Engine = server.engine

    def address(self, frontend: str) -> str:
        """Return the address of a frontend by its name in server.yaml.

        Raises KeyError if it does not run.
        """
        return self.server.frontends[frontend].address()

    def poll(self) -> None:
        """Load, reload and unload the models that changed (mode `poll`); returns when done."""
        self.server.poll()

    @property
    def http(self) -> str:
        """Address of the frontend `http`."""
        return self.address("http")

    @property
    def grpc(self) -> str:
        """Address of the frontend `grpc`."""
        return self.address("grpc")

    @property
    def metrics(self) -> str:
        """Address of the frontend `metrics`."""
        return self.address("metrics")


@contextmanager
def running_server(
    config: ServerConfig | Mapping[str, Any], plugins: Iterable[object] = (), installed: bool = True
) -> Iterator[RunningServer]:
    """Run a server on an event loop in a separate thread; drain and stop it at the end.

    `config` may be the plain data of server.yaml: `{"repositories": [{"url": str(path)}],
    "frontends": {"http": {"port": 0}}}`. Port 0 selects a free port. `plugins` are modules or
    objects with hook implementations. They are used in addition to the installed plugins or, if
    `installed` is false, instead of them. Raises what `build` and `Server.start` raise.
    """
    decoded = config if isinstance(config, ServerConfig) else decode_server_config(config)
    manager = make_plugin_manager(discover=installed, disable=decoded.plugins.disable)
    for number, plugin in enumerate(plugins if installed else (builtin, *plugins)):
        manager.register(
            plugin, f"{getattr(plugin, '__name__', 'plugin')} given to running_server ({number})"
        )
    manager.check()
    server = build(decoded, manager)
    with _event_loop() as run:
        try:
            run(server.start())
            yield RunningServer(server)
            run(server.drain())
        finally:
            run(server.stop())


@contextmanager
def _event_loop() -> Iterator[Callable[[Coroutine[Any, Any, Any]], Any]]:
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="tritonpy-loop", daemon=True)
    thread.start()
    try:
        yield lambda coroutine: asyncio.run_coroutine_threadsafe(coroutine, loop).result()
    finally:
        asyncio.run_coroutine_threadsafe(loop.shutdown_default_executor(), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
