"""Forwards its tensors to another model and returns that model's tensors or error."""

from __future__ import annotations

import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        return [self._respond(request) for request in requests]

    def _respond(self, request):
        call = pb_utils.InferenceRequest(
            model_name="add_sub",
            inputs=request.inputs(),
            requested_output_names=["OUTPUT0", "OUTPUT1"],
            request_id=request.request_id(),
        )
        response = call.exec()
        if response.has_error():
            raise pb_utils.TritonModelException(response.error().message())
        return pb_utils.InferenceResponse(response.output_tensors())
