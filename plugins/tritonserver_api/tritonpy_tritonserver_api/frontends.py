"""Frontends that serve a server of this program on ports."""

from __future__ import annotations

import asyncio
import logging
import threading
from dataclasses import dataclass, fields
from types import TracebackType
from typing import TYPE_CHECKING, Any, ClassVar, Self

from tritonpy.config import decode_options
from tritonpy.frontend import Frontend, FrontendContext, frontend_classes
from tritonpy.plugins import make_plugin_manager
from tritonpy_tritonserver_api.errors import InvalidArgumentError, translated
from tritonpy_tritonserver_api.metrics import measured

if TYPE_CHECKING:
    from tritonpy_tritonserver_api.server import Server


def make_frontend(name: str, options: dict[str, Any], host: str = "127.0.0.1") -> Frontend:
    """Return a frontend of the installed plugins. Raises what the plugin manager raises."""
    kind = frontend_classes(make_plugin_manager(), ())(name)
    context = FrontendContext(host, logging.getLogger(f"tritonpy.{name}"))
    frontend: Frontend = kind(decode_options(kind.Options, options, f"frontends.{name}"), context)
    return frontend


_LAST_PORT = 65535


@dataclass
class _Address:
    """Where a frontend listens; port 0 is any free one."""

    address: str = "0.0.0.0"
    port: int = 0
    thread_count: int = 1

    def __post_init__(self) -> None:
        """Raise `ValueError` for a value of a wrong type or out of range."""
        for each in fields(self):
            text = _problem(getattr(self, each.name), each.default)
            if text:
                raise ValueError(f"{each.name}: {text}")
        if self.port > _LAST_PORT:
            raise ValueError(f"port: must be at most {_LAST_PORT}, got {self.port}")
        if self.thread_count < 1:
            raise ValueError(f"thread_count: must be at least 1, got {self.thread_count}")


def _problem(value: Any, default: Any) -> str:
    """Return what is wrong with the value of an option, or ""."""
    kind = int if isinstance(default, int) else type(default)
    if not isinstance(value, kind):
        return f"expected {kind.__name__}, got {value!r}"
    return f"must not be negative, got {value}" if kind is int and value < 0 else ""


class _Service:
    """A frontend with an event loop on a thread of its own. `with` starts and stops it."""

    name: ClassVar[str]
    Options: ClassVar[type[_Address]]

    def __init__(self, server: Server, options: Any = None) -> None:
        """Raise `InvalidArgumentError` for options of another class, or before the start."""
        chosen = self.Options() if options is None else options
        if not isinstance(chosen, self.Options):
            raise InvalidArgumentError(
                "Incorrect type for options. options argument must be of type "
                f"{type(self).__name__}.Options"
            )
        self._server = server.started()
        self._options: Any = chosen
        self._loop: asyncio.AbstractEventLoop | None = None
        self._frontend: Frontend | None = None

    def start(self) -> None:
        """Listen and serve. Raises `InternalError` if the port is in use."""
        if self._loop is not None:
            raise InvalidArgumentError("the frontend runs already")
        with translated():
            options = self.plugin_options()
            frontend = make_frontend(self.name, options, self._options.address)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(
            target=self._loop.run_forever, name=f"tritonfrontend {self.name}", daemon=True
        )
        self._thread.start()
        self._frontend = frontend
        try:
            with translated():
                self._run(frontend.start(measured(self._server.engine)))
                self._run(frontend.serving())
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """Finish the requests in flight and close the port. A second call does nothing."""
        loop, frontend = self._loop, self._frontend
        if loop is None or frontend is None:
            return
        self._run(frontend.drain())
        self._run(frontend.stop())
        self._run(loop.shutdown_default_executor())
        self._loop = self._frontend = None
        loop.call_soon_threadsafe(loop.stop)
        self._thread.join()
        loop.close()

    def address(self) -> str:
        """Return `host:port`, "" if it does not run."""
        return "" if self._frontend is None else self._frontend.address()

    def plugin_options(self) -> dict[str, Any]:
        """Return the options as the frontend's plugin reads them."""
        return {"port": self._options.port, "host": self._options.address}

    def _run(self, coroutine: Any) -> Any:
        assert self._loop is not None  # noqa: S101
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()


@dataclass
class _HttpOptions(_Address):
    """`header_forward_pattern` selects the headers that become request parameters."""

    port: int = 8000
    thread_count: int = 8
    reuse_port: bool = False
    header_forward_pattern: str = ""


class KServeHttp(_Service):
    """Serves the HTTP protocol. `thread_count` has no effect."""

    name = "http"
    Options = _HttpOptions

    def plugin_options(self) -> dict[str, Any]:
        options = self._options
        pattern = {"header_forward_pattern": options.header_forward_pattern}
        return {
            **super().plugin_options(),
            "reuse_port": options.reuse_port,
            **(pattern if options.header_forward_pattern else {}),
        }


_LEVELS = ("none", "low", "medium", "high")


@dataclass
class _GrpcOptions(_Address):
    """`infer_compression_level` counts from 0, none, to 3, high."""

    port: int = 8001
    reuse_port: bool = False
    use_ssl: bool = False
    server_cert: str = ""
    server_key: str = ""
    root_cert: str = ""
    use_mutual_auth: bool = False
    keepalive_time_ms: int = 7_200_000
    keepalive_timeout_ms: int = 20_000
    keepalive_permit_without_calls: bool = False
    http2_max_pings_without_data: int = 2
    http2_min_recv_ping_interval_without_data_ms: int = 300_000
    http2_max_ping_strikes: int = 2
    max_connection_age_ms: int = 0
    max_connection_age_grace_ms: int = 0
    infer_compression_level: int = 0
    infer_thread_count: int = 2
    infer_allocation_pool_size: int = 8
    max_response_pool_size: int = 2**31 - 1
    forward_header_pattern: str = ""


_GRPC_KEYS = (
    "reuse_port", "keepalive_time_ms", "keepalive_timeout_ms", "keepalive_permit_without_calls",
    "http2_max_pings_without_data", "http2_min_recv_ping_interval_without_data_ms",
    "http2_max_ping_strikes", "max_connection_age_ms", "max_connection_age_grace_ms",
)  # fmt: skip


class KServeGrpc(_Service):
    """Serves the gRPC protocol. Options of threads and pools have no effect."""

    name = "grpc"
    Options = _GrpcOptions

    def plugin_options(self) -> dict[str, Any]:
        options = self._options
        found = {**super().plugin_options(), **{key: getattr(options, key) for key in _GRPC_KEYS}}
        if options.forward_header_pattern:
            found["header_forward_pattern"] = options.forward_header_pattern
        if options.infer_compression_level:
            found["infer_response_compression_level"] = _LEVELS[options.infer_compression_level]
        if options.use_ssl or options.use_mutual_auth:
            found["tls"] = {
                "enabled": True,
                "certificate_file": options.server_cert,
                "key_file": options.server_key,
                "client_ca_file": options.root_cert,
                "mutual": options.use_mutual_auth,
            }
        return found


@dataclass
class _MetricsOptions(_Address):
    """Where the metrics are."""

    port: int = 8002


class Metrics(_Service):
    """Serves the metrics. `thread_count` has no effect."""

    name = "metrics"
    Options = _MetricsOptions
