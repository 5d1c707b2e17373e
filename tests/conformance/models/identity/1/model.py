"""Returns every input under the name of an output."""

from __future__ import annotations

import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        return [
            pb_utils.InferenceResponse([self._copy(tensor) for tensor in request.inputs()])
            for request in requests
        ]

    def _copy(self, tensor):
        return pb_utils.Tensor(tensor.name().replace("IN", "OUT"), tensor.as_numpy())
