"""An open loop of requests over both protocols in a process of its own: each is sent at its time, whatever became of those before it."""

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

_WARM = 20  # requests before the first that counts
_PATIENCE_S = 30.0


@dataclass(frozen=True, slots=True)
class Answer:
    """One request: when it was due, sent and answered (the machine's monotonic clock, in s), and what the model said, or why not."""

    protocol: str
    due: float
    sent: float
    taken: float
    value: int = -1
    error: str = ""

    @property
    def latency_s(self) -> float:
        """From the moment at which it was to be sent."""
        return self.taken - self.due


class OpenLoop:
    """Asks `model` for IN -> OUT, a number, every `pause_s`, by turns over HTTP and gRPC, from `start` on until `stop`."""

    def __init__(self, model: str, http: int, grpc: int, pause_s: float) -> None:
        spawn = multiprocessing.get_context("spawn")
        self._newest = spawn.Value("l", -1)
        self._over = spawn.Event()
        self._answers, ours = spawn.Pipe(duplex=False)
        arguments = (model, http, grpc, pause_s, self._newest, self._over, ours)
        self._process = spawn.Process(target=_run, args=arguments, daemon=True)

    def start(self) -> None:
        """Begin; returns after the first requests, which do not count."""
        self._process.start()
        assert self._answers.recv() == "warm"

    @property
    def newest(self) -> int:
        """The largest value that any answer had so far."""
        return int(self._newest.value)

    def stop(self) -> list[Answer]:
        """Wait for the last answers and return all of them."""
        self._over.set()
        answers: list[Answer] = self._answers.recv()
        self._process.join()
        return answers


def _run(model: str, http: int, grpc: int, pause_s: float, newest: Any, over: Any, results: Any) -> None:
    gc.disable()
    results.send(asyncio.run(_load(model, http, grpc, pause_s, newest, over, lambda: results.send("warm"))))


async def _load(
    model: str, http: int, grpc: int, pause_s: float, newest: Any, over: Any, warm: Callable[[], None]
) -> list[Answer]:
    given = np.ones(1, np.float32)
    async with (
        tritonclient.http.aio.InferenceServerClient(f"127.0.0.1:{http}") as http_client,
        tritonclient.grpc.aio.InferenceServerClient(f"127.0.0.1:{grpc}") as grpc_client,
    ):
        callers = []
        for name, client, module in (
            ("HTTP", http_client, tritonclient.http),
            ("gRPC", grpc_client, tritonclient.grpc),
        ):
            tensor = module.InferInput("IN", [1], "FP32")
            tensor.set_data_from_numpy(given)
            callers.append((name, client, [tensor]))

        async def ask(protocol: str, client: Any, inputs: Sequence[Any], due: float) -> Answer:
            sent = time.monotonic()
            try:
                async with asyncio.timeout(_PATIENCE_S):
                    result = await client.infer(model, inputs)
                value = int(result.as_numpy("OUT")[0])
            except Exception as error:
                return Answer(protocol, due, sent, time.monotonic(), error=f"{type(error).__name__}: {error}")
            newest.value = max(newest.value, value)
            return Answer(protocol, due, sent, time.monotonic(), value)

        for turn in range(_WARM):
            await ask(*callers[turn % 2], time.monotonic())
        warm()
        tasks: list[asyncio.Task[Answer]] = []
        due = time.monotonic()
        while not over.is_set():
            due += pause_s
            await asyncio.sleep(max(due - time.monotonic(), 0))
            tasks.append(asyncio.create_task(ask(*callers[len(tasks) % 2], due)))
        return await asyncio.gather(*tasks)
