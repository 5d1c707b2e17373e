"""The interface of frontends, which serve a protocol on a port."""

from __future__ import annotations

import asyncio
import logging
import socket
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from tritonpy.api.device import Device, NoDevice
from tritonpy.api.trace_sink import Tracer
from tritonpy_config.options import NoOptions, Options
from tritonpy_metrics import CustomMetrics, ModelMetrics
from tritonpy_network.port_claim import Claim, ClaimedAddress
from tritonpy_network.request_memory import RequestMemory

if TYPE_CHECKING:
    from tritonpy.api.engine import Engine
    from tritonpy.auth.authorizer import Authorizer


class Transport:
    """Serves the protocols of frontends in place of their own listeners.

    `carries` maps the names of frontends to the classes that serve them. These classes take the
    same options and are created instead of the frontends.
    """

    Options: ClassVar[type[Options]] = NoOptions
    carries: ClassVar[Mapping[str, str]] = {}

    def __init__(self, options: Any) -> None:
        self.options = options


class SharedPort(Protocol):
    """A port that passes connections to several frontends, by their protocol."""

    @property
    def address(self) -> str:
        """The address `host:port` for clients."""


class HttpMounts:
    """The ASGI applications of frontends that other frontends serve on their ports.

    `is_served` is set by the HTTP frontend, which serves those of `add`. `named` has further ones
    by the names of their frontends, for a frontend that forwards single calls.
    """

    def __init__(self) -> None:
        self._mounted: list[tuple[Callable[[str], bool], Any]] = []
        self.is_served = False
        self.named: dict[str, Any] = {}

    def add(self, handles: Callable[[str], bool], application: Any) -> None:
        """Serve the paths for which `handles` returns True with an application."""
        self._mounted.append((handles, application))

    def find(self, path: str) -> Any:
        """Return the application for a path, None if there is none."""
        for handles, application in self._mounted:
            if handles(path):
                return application
        return None


@dataclass(frozen=True, slots=True)
class FrontendContext:
    """The environment of a frontend.

    - `host`: the server-wide bind address, used if the frontend's own options give none.
    - `authorizer`: if set, it must admit each call before the frontend does anything else for the
      call. Until then the frontend must not even reveal whether a model exists.
    - `kept_headers`: names, in lower case, of the headers of inference calls that the frontend
      copies to `InferRequest.headers`.
    - `metrics`: takes the metrics of the frontend.
    - `claim`: if set, the frontend runs in one of several processes that serve one address. The
      claim then overrides the address in the options.
    - `single_port`: if set, the frontend opens no port. The single port passes connections to
      `accept`.
    - `memory`: the frontend reserves here what it stores for clients: bodies, decompressed data
      and unread responses.
    - `gpus`: the GPUs of the server; none in a frontend process.
    - `http_mounts`: a frontend may add its ASGI application here instead of opening a port.
    """

    host: str
    log: logging.Logger
    authorizer: Authorizer | None = None
    tracer: Tracer = field(default_factory=Tracer)
    kept_headers: frozenset[str] = frozenset()
    metrics: ModelMetrics = field(default_factory=lambda: ModelMetrics(CustomMetrics()))
    claim: Claim | None = None
    memory: RequestMemory = field(default_factory=RequestMemory)
    single_port: SharedPort | None = None
    gpus: Device = field(default_factory=NoDevice)
    http_mounts: HttpMounts = field(default_factory=HttpMounts)


class Frontend(ABC):
    """Serves one protocol on the server's event loop. `start` is the one required method.

    The server calls `start`, `serving`, `stop_accepting`, `drain` and `stop` in this order, all on
    its event loop. `start` returns when the port accepts connections. `serving` is called when the
    models are loaded. No method may install signal handlers. Responses arrive through a `LoopSink`.
    """

    Options: ClassVar[type[Options]] = NoOptions
    # ALPN names of the protocols whose connections `accept` takes.
    protocols: ClassVar[tuple[str, ...]] = ()
    scales: ClassVar[bool] = False  # True: several processes can serve it together, see `claim`

    def __init__(self, options: Any, context: FrontendContext) -> None:
        self.options = options
        self.context = context

    @abstractmethod
    async def start(self, engine: Engine) -> None:
        """Listen. Raises StartupError with address and port if the port is in use."""

    def claim(self) -> ClaimedAddress:
        """Reserve the address for processes that will serve it together, without serving it.

        Required only if `scales` is set. Raises StartupError as `start` does.
        """
        raise NotImplementedError(f"{type(self).__name__} cannot be served by several processes")

    def accept(self, accepted: socket.socket) -> None:
        """Serve a connection that a shared port accepted (only with `protocols`).

        The frontend owns the socket from now on. No data was read from it. TLS, limits and access
        rules are those of the frontend.
        """
        raise NotImplementedError(f"{type(self).__name__} takes no connections of a shared port")

    def is_encrypted(self) -> bool:
        """Return whether its connections start with a TLS handshake (optional)."""
        return False

    def http_connection(self) -> asyncio.Protocol:
        """Return the protocol object of a new HTTP/1.1 connection.

        Required only if `protocols` contains http/1.1. A frontend that carries HTTP over another
        protocol connects it to its own transport and sends it one request.
        """
        raise NotImplementedError(f"{type(self).__name__} does not speak HTTP/1.1")

    def serve_http(self, connection: Callable[[], asyncio.Protocol]) -> None:
        """Serve HTTP for other frontends; `connection` is their `http_connection` (optional)."""

    async def serving(self) -> None:
        """Start activity that readiness need not wait for; the server has become ready (optional).

        Return soon.
        """

    async def stop_accepting(self, timeout_s: float, limit_s: float) -> None:
        """Refuse new connections; return when the others are closed or after `limit_s` (optional).

        It is the first step of a shutdown that may take `timeout_s`. Requests on open connections
        are still served.
        """

    async def drain(self) -> None:
        """Refuse new requests with Unavailable; return when those in flight end (optional)."""

    async def stop(self) -> None:
        """Close every connection and the port (optional)."""

    def address(self) -> str:
        """Return the address for the log as `host:port`; empty before `start` (optional)."""
        return ""
