"""A server of OpenAI's API whose model answers with as many words as the request wants."""

from __future__ import annotations

import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class StubServer:
    """Records the requests. `fail` answers every second one with an error."""

    def __init__(self) -> None:
        self.requests: list[tuple[str, Any, dict[str, str]]] = []
        self.fails = self.reports_usage = False
        self.short_by = 0
        self.metrics = ""
        self.pause_s = 0.0
        self._lock = threading.Lock()

        self._server = _Server(("127.0.0.1", 0), _Handler)
        self._server.stub = self
        self._server.daemon_threads = True
        self.url = f"127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever)
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class _Server(ThreadingHTTPServer):
    stub: StubServer


class _Handler(BaseHTTPRequestHandler):
    server: _Server

    protocol_version = "HTTP/1.1"

    def log_message(self, *_: Any) -> None:
        pass

    def do_GET(self) -> None:
        self.document(200, self.server.stub.metrics.encode())

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        with self.server.stub._lock:
            self.server.stub.requests.append((self.path, body, dict(self.headers)))
            number = len(self.server.stub.requests)
        self.answer(body, number)

    def answer(self, body: Any, number: int) -> None:
        if self.path == "/tokenize":
            self.json(200, {"count": len(body["prompt"].split())})
        elif self.server.stub.fails and number % 2 == 0:
            self.json(429, {"error": {"message": "too many requests"}})
        elif "input" in body:
            data = [{"embedding": [1.0], "index": 0}]
            self.json(200, {"data": data, "usage": {"prompt_tokens": 3}})
        else:
            self.generate(body)

    def generate(self, body: Any) -> None:
        count = body["max_tokens"] - self.server.stub.short_by
        words = [f"word{number} " for number in range(count)]
        usage = {"prompt_tokens": 7, "completion_tokens": count}
        if not body.get("stream"):
            message = {"content": "".join(words)}
            choices = [{"message": message, "finish_reason": "length"}]
            self.json(200, {"choices": choices, "usage": usage})
            return
        self.send_response(200)
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        is_chat = "messages" in body
        if is_chat:
            self.event({"choices": [{"delta": {"role": "assistant", "content": ""}}]})
        for word in words:
            time.sleep(self.server.stub.pause_s)
            if "text_input" in body:
                self.event({"text_output": word})
            else:
                part = {"delta": {"content": word}} if is_chat else {"text": word}
                self.event({"choices": [part]})
        if self.server.stub.reports_usage:
            self.event({"choices": [], "usage": usage})
        self.chunk(b"data: [DONE]\n\n")
        self.chunk(b"")

    def event(self, value: Any) -> None:
        self.chunk(b"data: " + json.dumps(value).encode() + b"\n\n")

    def chunk(self, data: bytes) -> None:
        try:
            self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
        except OSError:
            self.close_connection = True

    def json(self, status: int, value: Any) -> None:
        self.document(status, json.dumps(value).encode())

    def document(self, status: int, data: bytes) -> None:
        self.send_response(status)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)
