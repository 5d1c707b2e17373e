"""Makes all calls of PLAN to other models concurrently from a coroutine."""

from __future__ import annotations

import asyncio
import json

import numpy as np
import triton_python_backend_utils as pb_utils


def as_data(response):
    if response.has_error():
        return {"error": response.error().message(), "code": int(response.error().code())}
    return {one.name(): one.as_numpy().ravel().tolist() for one in response.output_tensors()}


class TritonPythonModel:
    async def execute(self, requests):
        return [await self._respond(one) for one in requests]

    async def _respond(self, received):
        plan = json.loads(pb_utils.get_input_tensor_by_name(received, "PLAN").as_numpy()[0])
        result = json.dumps(await asyncio.gather(*(self._call(call) for call in plan))).encode()
        return pb_utils.InferenceResponse(
            [pb_utils.Tensor("RESULT", np.array([result], np.object_))]
        )

    async def _call(self, call):
        inputs = [
            pb_utils.Tensor(name, np.array(values, kind))
            for name, (kind, values) in call["inputs"].items()
        ]
        made = pb_utils.InferenceRequest(
            model_name=call["model"], inputs=inputs, requested_output_names=call["outputs"]
        )
        try:
            if call.get("blocking"):
                return as_data(made.exec())
            if not call.get("decoupled"):
                return as_data(await made.async_exec())
            return [as_data(response) for response in await made.async_exec(decoupled=True)]
        except Exception as error:
            return {"raised": type(error).__name__, "text": str(error)}
