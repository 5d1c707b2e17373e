"""Returns a description of each request and the number of requests in its batch."""

from __future__ import annotations

import json

import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        return [self._respond(request, len(requests)) for request in requests]

    def _respond(self, request, together):
        descriptions = {
            tensor.name(): [
                str(tensor.as_numpy().dtype),
                list(tensor.shape()),
                tensor.as_numpy().ravel().tolist(),
            ]
            for tensor in request.inputs()
        }
        text = json.dumps({"inputs": descriptions, "together": together}, sort_keys=True).encode()
        rows = request.inputs()[0].shape()[0] if request.inputs() else 1
        return pb_utils.InferenceResponse(
            [pb_utils.Tensor("SEEN", np.full((rows, 1), text, np.object_))]
        )
