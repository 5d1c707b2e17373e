"""The frontend `metrics`: Prometheus text format over HTTP."""

from __future__ import annotations

import asyncio
import socket
from concurrent.futures import ThreadPoolExecutor
from typing import Any, ClassVar

from prometheus_client import CollectorRegistry

from tritonpy import Engine, Options, StartupError, now_ns
from tritonpy.frontend import Acceptor, Evictable, Frontend, FrontendContext
from tritonpy_http1 import HttpConnection, HttpLimits, HttpServer
from tritonpy_metrics_prometheus.application import MetricsApplication
from tritonpy_metrics_prometheus.collector import EngineCollector
from tritonpy_metrics_prometheus.cpu import PROC, CpuCollector
from tritonpy_metrics_prometheus.custom import CustomCollector
from tritonpy_metrics_prometheus.exposition import text_format
from tritonpy_metrics_prometheus.gpu import GpuCollector, open_gpus
from tritonpy_metrics_prometheus.options import MetricsOptions

BACKLOG = 128  # connections waiting to be accepted
GRACE_S = 2  # time for scrapes in flight when the server stops

Evictable.register(HttpConnection)  # it has the methods, but the library knows nothing of tritonpy


class MetricsFrontend(Frontend):
    """Serves `GET /metrics`, also while the server drains."""

    Options: ClassVar[type[Options]] = MetricsOptions

    def __init__(self, options: Any, context: FrontendContext) -> None:
        super().__init__(options, context)
        self._server: HttpServer | None = None
        self._socket: socket.socket | None = None
        self._gpus: GpuCollector | None = None
        self._rendered: CollectorRegistry | None = None
        self._executor = ThreadPoolExecutor(1, "metrics")  # its thread starts with the first scrape

    async def start(self, engine: Engine) -> None:
        """Listen. Raises `StartupError` with address and port if that fails."""
        self._socket = _listen(self.options.host or self.context.host, self.options.port)
        application = self._authorized(MetricsApplication(self._registry(engine), self._executor))
        self.context.http_mounts.named["metrics"] = application
        connection = type(
            "MetricsConnection",
            (HttpConnection,),
            {"limits": HttpLimits.from_settings(self.options)},
        )
        self._server = HttpServer(
            "metrics", application, self.context.log, connection, make_acceptor=Acceptor
        )
        self._server.serve([self._socket])

    def text(self, engine: Engine) -> str:
        """Return the metrics of a server without a port: the text that the frontend serves."""
        if self._rendered is None:
            self._rendered = self._registry(engine)
        return text_format(self._rendered.collect()).decode()

    async def stop(self) -> None:
        """Close the port and every connection. Scrapes in flight finish first."""
        server, self._server = self._server, None
        if server is not None:
            await server.stop(GRACE_S)
        await asyncio.to_thread(self._executor.shutdown, cancel_futures=True)
        if self._gpus is not None:
            gpus, self._gpus = self._gpus, None
            gpus.close()

    def address(self) -> str:
        """Return `host:port` with the actual port, or "" before `start`."""
        if self._socket is None or self._socket.fileno() == -1:
            return ""
        host, port = self._socket.getsockname()[:2]
        return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"

    def _authorized(self, application: MetricsApplication) -> Any:
        authorizer = self.context.authorizer
        if authorizer is None or not authorizer.guards("metrics"):
            return application
        from tritonpy_metrics_prometheus.authorized_metrics import AuthorizedMetrics

        return AuthorizedMetrics(application, authorizer)

    def _registry(self, engine: Engine) -> CollectorRegistry:
        registry = CollectorRegistry()
        interval_ns = self.options.interval_ms * 1_000_000
        if self.options.gpu:
            self._gpus = open_gpus(self.context.gpus, interval_ns, now_ns)
        uuids = self._gpus.uuids if self._gpus is not None else ()
        registry.register(EngineCollector(engine, self.options.counter_latencies, uuids))
        if self._gpus is not None:
            registry.register(self._gpus)
        if self.options.cpu and (PROC / "stat").exists():
            registry.register(CpuCollector(interval_ns, now_ns))
        registry.register(CustomCollector(engine))
        return registry


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listening = socket.create_server((host, port), family=family, backlog=BACKLOG)
    except OSError as error:
        reason = (error.strerror or str(error)).partition(" (while")[
            0
        ]  # `create_server` appends the address, which the message already has
        raise StartupError(
            f"cannot listen for metrics on {host}:{port}: {reason}; choose another port or stop "
            "the process that uses it"
        ) from error
    listening.setblocking(False)
    return listening
