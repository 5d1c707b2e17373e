"""A collector: an HTTP server that receives OTLP exports."""

from __future__ import annotations

import contextlib
import gzip
import queue
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

WAIT_S = 20


class Collector:
    """The received spans as (resource attributes, span)."""

    def __init__(self, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}/v1/traces"
        self.spans: queue.Queue[tuple[dict[str, str], Any]] = queue.Queue()

    def take(self, count: int) -> list[tuple[dict[str, str], Any]]:
        """Return the next spans. Raises `queue.Empty` if they do not arrive."""
        return [self.spans.get(timeout=WAIT_S) for _ in range(count)]


@contextlib.contextmanager
def running_collector() -> Iterator[Collector]:
    """Run a collector on a free port."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if self.headers.get("Content-Encoding") == "gzip":
                body = gzip.decompress(body)
            for group in ExportTraceServiceRequest.FromString(body).resource_spans:
                resource = {pair.key: pair.value.string_value for pair in group.resource.attributes}
                for scope in group.scope_spans:
                    for span in scope.spans:
                        collector.spans.put((resource, span))
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Log nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        collector = Collector(server.server_address[1])
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield collector
        finally:
            server.shutdown()
            thread.join()
