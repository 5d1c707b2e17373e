"""Calls another model from many threads at once."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import triton_python_backend_utils as pb_utils


def total(number):
    inputs = [
        pb_utils.Tensor(name, np.full(4, number, np.float32)) for name in ("INPUT0", "INPUT1")
    ]
    request = pb_utils.InferenceRequest(
        model_name="add_sub", inputs=inputs, requested_output_names=["OUTPUT0"]
    )
    return request.exec().output_tensors()[0].as_numpy()[0]


class TritonPythonModel:
    def execute(self, requests):
        return [self._respond(int(request.inputs()[0].as_numpy()[0])) for request in requests]

    def _respond(self, count):
        with ThreadPoolExecutor(8) as pool:
            sums = list(pool.map(total, range(count)))
        return pb_utils.InferenceResponse([pb_utils.Tensor("SUM", np.array(sums, np.float32))])
