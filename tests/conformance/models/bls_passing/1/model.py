"""Passes its own tensors to another model and that model's tensors, or its error, back."""

from __future__ import annotations

import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        return [self._answer(request) for request in requests]

    def _answer(self, request):
        asked = pb_utils.InferenceRequest(
            model_name="add_sub",
            inputs=request.inputs(),
            requested_output_names=["OUTPUT0", "OUTPUT1"],
            request_id=request.request_id(),
        )
        response = asked.exec()
        if response.has_error():
            raise pb_utils.TritonModelException(response.error().message())
        return pb_utils.InferenceResponse(response.output_tensors())
