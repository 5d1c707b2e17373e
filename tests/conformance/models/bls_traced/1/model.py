"""Calls another model with and without its own trace, and adds the responses."""

from __future__ import annotations

import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        return [self._respond(request) for request in requests]

    def _respond(self, request):
        one, other = (self._called(request, trace=request.trace()), self._called(request))
        return pb_utils.InferenceResponse([pb_utils.Tensor("OUTPUT0", one + other)])

    def _called(self, request, **options):
        call = pb_utils.InferenceRequest(
            model_name="add_sub",
            inputs=request.inputs(),
            requested_output_names=["OUTPUT0"],
            request_id="inner",
            **options,
        )
        response = call.exec()
        if response.has_error():
            raise pb_utils.TritonModelException(response.error().message())
        return pb_utils.get_output_tensor_by_name(response, "OUTPUT0").as_numpy()
