"""Probes while the server is busy or has no model: a busy pod must not be restarted."""

from __future__ import annotations

import http.client
import json
import threading
from pathlib import Path
from typing import Any

from tritonpy import Backend, hookimpl
from tritonpy_testing import running_server

WAITING = 50
CONFIG = """
    backend: "held"
    dynamic_batching { default_queue_policy { max_queue_size: 10 } }
    input { name: "IN" data_type: TYPE_FP32 dims: 1 }
    output { name: "OUT" data_type: TYPE_FP32 dims: 1 }
"""
BODY = {"inputs": [{"name": "IN", "datatype": "FP32", "shape": [1], "data": [1]}]}


def status(address: str, path: str, body: Any = None) -> int:
    connection = http.client.HTTPConnection(address, timeout=30)
    try:
        method = "GET" if body is None else "POST"
        connection.request(method, path, None if body is None else json.dumps(body))
        return connection.getresponse().status
    finally:
        connection.close()


def test_liveness_and_readiness_do_not_wait_for_a_busy_model(tmp_path: Path) -> None:
    released = threading.Event()

    class Held(Backend):
        def infer(self, inputs: Any) -> Any:
            released.wait(60)
            return {"OUT": inputs["IN"]}

    class Plugin:
        @hookimpl
        def tritonpy_backends(self) -> dict[str, type[Backend]]:
            return {"held": Held}

    (tmp_path / "model" / "1").mkdir(parents=True)
    (tmp_path / "model" / "config.pbtxt").write_text(CONFIG, encoding="utf-8")
    frontends = {"http": {"port": 0}, "grpc": False, "metrics": False}
    config = {"repositories": [{"url": str(tmp_path)}], "frontends": frontends}
    with running_server(config, [Plugin()]) as server:
        infer = "/v2/models/model/infer"
        found: list[int] = []
        threads = [
            threading.Thread(target=lambda: found.append(status(server.http, infer, BODY)))
            for _ in range(WAITING)
        ]
        for thread in threads:
            thread.start()
        try:
            while not found:  # the queue is full: requests are refused
                assert status(server.http, "/v2/health/live") == 200
            assert status(server.http, "/v2/health/live") == 200
            assert status(server.http, "/v2/health/ready") == 200
        finally:
            released.set()
            for thread in threads:
                thread.join(60)
        assert found.count(200) >= 10


def test_liveness_does_not_need_a_model(tmp_path: Path) -> None:
    frontends = {"http": {"port": 0}, "grpc": False, "metrics": False}
    with running_server(
        {"repositories": [{"url": str(tmp_path)}], "frontends": frontends}
    ) as server:
        assert status(server.http, "/v2/health/live") == 200
