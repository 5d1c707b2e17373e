"""The server's place in the process of Envoy: its thread with the event loop, and the connection to who started Envoy."""

from __future__ import annotations

import asyncio
import logging
import os
import shutil
import signal
import socket
import sys
import threading
from pathlib import Path

import uvloop

from tritonpy import Embedded, Failure, StartupError
from tritonpy_frontend_envoy.embedded.admin import Admin
from tritonpy_frontend_envoy.embedded.interpreter import take_back
from tritonpy_frontend_envoy.embedded.loops import Bridges, NextFuture, Rounds
from tritonpy_frontend_envoy.embedded.patrol import Patrol
from tritonpy_frontend_envoy.embedded.renewal import Renewal
from tritonpy_frontend_envoy.embedded.switch import Applications
from tritonpy_frontend_envoy.handover import CONTROL, Asked, Ended, Handover, Listening, Wire

LOG = logging.getLogger("tritonpy.envoy")
_NOT_EVERYWHERE = Ended(1, Failure.of(StartupError("Envoy cannot listen on all addresses; the log has its reason")))


class Host:
    """Runs the server of `handover` once Envoy has all of its listeners, and ends Envoy when the server has ended."""

    def __init__(self, wire: Wire, handover: Handover) -> None:
        self.applications = Applications()
        self.admin = Admin(handover.admin)
        self._wire = wire
        self._handover = handover
        self._loop = uvloop.new_event_loop()
        self.patrol = Patrol(self._loop)
        self._addresses: dict[str, str] = {}
        self._embedded: Embedded | None = None
        self._asked: list[int] = []  # before there was anybody to tell
        self._quitting = False
        self._stopped = asyncio.Event()
        self._bridges = Bridges(self._loop, handover.loops, self._start, self._envoy_stopped)

    @property
    def next_future(self) -> NextFuture:
        """What the next future of pyvoy's is to be."""
        return self._bridges.next_future

    @property
    def rounds(self) -> Rounds:
        """Who is told that calls of pyvoy's run together."""
        return self._bridges.rounds

    def address(self, protocol: str) -> str:
        """Return `host:port` or `unix:/path` of the listener where a protocol is spoken."""
        return self._addresses[protocol if protocol in self._addresses else "both"]

    def _start(self) -> None:
        threading.Thread(target=self._run, name="tritonpy", daemon=True).start()
        threading.Thread(target=self._listen_to_parent, name="envoy control", daemon=True).start()

    def _run(self) -> None:
        try:
            embedded = Embedded(self._handover.document.encode())
        except StartupError as error:
            ended, embedded = Ended(1, Failure.of(error)), None
        else:
            ended = Ended(0, None)
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.run(self._life(embedded, ended))
        self._bridges.end()

    async def _life(self, embedded: Embedded | None, ended: Ended) -> None:
        if embedded is not None:
            if not await self._ready():
                return  # who started Envoy has its reason, and says it
            ended = await self._serve(embedded) if len(self._addresses) == self._handover.loops else _NOT_EVERYWHERE
        self._quitting = True
        self._tell(ended)
        await self.admin.quit()
        await self._stopped.wait()

    async def _ready(self) -> bool:
        """Return whether Envoy has begun, with those of its listeners that it can have; it may end instead."""
        asking = asyncio.create_task(self.admin.addresses())
        ending = asyncio.create_task(self._stopped.wait())
        await asyncio.wait((asking, ending), return_when=asyncio.FIRST_COMPLETED)
        asking.cancel()
        ending.cancel()
        if self._stopped.is_set():
            return False
        self._addresses = asking.result()
        return True

    async def _serve(self, embedded: Embedded) -> Ended:
        self._tell(Listening())
        self._embedded = embedded
        for number in self._asked:
            embedded.signalled(number)
        renewal = Renewal(self._handover.tls)
        try:
            return Ended(*await embedded.serve())
        finally:
            await renewal.stop()

    def _tell(self, message: Ended | Listening) -> None:
        try:
            self._wire.send(message)
        except OSError:
            LOG.debug("who started Envoy is gone")

    def _listen_to_parent(self) -> None:
        while (asked := self._wire.receive(Asked)) is not None:
            self._loop.call_soon_threadsafe(self._signalled, asked.signal)
        if not self._quitting:
            LOG.error("the process that started Envoy is gone: exiting")
            shutil.rmtree(Path(self._handover.admin).parent, ignore_errors=True)
            os._exit(1)

    def _signalled(self, number: int) -> None:
        if self._embedded is None:
            self._asked.append(number)
        else:
            self._embedded.signalled(number)

    def _envoy_stopped(self) -> None:
        """Hear, on the event loop, that Envoy ends: because we asked it to, or somebody else did."""
        self.admin.ending = True
        if not self._stopped.is_set() and not self._quitting and self._embedded is not None:
            LOG.warning("Envoy was told to end by somebody else")
            self._signalled(signal.SIGTERM)
        self._stopped.set()


_host: Host | None = None


def take_over() -> Host:
    """Make this process, Envoy's, the server's: read what it is to be from who started it. Raises RuntimeError elsewhere than in Envoy."""
    global _host
    if CONTROL not in os.environ:
        raise RuntimeError("this module is imported by Envoy, which 'tritonpy serve --transport envoy' starts")
    descriptor = int(os.environ.pop(CONTROL))
    os.set_inheritable(descriptor, False)
    wire = Wire(socket.socket(fileno=descriptor))
    handover = wire.receive(Handover)
    if handover is None:
        raise RuntimeError("who started Envoy is gone")
    take_back(handover.interpreter)
    os.set_inheritable(handover.stderr, False)
    # Envoy's own lines go to another place, where they are made into lines of our log
    sys.stderr = os.fdopen(handover.stderr, "w", buffering=1, errors="backslashreplace")
    _host = Host(wire, handover)
    return _host


def current() -> Host:
    """Return the host of this process. Raises StartupError where it is not Envoy's."""
    if _host is None:
        raise StartupError(
            "transport 'envoy' works in a process that 'tritonpy serve' starts, not inside another program"
        )
    return _host
