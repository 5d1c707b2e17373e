"""A server with OpenAI's API whose model repeats the last message, word by word."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest


class EchoServer:
    """Messages with `fail`, `broken` and `forever` behave as they say."""

    def __init__(self) -> None:
        self.models = ["echo"]
        self.bodies: list[Any] = []
        self.headers: list[Any] = []
        self.ended_early = threading.Event()
        echo = self

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, *_: Any) -> None:
                pass

            def do_GET(self) -> None:
                data = [{"id": name} for name in echo.models]
                self.document(200, {"object": "list", "data": data})

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                echo.bodies.append(body)
                echo.headers.append(dict(self.headers))
                text = body["messages"][-1]["content"]
                if text == "fail":
                    self.document(400, {"error": {"message": "no such luck"}})
                    return
                self.send_response(200)
                self.end_headers()
                try:
                    self.stream(text)
                except OSError:
                    echo.ended_early.set()

            def document(self, status: int, value: Any) -> None:
                data = json.dumps(value).encode()
                self.send_response(status)
                self.send_header("content-length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def stream(self, text: str) -> None:
                self.event({"choices": [{"delta": {"role": "assistant", "content": ""}}]})
                words = text.split()
                while words == ["forever"]:
                    self.event({"choices": [{"delta": {"content": "forever "}}]})
                for word in words:
                    if word == "broken":
                        self.event({"error": {"message": "the engine broke"}})
                        return
                    self.event({"choices": [{"delta": {"content": f"{word} "}}]})
                self.event({"choices": [], "usage": {"completion_tokens": len(words)}})
                self.wfile.write(b"data: [DONE]\n\n")

            def event(self, value: Any) -> None:
                self.wfile.write(b"data: " + json.dumps(value).encode() + b"\n\n")

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever)
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


@pytest.fixture
def echo() -> Iterator[EchoServer]:
    server = EchoServer()
    yield server
    server.close()
