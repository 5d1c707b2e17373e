"""The sum and the difference of two tensors."""

from __future__ import annotations

import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        return [self._respond(request) for request in requests]

    def _respond(self, request):
        left, right = (
            pb_utils.get_input_tensor_by_name(request, name).as_numpy()
            for name in ("INPUT0", "INPUT1")
        )
        outputs = [
            pb_utils.Tensor("OUTPUT0", left + right),
            pb_utils.Tensor("OUTPUT1", left - right),
        ]
        return pb_utils.InferenceResponse(output_tensors=outputs)
