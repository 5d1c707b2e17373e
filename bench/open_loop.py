"""Open loop of requests over both protocols in its own process, independent of responses."""

from __future__ import annotations

import asyncio
import gc
import multiprocessing
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import tritonclient.grpc
import tritonclient.grpc.aio
import tritonclient.http
import tritonclient.http.aio

_WARM = 20  # uncounted requests before the first counted one
_TIMEOUT_S = 30.0


@dataclass(frozen=True, slots=True)
class Response:
    """One request: times when due, sent and received (monotonic, s), and value or error."""

    protocol: str
    due: float
    sent: float
    received: float
    value: int = -1
    error: str = ""

    @property
    def latency_s(self) -> float:
        """Latency from the time when the request was due."""
        return self.received - self.due


class OpenLoop:
    """Sends a request to `model` every `pause_s`, alternately over HTTP and gRPC, until `stop`."""

    def __init__(self, model: str, http: int, grpc: int, pause_s: float) -> None:
        spawn = multiprocessing.get_context("spawn")
        self._newest = spawn.Value("l", -1)
        self._over = spawn.Event()
        self._responses, ours = spawn.Pipe(duplex=False)
        arguments = (model, http, grpc, pause_s, self._newest, self._over, ours)
        self._process = spawn.Process(target=_run, args=arguments, daemon=True)

    def start(self) -> None:
        """Start; return after the uncounted first requests."""
        self._process.start()
        assert self._responses.recv() == "warm"

    @property
    def newest(self) -> int:
        """The largest value in a response so far."""
        return int(self._newest.value)

    def stop(self) -> list[Response]:
        """Wait for the last responses and return all."""
        self._over.set()
        responses: list[Response] = self._responses.recv()
        self._process.join()
        return responses


def _run(
    model: str, http: int, grpc: int, pause_s: float, newest: Any, over: Any, results: Any
) -> None:
    gc.disable()
    results.send(
        asyncio.run(_load(model, http, grpc, pause_s, newest, over, lambda: results.send("warm")))
    )


async def _load(
    model: str,
    http: int,
    grpc: int,
    pause_s: float,
    newest: Any,
    over: Any,
    warm: Callable[[], None],
) -> list[Response]:
    given = np.ones(1, np.float32)
    async with (
        tritonclient.http.aio.InferenceServerClient(f"127.0.0.1:{http}") as http_client,
        tritonclient.grpc.aio.InferenceServerClient(f"127.0.0.1:{grpc}") as grpc_client,
    ):
        targets = []
        for name, client, module in (
            ("HTTP", http_client, tritonclient.http),
            ("gRPC", grpc_client, tritonclient.grpc),
        ):
            tensor = module.InferInput("IN", [1], "FP32")
            tensor.set_data_from_numpy(given)
            targets.append((name, client, [tensor]))

        async def send_request(
            protocol: str, client: Any, inputs: Sequence[Any], due: float
        ) -> Response:
            sent = time.monotonic()
            try:
                async with asyncio.timeout(_TIMEOUT_S):
                    result = await client.infer(model, inputs)
                value = int(result.as_numpy("OUT")[0])
            except Exception as error:
                return Response(
                    protocol, due, sent, time.monotonic(), error=f"{type(error).__name__}: {error}"
                )
            newest.value = max(newest.value, value)
            return Response(protocol, due, sent, time.monotonic(), value)

        for turn in range(_WARM):
            await send_request(*targets[turn % 2], time.monotonic())
        warm()
        tasks: list[asyncio.Task[Response]] = []
        due = time.monotonic()
        while not over.is_set():
            due += pause_s
            await asyncio.sleep(max(due - time.monotonic(), 0))
            tasks.append(asyncio.create_task(send_request(*targets[len(tasks) % 2], due)))
        return await asyncio.gather(*tasks)
