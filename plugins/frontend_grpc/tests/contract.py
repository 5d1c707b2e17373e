"""The contract tests of frontends with tritonclient."""

from __future__ import annotations

import numpy as np
import tritonclient.grpc as client

from tritonpy_testing import FrontendContract


class GrpcContract(FrontendContract):
    def call(self, address):
        data = np.arange(4, dtype=np.float32).reshape(1, 4)
        with client.InferenceServerClient(address) as connection:
            metadata = connection.get_model_metadata("identity")
            input_name, output_name = metadata.inputs[0].name, metadata.outputs[0].name
            result = connection.infer(
                "identity",
                [client.InferInput(input_name, [1, 4], "FP32").set_data_from_numpy(data)],
            )
        np.testing.assert_array_equal(result.as_numpy(output_name), data)
