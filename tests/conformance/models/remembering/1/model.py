"""Returns every input, including the states of its sequence."""

from __future__ import annotations

import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        return [self.respond(request) for request in requests]

    def respond(self, request):
        seen = sorted(
            f"{tensor.name()} {tensor.as_numpy().tolist()}" for tensor in request.inputs()
        )
        return pb_utils.InferenceResponse([pb_utils.Tensor("OUT", np.array([seen], np.object_))])
