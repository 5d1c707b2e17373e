"""Returns its input after a short pause."""

from __future__ import annotations

import time

import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        time.sleep(0.05)
        return [self._respond(request) for request in requests]

    def _respond(self, request):
        given = pb_utils.get_input_tensor_by_name(request, "IN").as_numpy()
        return pb_utils.InferenceResponse([pb_utils.Tensor("OUT", given)])
