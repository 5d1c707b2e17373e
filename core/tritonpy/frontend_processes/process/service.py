"""The life of a frontend process: start the frontends, serve, drain, stop."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import sys
from collections.abc import Callable, Sequence

import msgspec

from tritonpy.access.gatekeeper import Gatekeeper
from tritonpy.api.claim import Claim
from tritonpy.api.frontend import Frontend, FrontendContext
from tritonpy.config.server import ServerConfig, decode_options, decode_server_config
from tritonpy.errors import StartupError
from tritonpy.frontend_processes import kinds
from tritonpy.frontend_processes.process.asking import Asking
from tritonpy.frontend_processes.process.engine import FrontendEngine
from tritonpy.frontend_processes.process.sent import Sent
from tritonpy.frontend_processes.process.tracer import FrontendTracer
from tritonpy.frontend_processes.start import Start, TracerState
from tritonpy.interpreter import settle_interpreter
from tritonpy.ipc import Frame, Kind, ProtocolError
from tritonpy.ipc.lifeline import Lifeline, end
from tritonpy.logs import LOGGER, LogSettings
from tritonpy.plugins import make_plugin_manager
from tritonpy.plugins.carrying import frontend_classes
from tritonpy.request_memory import RequestMemory, request_memory
from tritonpy.runners.workers.backend_process.logs import send_log_to
from tritonpy.runners.workers.backend_process.metrics import Link, RemoteMetrics
from tritonpy.runners.workers.connection import Connection
from tritonpy.runners.workers.verbs import Respondent, Verbs

log = logging.getLogger("tritonpy.server")
_REPORT_S = 1.0  # between two looks at the memory of requests


class _FrontendSaid(msgspec.Struct):
    frontend: str


class _WindDown(msgspec.Struct):
    frontend: str
    timeout_s: float
    limit_s: float


class _Nothing(msgspec.Struct):
    pass


class Service:
    """Everything of one process, on its event loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop, connection: socket.socket, lifeline: Lifeline) -> None:
        self._loop = loop
        self._lifeline = lifeline
        self._connection = Connection(loop, connection, self._heard, end)
        self._asking = Asking(loop, self._connection)
        self._tracer = FrontendTracer(TracerState(active=False, headers=()), self._note)
        self._sent = Sent(loop, self._connection, self._tracer)
        self._engine = FrontendEngine(self._asking, self._sent)
        self._frontends: dict[str, Frontend] = {}
        self._gatekeeper: Gatekeeper | None = None
        self._memory = RequestMemory()
        self._reporting: asyncio.Task[None] | None = None
        self._starting: asyncio.Task[None] | None = None
        self._stopped = asyncio.Event()
        verbs: Verbs = {
            "serving": (_FrontendSaid, self._serving),
            "wind_down": (_WindDown, self._wind_down),
            "drain": (_FrontendSaid, self._drain),
            "pulse": (_Nothing, lambda _: None),
            "models_changed": (_Nothing, lambda _: self._engine.forget()),
            "log_settings": (LogSettings, _follow_log_settings),
            "tracer": (TracerState, self._tracer.follow),
        }
        respondent = Respondent(loop, self._connection, verbs, log)
        self._hear: dict[int, Callable[[Frame], None]] = {
            kinds.ANSWER: self._sent.answered,
            Kind.REPLY: self._asking.replied,
            Kind.ASK: respondent.asked,
            Kind.TELL: respondent.told,
            Kind.START: self._take_start,
            Kind.STOP: lambda _: self._stopped.set(),
        }

    async def run(self) -> None:
        """Return when the engine's process has said STOP and everything is closed."""
        await self._stopped.wait()
        if self._starting is not None:
            self._starting.cancel()
            await asyncio.wait((self._starting,))
        await asyncio.gather(*(_stop(frontend) for frontend in self._frontends.values()))
        if self._gatekeeper is not None:
            await asyncio.to_thread(self._gatekeeper.close)
        if self._reporting is not None:
            self._reporting.cancel()
        self._lifeline.cut()
        self._connection.send(Kind.STOPPED)

    def _heard(self, frame: Frame) -> None:
        hear = self._hear.get(frame.kind)
        if hear is None:
            raise ProtocolError(f"a frame of kind {frame.kind} came")
        hear(frame)

    def _take_start(self, frame: Frame) -> None:
        pipe, *sockets = frame.take_descriptors()
        self._lifeline.hold(pipe)
        self._starting = self._loop.create_task(self._start(frame, sockets))

    async def _start(self, frame: Frame, sockets: Sequence[int]) -> None:
        try:
            start = Start.read(frame.extras)
            sys.path[:] = start.search
            send_log_to(self._asking.tell)
            _follow_log_settings(start.logging)
            self._tracer.follow(start.tracer)
            await self._serve(start, sockets)
        except Exception as error:
            if not isinstance(error, StartupError):
                log.exception("a frontend process failed to start")
            self._connection.send(Kind.FAILED, extras={"message": str(error) or repr(error)})
            return
        settle_interpreter()
        self._connection.send(Kind.STARTED, extras={"pid": os.getpid()})

    async def _serve(self, start: Start, sockets: Sequence[int]) -> None:
        config = decode_server_config(start.config)
        plugins = make_plugin_manager(disable=config.plugins.disable)
        link = Link(self._asking.ask, self._asking.tell)
        if config.auth:
            from tritonpy.access.composing import make_gatekeeper

            self._gatekeeper = make_gatekeeper(config, plugins, RemoteMetrics(link))
            await asyncio.to_thread(self._gatekeeper.start)
        self._memory = request_memory(config.request_memory, config.frontend_processes)
        self._reporting = self._loop.create_task(_report(self._memory, self._asking, start.index))
        raw = config.enabled_frontends(plugins.table("tritonpy_frontends"))
        class_of = frontend_classes(plugins, config.transport)
        for name, claim in _claims(start, sockets).items():
            kind = class_of(name)
            options = decode_options(kind.Options, raw[name], f"frontends.{name}")
            frontend = kind(options, self._context(config, start, name, claim, link))
            await frontend.start(self._engine)
            self._frontends[name] = frontend

    def _context(self, config: ServerConfig, start: Start, name: str, claim: Claim, link: Link) -> FrontendContext:
        return FrontendContext(
            config.host,
            logging.getLogger(f"{LOGGER}.{name}"),
            self._gatekeeper,
            self._tracer,
            frozenset(start.kept_headers),
            RemoteMetrics(link),
            claim,
            self._memory,
        )

    async def _serving(self, said: _FrontendSaid) -> None:
        await self._frontends[said.frontend].serving()

    async def _wind_down(self, message: _WindDown) -> None:
        await self._frontends[message.frontend].wind_down(message.timeout_s, message.limit_s)

    async def _drain(self, said: _FrontendSaid) -> None:
        await self._frontends[said.frontend].drain()

    def _note(self, number: int, stamps: list[tuple[str, int]]) -> None:
        self._connection.send(kinds.NOTES, [number], extras={"stamps": stamps})


def _claims(start: Start, sockets: Sequence[int]) -> dict[str, Claim]:
    left = iter(sockets)
    return {
        name: Claim(said.address, said.port, socket.socket(fileno=next(left)) if said.listens else None, start.index)
        for name, said in start.claims.items()
    }


async def _report(memory: RequestMemory, asking: Asking, index: int) -> None:
    """Tell the engine's process what the metrics of this one show, when that changes."""
    told: list[int] = []
    while True:
        values = memory.values()
        if values != told:
            asking.tell("request_memory", process=str(index), values=values)
            told = values
        await asyncio.sleep(_REPORT_S)


def _follow_log_settings(settings: LogSettings) -> None:
    """Tell the engine's process, which writes the lines, only what it is going to write."""
    logging.getLogger(LOGGER).setLevel(settings.threshold())


async def _stop(frontend: Frontend) -> None:
    try:
        await frontend.stop()
    except Exception:
        log.exception("%s failed to stop", type(frontend).__name__)
