"""The cost of OpenAI's API per token, and the memory of slow readers, with an engine of no cost.

    python -m bench.openai_streams

The frontend runs in this process. A thread plays the engine: it sends a token to each of the open
requests in turn. Its own CPU time is subtracted. Clients are other processes.

- tokens: 32 streams at a time; CPU time of the process per token, without that of the engine.
- first token: the time that the frontend adds to that of the engine, alone, median.
- slow readers: 1,000 streams whose clients read nothing; memory that the process gains.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import multiprocessing
import resource
import socket
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from google.protobuf import text_format

from tritonpy import InferRequest, InferResponse, Tensor
from tritonpy.frontend import FrontendContext, ModelMetadata, TensorMetadata
from tritonpy_frontend_openai.frontend import OpenAiFrontend
from tritonpy_frontend_openai.options import ModelOptions, OpenAiOptions
from tritonpy_protos.model_config_pb2 import ModelConfig
from tritonpy_testing import ToyEngine

NAME, STREAMS, SLOW = "chat", 32, 1000
TOKENS = 200
TEMPLATE = "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}"
INPUTS = ("text_input", "sampling_parameters")


class FreeEngine(ToyEngine):
    """Sends `tokens` tokens to each request, one to each in turn."""

    def __init__(self, tokens: int) -> None:
        super().__init__([])
        self.tokens = tokens
        self.cpu_s = 0.0
        self._config = text_format.Parse('backend: "vllm"', ModelConfig(name=NAME))
        self._new: list[InferRequest] = []
        self._changed = threading.Condition()
        self._ends = False
        self._text = [
            Tensor.from_numpy("text_output", np.array([b" token"], np.object_)),
            Tensor.from_numpy("num_input_tokens", np.array([7], np.uint32)),
            Tensor.from_numpy("num_output_tokens", np.array([1], np.uint32)),
        ]
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def model_config(self, name: str, version: int = -1) -> ModelConfig:
        return self._config

    def model_metadata(self, name: str, version: int = -1) -> ModelMetadata:
        inputs = [TensorMetadata(each, "BYTES", [1]) for each in INPUTS]
        return ModelMetadata(
            name, ["1"], "vllm", inputs, [TensorMetadata("text_output", "BYTES", [-1])]
        )

    def model_folder(self, name: str, version: int = -1) -> str:
        return ""

    def infer(self, request: InferRequest) -> None:
        request.owner = self
        with self._changed:
            self._new.append(request)
            self._changed.notify()

    def respond(self, requests: Sequence[InferRequest], responses: Sequence[InferResponse]) -> None:
        for request, response in zip(requests, responses, strict=True):
            request.sink.put(request, response)

    def cancel(self, request: InferRequest) -> None:
        """Do nothing: the thread sees the flag."""

    def close(self) -> None:
        with self._changed:
            self._ends = True
            self._changed.notify()
        self._thread.join()

    def _run(self) -> None:
        left: dict[int, tuple[InferRequest, int]] = {}
        while not self._ends:
            with self._changed:
                if not left:
                    self._changed.wait_for(lambda: self._new or self._ends)
                for request in self._new:
                    left[id(request)] = (request, self.tokens)
                self._new.clear()
            began = time.thread_time()
            moved = False
            for key, (request, count) in list(left.items()):
                if request.cancelled:
                    del left[key]
                elif not count:
                    request.sink.put(request, InferResponse((), NAME, 1, empty=True))
                    del left[key]
                    moved = True
                elif request.sink.ready(request):
                    request.sink.put(request, InferResponse(self._text, NAME, 1, final=False))
                    left[key] = (request, count - 1)
                    moved = True
            self.cpu_s += time.thread_time() - began
            # Each token of a stream is a wake-up of its own, as with an engine that computes.
            time.sleep(0.001 if moved else 0.01)


def request_bytes(number: int) -> bytes:
    body = json.dumps(
        {
            "model": NAME,
            "messages": [{"role": "user", "content": f"Tell me about number {number}."}],
            "stream": True,
        }
    ).encode()
    head = (
        "POST /v1/chat/completions HTTP/1.1\r\nHost: bench\r\nContent-Type: application/json\r\n"
        f"X-Request-Id: {number}\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


def read_streams(port: int, count: int, rounds: int, done: Any) -> None:
    """Read `count` streams at a time to their ends, `rounds` times."""

    async def one(number: int) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for turn in range(rounds):
            writer.write(request_bytes(turn * count + number))
            end = b""
            while b"[DONE]" not in end:
                part = await reader.read(65536)
                end = end[-20:] + part
            await asyncio.sleep(0)
        writer.close()

    async def every() -> None:
        await asyncio.gather(*(one(number) for number in range(count)))

    asyncio.run(every())
    done.put(None)


def first_tokens(port: int, count: int, times: Any) -> None:
    """Put the times at which requests were sent and their first tokens read, one after another."""
    with socket.create_connection(("127.0.0.1", port)) as connection:
        for number in range(count):
            sent = time.perf_counter()
            connection.sendall(request_bytes(number))
            received = b""
            while b" token" not in received:
                received += connection.recv(65536)
            first = time.perf_counter()
            while b"[DONE]" not in received:
                received += connection.recv(65536)
            times.put(first - sent)
            time.sleep(0.005)  # the engine waits for a request again
    times.put(None)


def stall(port: int, count: int, opened: Any, release: Any) -> None:
    """Open streams and read nothing."""
    streams = []
    for number in range(count):
        connection = socket.socket()
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.connect(("127.0.0.1", port))
        connection.sendall(request_bytes(number))
        streams.append(connection)
    opened.put(None)
    release.get()
    for connection in streams:
        connection.close()


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


class Live:
    """The frontend on an event loop of a thread."""

    def __init__(self, engine: FreeEngine) -> None:
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self.loop.run_forever)
        self.thread.start()
        options = OpenAiOptions(port=0, models={NAME: ModelOptions(chat_template=TEMPLATE)})
        context = FrontendContext("127.0.0.1", logging.getLogger("bench"))
        self.frontend = OpenAiFrontend(options, context)
        self.run(self.frontend.start(engine))
        self.port = int(self.frontend.address().rpartition(":")[2])

    def run(self, coroutine: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result()

    def close(self) -> None:
        self.run(self.frontend.stop())
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join()


def in_process(target: Any, *arguments: Any) -> tuple[Any, Any]:
    """Start a client process; return it and its queue."""
    context = multiprocessing.get_context("spawn")
    queue = context.Queue()
    process = context.Process(target=target, args=(*arguments, queue))
    process.start()
    return process, queue


def measure_tokens(rounds: int) -> float:
    """Return the microseconds of CPU per token with 32 streams."""
    engine = FreeEngine(TOKENS)
    live = Live(engine)
    try:
        process, queue = in_process(read_streams, live.port, STREAMS, 1)  # warm-up
        queue.get()
        process.join()
        before, engine.cpu_s = time.process_time(), 0.0
        process, queue = in_process(read_streams, live.port, STREAMS, rounds)
        queue.get()
        spent = time.process_time() - before - engine.cpu_s
        process.join()
        return spent / (STREAMS * rounds * TOKENS) * 1e6
    finally:
        live.close()
        engine.close()


def measure_first_token(count: int) -> float:
    """Return the milliseconds between a request and its first token, median."""
    engine = FreeEngine(3)
    live = Live(engine)
    try:
        process, queue = in_process(first_tokens, live.port, count)
        times = list(iter(queue.get, None))
        process.join()
        return median(times[count // 10 :]) * 1e3
    finally:
        live.close()
        engine.close()


def measure_slow_readers() -> tuple[float, float]:
    """Return the bytes per stream that the process gains, and those left after the clients left."""
    engine = FreeEngine(1_000_000)
    live = Live(engine)
    context = multiprocessing.get_context("spawn")
    opened, release = context.Queue(), context.Queue()
    before = resident_bytes()
    process = context.Process(target=stall, args=(live.port, SLOW, opened, release))
    try:
        process.start()
        opened.get()
        largest = last = 0
        for _ in range(60):  # until the memory stays the same for three seconds
            time.sleep(1)
            current = resident_bytes()
            largest = max(largest, current)
            if abs(current - last) < 1 << 18:
                break
            last = current
        release.put(None)
        process.join()
        time.sleep(2)
        return (largest - before) / SLOW, (resident_bytes() - before) / SLOW
    finally:
        live.close()
        engine.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=20, help="rounds of 32 streams")
    options = parser.parse_args()
    cost = measure_tokens(options.rounds)
    print(f"CPU per token at {STREAMS} streams: {cost:.1f} us (at most 30)", flush=True)
    first = measure_first_token(200)
    print(f"request to first token, without the engine's time: {first:.2f} ms (at most 1)")
    gained, left = measure_slow_readers()
    print(
        f"{SLOW} slow readers: {gained / 1024:.0f} KiB per stream, "
        f"{left / 1024:.0f} KiB after they left"
    )


if __name__ == "__main__":
    main()
