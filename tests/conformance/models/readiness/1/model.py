"""Ready or not, as set by the last request."""

from __future__ import annotations

import asyncio

import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def initialize(self, args):
        self.what = "true"

    def is_ready(self):
        return getattr(self, f"_{self.what}")()

    def _true(self):
        return True

    def _false(self):
        return False

    def _raises(self):
        raise RuntimeError("not today")

    def _number(self):
        return 1

    def _none(self):
        return None

    async def _coroutine(self):
        await asyncio.sleep(0)
        return True

    async def _coroutine_false(self):
        await asyncio.sleep(0)
        return False

    def execute(self, requests):
        tensor = pb_utils.get_input_tensor_by_name(requests[0], "WHAT").as_numpy()
        self.what = tensor[0].decode()
        return [pb_utils.InferenceResponse([pb_utils.Tensor("OUT", tensor)])]
