"""The contract of frontends, with tritonclient."""

from __future__ import annotations

import numpy as np
import tritonclient.http as client

import tritonpy_frontend_http
from tritonpy_frontend_http.frontend import HttpFrontend
from tritonpy_testing import FrontendContract


class TestContract(FrontendContract):
    plugin_class = HttpFrontend
    plugin = tritonpy_frontend_http
    name = "http"

    def call(self, address):
        data = np.arange(4, dtype=np.float32).reshape(1, 4)
        with client.InferenceServerClient(address) as connection:
            metadata = connection.get_model_metadata("identity")
            given = client.InferInput(
                metadata["inputs"][0]["name"], [1, 4], "FP32"
            ).set_data_from_numpy(data)
            result = connection.infer("identity", [given])
        np.testing.assert_array_equal(result.as_numpy(metadata["outputs"][0]["name"]), data)
