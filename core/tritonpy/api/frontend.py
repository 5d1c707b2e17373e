"""The interface of a frontend: a protocol on a port."""

from __future__ import annotations

import asyncio
import logging
import socket
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from tritonpy.api.claim import Claim, Claimed
from tritonpy.api.options import NoOptions, Options
from tritonpy.api.tracer import Tracer
from tritonpy.custom_metrics import CustomMetrics, ModelMetrics
from tritonpy.request_memory import RequestMemory

if TYPE_CHECKING:
    from tritonpy.access.gatekeeper import Gatekeeper
    from tritonpy.api.engine import Engine
    from tritonpy.listening.single_port import SinglePort


@dataclass(frozen=True, slots=True)
class FrontendContext:
    """`host` is the server-wide bind address, used where the frontend's own options give none.

    With a `gatekeeper` the frontend asks it to admit every call before it does anything for it, or even says whether a model is there.
    The headers of inference calls that `kept_headers` names, in lower case, go into `InferRequest.headers`. `metrics` takes what it counts.
    With a `single_port` it opens no port: that one passes it connections through `accept`.
    With a `claim` it is one of several processes that serve one address, which the claim says instead of the options.
    What the frontend keeps for clients (bodies, decompressed data, answers that they do not read) it reserves in `memory` first.
    """

    host: str
    log: logging.Logger
    gatekeeper: Gatekeeper | None = None
    tracer: Tracer = field(default_factory=Tracer)
    kept_headers: frozenset[str] = frozenset()
    metrics: ModelMetrics = field(default_factory=lambda: ModelMetrics(CustomMetrics()))
    claim: Claim | None = None
    memory: RequestMemory = field(default_factory=RequestMemory)
    single_port: SinglePort | None = None


class Frontend(ABC):
    """Speaks one protocol on the server's event loop. `start` is the one required method.

    Life: `start` (returns when the port accepts), `serving` (the models are loaded),
    `wind_down` (refuse new connections), `drain` (refuse new requests, let live ones finish), `stop` (close everything).
    All of them run on the server's event loop; none may install signal handlers. Answers to requests come through a `LoopSink`.
    """

    Options: ClassVar[type[Options]] = NoOptions
    protocols: ClassVar[tuple[str, ...]] = ()  # ALPN names of the protocols whose connections `accept` takes
    scales: ClassVar[bool] = False  # True: several processes can serve it together, see `claim`

    def __init__(self, options: Any, context: FrontendContext) -> None:
        self.options = options
        self.context = context

    @abstractmethod
    async def start(self, engine: Engine) -> None:
        """Listen. Raises StartupError when the port is taken, naming address and port."""

    def claim(self) -> Claimed:
        """Take the address for processes that will serve it together, and do not serve it (only where it `scales`). Raises StartupError as `start` does."""
        raise NotImplementedError(f"{type(self).__name__} cannot be served by several processes")

    def accept(self, accepted: socket.socket) -> None:
        """Serve a connection that a shared port accepted (only with `protocols`).

        The frontend owns the socket from now on. No byte of it was read: TLS, limits and access rules are the frontend's own.
        """
        raise NotImplementedError(f"{type(self).__name__} takes no connections of a shared port")

    def is_encrypted(self) -> bool:
        """Return whether its connections begin with a TLS handshake (optional)."""
        return False

    def http_connection(self) -> asyncio.Protocol:
        """Return the protocol object of a new HTTP/1.1 connection (only where `protocols` has http/1.1).

        A frontend that carries HTTP over another protocol connects it to a transport of its own, and sends it one request.
        """
        raise NotImplementedError(f"{type(self).__name__} does not speak HTTP/1.1")

    def serve_http(self, connection: Callable[[], asyncio.Protocol]) -> None:
        """Serve HTTP requests that are not this frontend's with `http_connection` of another one (optional)."""

    async def serving(self) -> None:
        """The server became ready (optional): the moment to begin what readiness need not wait for. Return soon."""

    async def wind_down(self, timeout_s: float, limit_s: float) -> None:
        """Refuse new connections, serve those that clients use, and return when they use them no more or after `limit_s` (optional).

        It is the first step of a stop that may take `timeout_s`; requests are not refused yet.
        """

    async def drain(self) -> None:
        """Refuse new requests with Unavailable and return when the live ones are answered (optional)."""

    async def stop(self) -> None:
        """Close every connection and the port (optional)."""

    def address(self) -> str:
        """Return where clients reach it, `host:port`, for the log; empty before `start` (optional)."""
        return ""
