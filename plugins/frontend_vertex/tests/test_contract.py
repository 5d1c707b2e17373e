"""The contract of frontends: a redirect runs the toy model."""

from __future__ import annotations

from typing import ClassVar

import httpx

import tritonpy_frontend_vertex
from tritonpy_frontend_vertex.frontend import VertexFrontend
from tritonpy_testing import FrontendContract


class TestContract(FrontendContract):
    plugin_class = VertexFrontend
    plugin = tritonpy_frontend_vertex
    name = "vertex"
    options: ClassVar = {
        "host": "127.0.0.1",
        "predict_route": "/predict",
        "health_route": "/health",
        "default_model": "identity",
    }

    def call(self, address):
        tensor = {"name": "IN", "datatype": "FP32", "shape": [1, 2], "data": [1, 2]}
        response = httpx.post(
            f"http://{address}/predict",
            json={"inputs": [tensor]},
            headers={"X-Vertex-Ai-Triton-Redirect": "v2/models/identity/infer"},
            timeout=30,
        )
        assert response.status_code == 200, response.text
        assert response.json()["outputs"][0]["data"] == [1, 2]
