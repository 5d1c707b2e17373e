"""The life cycle of a frontend process: start the frontends, serve, drain, stop."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import sys
from collections.abc import Callable, Sequence

import msgspec

from tritonpy import StartupError
from tritonpy.auth import Authorizer
from tritonpy.config import ServerConfig, decode_options, decode_server_config
from tritonpy.execution import LOGGER, settle_interpreter
from tritonpy.frontend import (
    Claim,
    Frontend,
    FrontendContext,
    LogSettings,
    RequestMemory,
    frontend_classes,
    request_memory,
)
from tritonpy.plugins import make_plugin_manager
from tritonpy_engine_rpc.connection import Connection
from tritonpy_engine_rpc.remote_logs import send_log_to
from tritonpy_engine_rpc.remote_metrics import RemoteMetrics, ServerLink
from tritonpy_engine_rpc.rpc_server import RpcHandlers, RpcServer
from tritonpy_frontend_processes import kinds
from tritonpy_frontend_processes.process.engine import FrontendEngine
from tritonpy_frontend_processes.process.forwarded_requests import ForwardedRequests
from tritonpy_frontend_processes.process.rpc_client import EngineRpcClient
from tritonpy_frontend_processes.process.tracer import FrontendTracer
from tritonpy_frontend_processes.start_message import StartMessage, TracerState
from tritonpy_ipc import Frame, Kind, ProtocolError
from tritonpy_ipc.parent_watch import ParentWatcher, exit_process

log = logging.getLogger("tritonpy.server")
_REPORT_S = 1.0  # between two reports of request memory


class _FrontendMessage(msgspec.Struct):
    frontend: str


class _StopAcceptingMessage(msgspec.Struct):
    frontend: str
    timeout_s: float
    limit_s: float


class _EmptyMessage(msgspec.Struct):
    pass


class FrontendService:
    """All parts of a frontend process, on its event loop."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        connection: socket.socket,
        parent_watcher: ParentWatcher,
    ) -> None:
        self._loop = loop
        self._parent_watcher = parent_watcher
        self._connection = Connection(loop, connection, self._handle_frame, exit_process)
        self._rpc = EngineRpcClient(loop, self._connection)
        self._tracer = FrontendTracer(TracerState(active=False, headers=()), self._send_notes)
        self._forwarded = ForwardedRequests(loop, self._connection, self._tracer)
        self._engine = FrontendEngine(self._rpc, self._forwarded)  # type: ignore[abstract]  # made from a description
        self._frontends: dict[str, Frontend] = {}
        self._authorizer: Authorizer | None = None
        self._memory = RequestMemory()
        self._reporting: asyncio.Task[None] | None = None
        self._starting: asyncio.Task[None] | None = None
        self._stopped = asyncio.Event()
        handlers: RpcHandlers = {
            "serving": (_FrontendMessage, self._serving),
            "stop_accepting": (_StopAcceptingMessage, self._stop_accepting),
            "drain": (_FrontendMessage, self._drain),
            "heartbeat": (_EmptyMessage, lambda _: None),
            "models_changed": (_EmptyMessage, lambda _: self._engine.forget()),
            "log_settings": (LogSettings, _follow_log_settings),
            "tracer": (TracerState, self._tracer.follow),
        }
        rpc_server = RpcServer(loop, self._connection, handlers, log)
        self._handlers: dict[int, Callable[[Frame], None]] = {
            kinds.RESPONSES: self._forwarded.handle_responses,
            Kind.QUERY_RESULT: self._rpc.handle_reply,
            Kind.QUERY: rpc_server.handle_query,
            Kind.NOTIFY: rpc_server.handle_notification,
            Kind.START: self._handle_start,
            Kind.STOP: lambda _: self._stopped.set(),
        }

    async def run(self) -> None:
        """Return when STOP arrived and everything is closed."""
        await self._stopped.wait()
        if self._starting is not None:
            self._starting.cancel()
            await asyncio.wait((self._starting,))
        await asyncio.gather(*(_stop(frontend) for frontend in self._frontends.values()))
        if self._authorizer is not None:
            await asyncio.to_thread(self._authorizer.close)
        if self._reporting is not None:
            self._reporting.cancel()
        self._parent_watcher.stop_watching()
        self._connection.send(Kind.STOPPED)

    def _handle_frame(self, frame: Frame) -> None:
        handler = self._handlers.get(frame.kind)
        if handler is None:
            raise ProtocolError(f"unexpected frame of kind {frame.kind}")
        handler(frame)

    def _handle_start(self, frame: Frame) -> None:
        pipe, *sockets = frame.take_descriptors()
        self._parent_watcher.watch_pipe(pipe)
        self._starting = self._loop.create_task(self._start(frame, sockets))

    async def _start(self, frame: Frame, sockets: Sequence[int]) -> None:
        try:
            start = StartMessage.read(frame.extras)
            sys.path[:] = start.search
            send_log_to(self._rpc.notify)
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

    async def _serve(self, start: StartMessage, sockets: Sequence[int]) -> None:
        config = decode_server_config(start.config)
        plugins = make_plugin_manager(disable=config.plugins.disable)
        link = ServerLink(self._rpc.call, self._rpc.notify)
        if config.auth:
            from tritonpy.auth import make_authorizer

            self._authorizer = make_authorizer(config, plugins, RemoteMetrics(link))
        if self._authorizer is not None:
            await asyncio.to_thread(self._authorizer.start)
        self._memory = request_memory(config.request_memory, config.frontend_processes)
        self._reporting = self._loop.create_task(_report(self._memory, self._rpc, start.index))
        raw = config.enabled_frontends(plugins.table("tritonpy_frontends"))
        class_of = frontend_classes(plugins, config.transport)
        for name, claim in _claims(start, sockets).items():
            kind = class_of(name)
            options = decode_options(kind.Options, raw[name], f"frontends.{name}")
            frontend = kind(options, self._context(config, start, name, claim, link))
            await frontend.start(self._engine)
            self._frontends[name] = frontend

    def _context(
        self, config: ServerConfig, start: StartMessage, name: str, claim: Claim, link: ServerLink
    ) -> FrontendContext:
        return FrontendContext(
            config.host,
            logging.getLogger(f"{LOGGER}.{name}"),
            self._authorizer,
            self._tracer,
            frozenset(start.kept_headers),
            RemoteMetrics(link),
            claim,
            self._memory,
        )

    async def _serving(self, message: _FrontendMessage) -> None:
        await self._frontends[message.frontend].serving()

    async def _stop_accepting(self, message: _StopAcceptingMessage) -> None:
        await self._frontends[message.frontend].stop_accepting(message.timeout_s, message.limit_s)

    async def _drain(self, message: _FrontendMessage) -> None:
        await self._frontends[message.frontend].drain()

    def _send_notes(self, number: int, stamps: list[tuple[str, int]]) -> None:
        self._connection.send(kinds.NOTES, [number], extras={"stamps": stamps})


def _claims(start: StartMessage, sockets: Sequence[int]) -> dict[str, Claim]:
    left = iter(sockets)
    return {
        name: Claim(
            claim.address,
            claim.port,
            socket.socket(fileno=next(left)) if claim.listens else None,
            start.index,
        )
        for name, claim in start.claims.items()
    }


async def _report(memory: RequestMemory, rpc: EngineRpcClient, index: int) -> None:
    """Report this process's request memory to the engine's process when it changes."""
    reported: list[int] = []
    while True:
        values = memory.values()
        if values != reported:
            rpc.notify("request_memory", process=str(index), values=values)
            reported = values
        await asyncio.sleep(_REPORT_S)


def _follow_log_settings(settings: LogSettings) -> None:
    """Send only lines at or above the threshold to the engine's process, which writes the log."""
    logging.getLogger(LOGGER).setLevel(settings.threshold())


async def _stop(frontend: Frontend) -> None:
    try:
        await frontend.stop()
    except Exception:
        log.exception("%s failed to stop", type(frontend).__name__)
