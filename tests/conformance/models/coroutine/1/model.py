"""`async def execute`: awaits, returns and raises, selected by WHAT."""

from __future__ import annotations

import asyncio
import threading

import numpy as np
import triton_python_backend_utils as pb_utils


def good(text):
    return pb_utils.InferenceResponse(
        [pb_utils.Tensor("OUT", np.array([text.encode()], np.object_))]
    )


class TritonPythonModel:
    async def execute(self, requests):
        what = pb_utils.get_input_tensor_by_name(requests[0], "WHAT").as_numpy()[0].decode()
        return await getattr(self, what)(requests)

    async def sleeps(self, requests):
        await asyncio.sleep(0.01)
        return [good("slept") for _ in requests]

    async def gathers(self, requests):
        parts = await asyncio.gather(
            *(asyncio.sleep(0.01 * (3 - one), str(one)) for one in range(3))
        )
        return [good(" ".join(parts)) for _ in requests]

    async def in_a_thread(self, requests):
        return [good(str(await asyncio.to_thread(lambda: "from a thread"))) for _ in requests]

    async def not_the_main_thread(self, requests):
        return [good(str(threading.current_thread() is threading.main_thread())) for _ in requests]

    async def same_loop(self, requests):
        loop = asyncio.get_running_loop()
        self.loop = getattr(self, "loop", loop)
        return [good(str(self.loop is loop)) for _ in requests]

    async def raises(self, requests):
        await asyncio.sleep(0)
        raise ValueError("after a while")

    async def raises_in_task(self, requests):
        async def part():
            raise ValueError("in a task")

        await asyncio.gather(part())

    async def is_cancelled(self, requests):
        raise asyncio.CancelledError

    async def too_few(self, requests):
        return []

    async def no_list(self, requests):
        return good("alone")

    async def sends(self, requests):
        requests[0].get_response_sender().send(
            good("sent"), flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL
        )
        return [None]
