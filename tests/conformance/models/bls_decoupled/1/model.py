"""Forwards the responses of a decoupled model, doubled."""

from __future__ import annotations

import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    async def execute(self, requests):
        for request in requests:
            await self._pass_on(request)

    async def _pass_on(self, request):
        sender = request.get_response_sender()
        call = pb_utils.InferenceRequest(
            model_name="repeat", inputs=request.inputs(), requested_output_names=["OUT"]
        )
        for response in await call.async_exec(decoupled=True):
            if response.has_error():
                sender.send(pb_utils.InferenceResponse(error=response.error()))
            elif response.output_tensors():
                doubled = response.output_tensors()[0].as_numpy() * 2
                sender.send(pb_utils.InferenceResponse([pb_utils.Tensor("OUT", doubled)]))
        sender.send(flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
