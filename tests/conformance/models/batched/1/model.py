"""Sums the rows of each request and returns how many rows and requests were executed together."""

from __future__ import annotations

import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        inputs = [
            pb_utils.get_input_tensor_by_name(request, "IN").as_numpy() for request in requests
        ]
        rows = sum(len(one) for one in inputs)
        return [self._respond(one, len(requests) * 100 + rows) for one in inputs]

    def _respond(self, rows, together):
        sums = rows.sum(axis=1, keepdims=True, dtype=np.int32)
        outputs = [
            pb_utils.Tensor("SUM", sums),
            pb_utils.Tensor("TOGETHER", np.full_like(sums, together)),
        ]
        return pb_utils.InferenceResponse(outputs)
