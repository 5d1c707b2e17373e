"""A web server with a key set."""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self


class IdentityProvider:
    """Responds to every GET with `status` and `body`.

    `request_count` counts requests. It does not respond while `stuck` is clear.
    """

    def __init__(self) -> None:
        self.status, self.body, self.request_count = 200, "", 0
        self.stuck = threading.Event()
        self.stuck.set()
        provider = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                provider.request_count += 1
                provider.stuck.wait(20)
                body = provider.body.encode()
                self.send_response(provider.status)
                self.send_header("Location", provider.url)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: Any) -> None:
                """Log nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}/jwks"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stuck.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()
