"""The life cycle of a serving process: start, wait for a signal, drain, stop."""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import os
import signal
import threading
from collections.abc import Callable, Mapping
from typing import Protocol

from tritonpy.frontend import Frontend
from tritonpy.server import event_loop_factory

LOG = logging.getLogger("tritonpy.cli")
# Time to close connections after the exit timeout, before the process is ended by force.
GRACE_S = 2.0
SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Servable(Protocol):
    """The server as its life cycle needs it."""

    @property
    def frontends(self) -> Mapping[str, Frontend]:
        """The frontends by name."""

    @property
    def failure(self) -> str:
        """Why the server listens but is not live; empty if it is live."""

    async def start(self) -> None:
        """Load the models and listen; raises StartupError."""

    async def stop_accepting(self, timeout_s: float) -> float:
        """Refuse new connections and serve those in use. Return the rest of `timeout_s`."""

    async def drain(self, timeout_s: float) -> bool:
        """Refuse new requests, and return whether those in flight finished in time."""

    async def stop(self) -> None:
        """Close everything."""


class ServerLifecycle:
    """Runs one server once.

    The first SIGINT or SIGTERM drains and stops it, the second ends the process.

    `at_exit` is called before `exit_now` ends the process by force.
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
        self._stop_requested = asyncio.Event()
        self._watch: threading.Timer | None = None

    def run(self) -> None:
        """Serve on a new event loop until a signal arrives.

        Raises the errors of the server's `start`.
        """
        before = {number: signal.getsignal(number) for number in SIGNALS}
        try:
            with asyncio.Runner(loop_factory=event_loop_factory()) as runner:
                runner.run(self._serve())
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)  # uvloop does not remove its handlers when it closes
            if self._watch is not None:
                self._watch.cancel()

    async def _serve(self) -> None:
        loop = asyncio.get_running_loop()
        for number in SIGNALS:  # `run` restores them at the end: a second signal is handled, too
            loop.add_signal_handler(number, self._handle_signal, number)
        try:
            if await self._start():
                self._announce()
                await self._stop_requested.wait()
                left_s = await self._server.stop_accepting(self._exit_timeout_s)
                if not await self._server.drain(left_s):
                    self._handle_timeout()
        finally:
            self._watch_exit()
            await self._server.stop()

    async def _start(self) -> bool:
        """Start the server. Return False if a signal arrived before it was ready."""
        start = asyncio.ensure_future(self._server.start())
        stop_requested = asyncio.ensure_future(self._stop_requested.wait())
        await asyncio.wait({start, stop_requested}, return_when=asyncio.FIRST_COMPLETED)
        stop_requested.cancel()
        if not start.done():
            start.cancel()
            await asyncio.wait({start})
        if start.cancelled():
            return False
        await start
        return True

    def _handle_signal(self, number: int) -> None:
        LOG.info("Signal (%d) received.", number)
        if self._stop_requested.is_set():
            LOG.error("second signal: exiting without waiting for requests in flight")
            self._force()
        self._stop_requested.set()
        self._watch_exit()

    def _watch_exit(self) -> None:
        """Let a thread end the process at the exit timeout, since the event loop may hang."""
        if self._watch is None:
            self._watch = threading.Timer(self._exit_timeout_s + GRACE_S, self._handle_timeout)
            self._watch.daemon = True
            self._watch.start()

    def _handle_timeout(self) -> None:
        LOG.error("Exit timeout expired. Exiting immediately.")
        self._force()

    def _force(self) -> None:
        try:
            self._at_exit()
        finally:
            self._exit_now(1)

    def _announce(self) -> None:
        addresses = {name: frontend.address() for name, frontend in self._server.frontends.items()}
        listed = (
            ", ".join(f"{name} on {address}" for name, address in addresses.items())
            or "no frontend"
        )
        if self._server.failure:
            LOG.error("%s", self._server.failure)
            LOG.error(
                (
                    "not live: no model can be served. Repair the repository and start the "
                    "server again (%s)"
                ),
                listed,
            )
            return
        LOG.info("ready: %s", listed)
        if addresses and all(map(is_loopback, addresses.values())):
            LOG.info(
                "only this machine can reach the server; to open it: --host=0.0.0.0, or 'host: "
                "0.0.0.0' in server.yaml"
            )


def is_loopback(address: str) -> bool:
    """Return whether only this machine can reach `host:port`."""
    host = address.rpartition(":")[0].strip("[]")
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
