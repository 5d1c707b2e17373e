"""A fault-injecting proxy between client and store: it cuts, stalls, slows and returns errors."""

from __future__ import annotations

import contextlib
import http.client
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

TIMEOUT_S = 30
HOP_BY_HOP = {"connection", "keep-alive", "transfer-encoding", "content-length", "proxy-connection"}


@dataclass(frozen=True)
class Request:
    """A received request: method, path with query, and headers by lower-case name."""

    method: str
    path: str
    headers: dict[str, str]


@dataclass(frozen=True)
class Fault:
    """The fault of one request.

    `status` is returned instead of the response; `cut_after` closes the connection after so many
    bytes of the body. `rate` limits the bytes per second; `hang` sends no response until the proxy
    ends.
    """

    status: int = 0
    cut_after: int | None = None
    rate: float = 0
    hang: bool = False


NO_FAULT = Fault()
Rule = Callable[[Request], Fault | None]


class FaultyProxy:
    """Forwards to `upstream`, a port of 127.0.0.1, or as a forward proxy to the requested host."""

    def __init__(self, upstream: int) -> None:
        self.upstream = upstream
        self.requests: list[Request] = []
        self.rule: Rule = lambda request: None
        self.ended = threading.Event()
        self._server = _Server(("127.0.0.1", 0), type("Handler", (_Handler,), {"proxy": self}))
        self.port = int(self._server.server_address[1])
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(0.02,), name="proxy"
        )
        self._thread.start()

    def data_requests(self) -> list[Request]:
        """Return the requests for file contents."""
        return [each for each in self.requests if is_data(each)]

    def end(self) -> None:
        """Close the port and every connection."""
        self.ended.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
        self._server.cut_all()


def is_data(request: Request) -> bool:
    """Return whether a request reads the content of a file."""
    ranged = any(name in request.headers for name in ("range", "x-ms-range"))
    return request.method == "GET" and ranged


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, *arguments: object) -> None:
        super().__init__(*arguments)
        self._open: set[socket.socket] = set()

    def process_request(self, request: socket.socket, client_address: object) -> None:
        self._open.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: socket.socket) -> None:
        self._open.discard(request)
        super().shutdown_request(request)

    def cut_all(self) -> None:
        for each in list(self._open):
            _cut(each)


def _cut(connection: socket.socket) -> None:
    with contextlib.suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    proxy: FaultyProxy

    def handle_one_request(self) -> None:
        try:
            super().handle_one_request()
        except OSError:
            self.close_connection = True

    def do_GET(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        request = Request(
            self.command, self.path, {name.lower(): value for name, value in self.headers.items()}
        )
        self.proxy.requests.append(request)
        fault = self.proxy.rule(request) or Fault()
        if fault.hang:
            self.proxy.ended.wait()
            self.close_connection = True
        elif fault.status:
            self._answer(
                fault.status,
                [],
                b"<Error><Code>InternalError</Code><Message>on purpose</Message></Error>",
            )
        else:
            self._forward(body, fault)

    do_POST = do_PUT = do_HEAD = do_DELETE = do_GET  # noqa: N815

    def _forward(self, body: bytes, fault: Fault) -> None:
        target = urlsplit(self.path)
        path = f"{target.path}?{target.query}" if target.query else target.path
        connection = http.client.HTTPConnection(
            "127.0.0.1", target.port or self.proxy.upstream, timeout=TIMEOUT_S
        )
        try:
            connection.putrequest(self.command, path, skip_host=True, skip_accept_encoding=True)
            for name, value in self.headers.items():
                connection.putheader(name, value)
            connection.endheaders(body)
            answer = connection.getresponse()
            content = answer.read()
            headers = answer.getheaders()
        finally:
            connection.close()
        length = answer.getheader("Content-Length") if self.command == "HEAD" else None
        self._answer(answer.status, headers, content, fault, length)

    def _answer(
        self,
        status: int,
        headers: list[tuple[str, str]],
        content: bytes,
        fault: Fault = NO_FAULT,
        length: str | None = None,
    ) -> None:
        self.send_response_only(status)
        for name, value in headers:
            if name.lower() not in HOP_BY_HOP:
                self.send_header(name, value)
        self.send_header("Content-Length", length or str(len(content)))
        self.end_headers()
        if fault.cut_after is not None:
            self.wfile.write(content[: fault.cut_after])
            self.close_connection = True
            _cut(self.connection)
        elif fault.rate:
            self._drip(content, fault.rate)
        elif self.command != "HEAD":
            self.wfile.write(content)

    def _drip(self, content: bytes, rate: float) -> None:
        step = max(int(rate / 50), 1)
        for start in range(0, len(content), step):
            if self.proxy.ended.is_set():
                return
            self.wfile.write(content[start : start + step])
            time.sleep(step / rate)

    def log_message(self, *arguments: object) -> None:
        """Log nothing."""
