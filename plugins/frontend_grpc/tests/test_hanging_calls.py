from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import tritonclient.grpc.aio as aio_client

from .fake_engine import FakeEngine, run, serving

CALLS = 40  # more than the threads that compress and decompress


@pytest.mark.parametrize(
    ("method", "call"), [("load_model", "load_model"), ("is_model_ready", "is_model_ready")]
)
def test_waiting_calls_do_not_block_compressed_inference(method, call):
    async def scenario():
        engine, release, entered = FakeEngine(), threading.Event(), threading.Semaphore(0)
        waiting = ThreadPoolExecutor(1)
        plain = getattr(engine, method)

        def hang(*arguments):
            entered.release()
            release.wait(30)
            return plain(*arguments)

        def wait_for_all():
            for _ in range(CALLS):
                assert entered.acquire(timeout=20)

        setattr(engine, method, hang)
        data = np.zeros(1 << 16, np.int32)
        inputs = [aio_client.InferInput("X", [1 << 16], "INT32").set_data_from_numpy(data)]
        async with (
            serving(engine) as frontend,
            aio_client.InferenceServerClient(frontend.address()) as client,
        ):
            calls = [asyncio.ensure_future(getattr(client, call)("identity")) for _ in range(CALLS)]
            try:
                await asyncio.get_running_loop().run_in_executor(waiting, wait_for_all)
                await client.infer("identity", inputs, compression_algorithm="gzip")
                await client.unload_model("identity")
            finally:
                release.set()
                waiting.shutdown()
            await asyncio.gather(*calls)

    run(scenario)
