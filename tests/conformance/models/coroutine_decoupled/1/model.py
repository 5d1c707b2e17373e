"""A decoupled `async def execute`: a request may wait for an event that the next request sets."""

from __future__ import annotations

import asyncio
import json

import numpy as np
import triton_python_backend_utils as pb_utils

FINAL = pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL


def text(value):
    return pb_utils.InferenceResponse(
        [pb_utils.Tensor("OUT", np.array([value.encode()], np.object_))]
    )


class TritonPythonModel:
    def initialize(self, args):
        self.events = {}

    async def execute(self, requests):
        await asyncio.gather(*(self._run(request) for request in requests))

    async def _run(self, request):
        sender = request.get_response_sender()
        for name, *arguments in json.loads(
            pb_utils.get_input_tensor_by_name(request, "PLAN").as_numpy()[0]
        ):
            if name == "raise":
                raise ValueError("in the background")
            await getattr(self, name)(sender, *arguments)

    def _event(self, name):
        return self.events.setdefault(name, asyncio.Event())

    async def send(self, sender, value):
        sender.send(text(value))

    async def final(self, sender):
        sender.send(flags=FINAL)

    async def send_final(self, sender, value):
        sender.send(text(value), flags=FINAL)

    async def wait(self, sender, name):
        await self._event(name).wait()

    async def set(self, sender, name):
        self._event(name).set()
