"""The contract of frontends: the toy model is the default model of /invocations."""

from __future__ import annotations

from typing import ClassVar

import httpx

import tritonpy_frontend_sagemaker
from tritonpy_frontend_sagemaker.frontend import SageMakerFrontend
from tritonpy_testing import FrontendContract

from .conftest import infer_body


class TestContract(FrontendContract):
    plugin_class = SageMakerFrontend
    plugin = tritonpy_frontend_sagemaker
    name = "sagemaker"
    options: ClassVar = {"host": "127.0.0.1", "default_model": "identity"}

    def call(self, address):
        body = infer_body(1, 2)
        body["inputs"][0].update(shape=[1, 2])
        response = httpx.post(f"http://{address}/invocations", json=body, timeout=30)
        assert response.status_code == 200, response.text
        assert response.json()["outputs"][0]["data"] == [1, 2]
