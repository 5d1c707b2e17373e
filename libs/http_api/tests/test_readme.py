from __future__ import annotations

import http.client
import json
import re
from pathlib import Path

import numpy as np

from tritonpy import Backend, hookimpl
from tritonpy_testing import running_server

PROJECT = Path(__file__).parent.parent
README = (PROJECT / "README.md").read_text(encoding="utf-8")
CONFIG = """
    backend: "adder"
    input { name: "IN" data_type: TYPE_FP32 dims: 2 }
    output { name: "OUT" data_type: TYPE_FP32 dims: 2 }
"""


class Adder(Backend):
    def infer(self, inputs):
        return {"OUT": inputs["IN"] + np.float32(1)}


def call(address, method, path, body=None):
    connection = http.client.HTTPConnection(address, timeout=30)
    try:
        connection.request(method, path, body)
        response = connection.getresponse()
        return response.status, response.read()
    finally:
        connection.close()


def test_the_example_runs(tmp_path):
    names = {"__name__": "example"}
    exec(README.partition("```python\n")[2].partition("```")[0], names)  # noqa: S102 - our own page

    class Plugin:
        @hookimpl
        def tritonpy_backends(self):
            return {"adder": Adder}

        @hookimpl
        def tritonpy_frontends(self):
            return {"short": names["ShortFrontend"]}

    (tmp_path / "adder" / "1").mkdir(parents=True)
    (tmp_path / "adder" / "config.pbtxt").write_text(CONFIG, encoding="utf-8")
    config = {
        "repositories": [{"url": str(tmp_path)}],
        "frontends": {
            **dict.fromkeys(("http", "grpc", "metrics"), False),
            "short": {"port": 0, "host": "127.0.0.1"},
        },
    }
    body = {"inputs": [{"name": "IN", "datatype": "FP32", "shape": [2], "data": [1, 2]}]}
    with running_server(config, [Plugin()]) as server:
        address = server.address("short")
        status, text = call(address, "POST", "/adder", json.dumps(body))
        assert (status, json.loads(text)["outputs"][0]["data"]) == (200, [2, 3])
        assert call(address, "GET", "/ping") == (200, b"")
        assert call(address, "GET", "/v2/models/adder")[0] == 200


def test_every_listed_module_exists():
    package = PROJECT / "tritonpy_http_api"
    for name in re.findall(r"^\| (.+?) \|", README, re.MULTILINE)[2:]:
        for module in re.findall(r"`(\w+\*?)`", name):
            assert list(package.glob(f"{module}.py")) or (package / module).is_dir(), module
