"""The life of a serving process: start, wait for a signal, drain, stop."""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import os
import signal
import threading
from collections.abc import Callable, Mapping
from typing import Protocol

from tritonpy.api.frontend import Frontend
from tritonpy.loops import event_loop_factory

LOG = logging.getLogger("tritonpy.cli")
# Draining ends at the exit timeout by itself; what is left then closes within this, or not at all.
GRACE_S = 2.0
SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Servable(Protocol):
    """What a life needs of a server."""

    @property
    def frontends(self) -> Mapping[str, Frontend]:
        """The frontends by name."""

    @property
    def failure(self) -> str:
        """Why the server listens but is not live; empty where it is."""

    async def start(self) -> None:
        """Load the models and listen; raises StartupError."""

    async def wind_down(self, timeout_s: float) -> float:
        """Refuse new connections and serve those that clients use; return what is left of `timeout_s`."""

    async def drain(self, timeout_s: float) -> bool:
        """Refuse new requests; say whether the live ones were answered in time."""

    async def stop(self) -> None:
        """Close everything."""


class Life:
    """Runs one server once. The first SIGINT or SIGTERM drains and stops it, the second one ends the process.

    `at_exit` is called before the process ends the hard way, `exit_now` ends it.
    """

    def __init__(
        self,
        server: Servable,
        exit_timeout_s: float,
        at_exit: Callable[[], None],
        exit_now: Callable[[int], None] = os._exit,
    ) -> None:
        self._server = server
        self._exit_timeout_s = exit_timeout_s
        self._at_exit = at_exit
        self._exit_now = exit_now
        self._asked = asyncio.Event()
        self._watch: threading.Timer | None = None

    def run(self) -> None:
        """Serve on an event loop of its own until a signal comes. Raises what the server's `start` raises."""
        before = {number: signal.getsignal(number) for number in SIGNALS}
        try:
            with asyncio.Runner(loop_factory=event_loop_factory()) as runner:
                runner.run(self._serve())
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)  # uvloop leaves its own when it closes
            if self._watch is not None:
                self._watch.cancel()

    async def _serve(self) -> None:
        loop = asyncio.get_running_loop()
        for number in SIGNALS:  # until `run` takes them back: a second signal counts
            loop.add_signal_handler(number, self._signalled, number)
        try:
            if await self._start():
                self._announce()
                await self._asked.wait()
                left_s = await self._server.wind_down(self._exit_timeout_s)
                if not await self._server.drain(left_s):
                    self._expired()
        finally:
            self._watch_exit()
            await self._server.stop()

    async def _start(self) -> bool:
        """Return False when a signal came before the server was ready."""
        start = asyncio.ensure_future(self._server.start())
        asked = asyncio.ensure_future(self._asked.wait())
        await asyncio.wait({start, asked}, return_when=asyncio.FIRST_COMPLETED)
        asked.cancel()
        if not start.done():
            start.cancel()
            await asyncio.wait({start})
        if start.cancelled():
            return False
        await start
        return True

    def _signalled(self, number: int) -> None:
        LOG.info("Signal (%d) received.", number)
        if self._asked.is_set():
            LOG.error("second signal: exiting without waiting for live requests")
            self._force()
        self._asked.set()
        self._watch_exit()

    def _watch_exit(self) -> None:
        """Let a thread end the process at the exit timeout: what hangs may be the event loop itself."""
        if self._watch is None:
            self._watch = threading.Timer(self._exit_timeout_s + GRACE_S, self._expired)
            self._watch.daemon = True
            self._watch.start()

    def _expired(self) -> None:
        LOG.error("Exit timeout expired. Exiting immediately.")
        self._force()

    def _force(self) -> None:
        try:
            self._at_exit()
        finally:
            self._exit_now(1)

    def _announce(self) -> None:
        addresses = {name: frontend.address() for name, frontend in self._server.frontends.items()}
        listed = ", ".join(f"{name} on {address}" for name, address in addresses.items()) or "no frontend"
        if self._server.failure:
            LOG.error("%s", self._server.failure)
            LOG.error("not live: no model can be served. Repair the repository and start the server again (%s)", listed)
            return
        LOG.info("ready: %s", listed)
        if addresses and all(map(is_loopback, addresses.values())):
            LOG.info("only this machine can reach it; to open it: --host=0.0.0.0, or 'host: 0.0.0.0' in server.yaml")


def is_loopback(address: str) -> bool:
    """Say whether `host:port` can be reached from this machine alone."""
    host = address.rpartition(":")[0].strip("[]")
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
