"""Calls that wait for a model block neither compressed inference nor each other."""

from __future__ import annotations

import gzip
import json
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

CALLS = 40  # more than the threads that compress and decompress
INFER = json.dumps(
    {"inputs": [{"name": "IN", "datatype": "INT32", "shape": [1], "data": [1]}]}
).encode()


@pytest.mark.parametrize(
    ("method", "name", "path"),
    [
        ("load_model", "POST", "/v2/repository/models/echo/load"),
        ("is_model_ready", "GET", "/v2/models/echo/ready"),
        ("trace_settings", "GET", "/v2/trace/setting"),
    ],
)
def test_waiting_calls_do_not_block_other_calls(server, engine, method, name, path):
    entered, release = threading.Semaphore(0), threading.Event()
    plain = getattr(engine, method)

    def hang(*arguments):
        entered.release()
        release.wait(30)
        return plain(*arguments)

    setattr(engine, method, hang)
    with ThreadPoolExecutor(CALLS) as pool:
        calls = [
            pool.submit(server.call, name, path, b"" if name == "POST" else None)
            for _ in range(CALLS)
        ]
        try:
            for _ in range(CALLS):
                assert entered.acquire(timeout=20)
            headers = {"content-encoding": "gzip", "accept-encoding": "gzip"}
            reply = server.call("POST", "/v2/models/echo/infer", gzip.compress(INFER), headers)
            assert reply.status == 200
            assert server.call("POST", "/v2/repository/models/echo/unload", b"").status == 200
        finally:
            release.set()
        assert {call.result(20).status for call in calls} == {200}
