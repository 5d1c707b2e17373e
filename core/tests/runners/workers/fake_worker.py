"""The other end of a conversation: a worker without a process, on the event loop of the test."""

from __future__ import annotations

import asyncio
import functools
import logging
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import numpy as np

from core.tests.runners.workers.worker_end import WorkerEnd
from tritonpy.api.backend import InstanceContext, ModelContext
from tritonpy.api.engine import Engine
from tritonpy.api.options import NoOptions
from tritonpy.custom_metrics import CustomMetrics, ModelMetrics
from tritonpy.errors import Cancelled, Internal
from tritonpy.ipc import Frame, Kind
from tritonpy.runners.call_graph import CallGraph
from tritonpy.runners.slot import Slot
from tritonpy.runners.workers.connection import Connection
from tritonpy.runners.workers.conversation import Conversation
from tritonpy.runners.workers.executions import Executions
from tritonpy.runners.workers.neighbours import Neighbours
from tritonpy.testing.parse import model_config
from tritonpy.testing.toy_engine import ToyEngine
from tritonpy.testing.witness import PATIENCE_S
from tritonpy.types import Batch, InferRequest, InferResponse, Tensor

CALLER = 'name: "caller" instance_group { count: 1 kind: KIND_CPU }'


def on_loop(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """Run an `async def` test on a loop of its own."""

    @functools.wraps(test)
    def run(*arguments: Any, **named: Any) -> None:
        async def bounded() -> None:
            async with asyncio.timeout(PATIENCE_S):
                await test(*arguments, **named)

        asyncio.run(bounded())

    return run


async def nothing_more(_count: int) -> int | None:
    return None


def neighbours_of(engine: Engine) -> Neighbours:
    """Return what the workers of a server with `engine` share."""
    return Neighbours(engine.model_config, CallGraph(engine.model_config))


def model_context(engine: Engine, metrics: CustomMetrics | None = None) -> ModelContext:
    """Return the context of version 1 of the model `caller`."""
    config = model_config(CALLER)
    log = logging.LoggerAdapter(logging.getLogger("tritonpy.backend"), {"model": "caller", "version": 1})
    folder = Path("nowhere")
    context = ModelContext("caller", 1, config, folder, folder / "1", {}, {}, NoOptions(), engine, log)
    context.metrics = ModelMetrics(metrics or CustomMetrics())
    return context


def floats(*values: float) -> Tensor:
    return tensor(np.array(values, np.float32))


def tensor(value: Any, name: str = "IN") -> Tensor:
    return Tensor.from_numpy(name, np.atleast_1d(np.asarray(value)))


class FakeWorker(WorkerEnd):
    """Sends frames to a real `Conversation`, and keeps those that come back; `broken` is why the server would end it, once it would."""

    def __init__(
        self,
        model: ModelContext,
        neighbours: Neighbours,
        take_more: Callable[[int], Awaitable[int | None]] = nothing_more,
        name: str = "caller_0_0",
    ) -> None:
        self.loop = asyncio.get_running_loop()
        ours, theirs = socket.socketpair()
        super().__init__(theirs)
        self.model = model
        self.instance = InstanceContext(name, "CPU", 0, 0)
        self.slot = Slot(self.instance)
        self.connection = Connection(self.loop, ours, self._hear, self._lose)
        self.executions = Executions(model, self.connection)
        self.conversation = Conversation(
            model, self.instance, self.loop, self.connection, self.executions, neighbours, take_more
        )
        self.broken: str | None = None
        self._changed = asyncio.Condition()

    def call(self, number: int, inputs: Sequence[Tensor], words: Sequence[int] = (0, 0), **said: Any) -> None:
        """Send a CALL; `words` are its execution and its request."""
        wants = said.pop("wants", None)
        self.send(Kind.CALL, [number, *words], rows=[inputs], wants=[wants], extras=said)

    def ask(self, number: int, verb: str, descriptors: Sequence[int] = (), **arguments: Any) -> None:
        self.send(Kind.ASK, [number], extras={"verb": verb, "arguments": arguments}, descriptors=descriptors)

    def tell(self, verb: str, **arguments: Any) -> None:
        self.send(Kind.TELL, extras={"verb": verb, "arguments": arguments})

    async def receive(self, kind: int) -> Frame:
        """Return the next frame of `kind`; frames of other kinds stay."""
        while True:
            for index, frame in enumerate(self.frames):
                if frame.kind == kind:
                    return self.frames.pop(index)
            await self.read()

    async def answer(self) -> tuple[tuple[int, ...], list[dict[str, Any]], dict[str, Any]]:
        """Return the next CALL_ANSWER: call and flags, its outputs as arrays by name, what it says beside."""
        frame = await self.receive(Kind.CALL_ANSWER)
        rows, _ = self.endpoint.rows(frame, 2, Tensor)
        outputs = [{each.name: each.numpy() for each in row} for row in rows]
        said = {key: frame.extras[key] for key in ("error", "parameters") if key in frame.extras}
        if "error" in said:
            said["error"] = said["error"][:2]  # the name of its class is of use to backends of this project alone
        return frame.words[:2], outputs, said

    async def reply(self, number: int) -> Any:
        """Return the value of the next REPLY, or its error as a list."""
        frame = await self.receive(Kind.REPLY)
        assert frame.words == (number,)
        return frame.extras["error"] if "error" in frame.extras else frame.extras["value"]

    async def until_broken(self) -> str:
        """Wait until the server finds the worker broken, and return what it says of it."""
        async with self._changed:
            await self._changed.wait_for(lambda: self.broken is not None)
        return self.broken or ""

    def execute(self, *requests: InferRequest) -> Batch:
        """Have the server send these requests in one execution."""
        batch = Batch(list(requests), model=self.model, instance=self.slot)
        for request in requests:
            request.batch = batch
        self.executions.send([batch])
        return batch

    def done(self, execution: int) -> None:
        """Say that `execute` returned."""
        self.send(Kind.ANSWERS, [1, execution, 1, 2, 0], rows=[])

    def close(self) -> None:
        """Die, as the server sees it."""
        self.socket.close()
        self.connection.close()
        self.conversation.close(Internal("the worker died"))
        self.endpoint.close()

    def _hear(self, frame: Frame) -> None:
        if frame.kind == Kind.ANSWERS:
            self.executions.take(frame, lambda _: None)
        else:
            self.conversation.hear(frame)

    def _lose(self, reason: str) -> None:
        self.broken = reason
        self.loop.create_task(self._notify())

    async def _notify(self) -> None:
        async with self._changed:
            self._changed.notify_all()


class Recorder(ToyEngine):
    """Keeps the requests that come; they are answered when the test does, or never."""

    def __init__(self) -> None:
        super().__init__()
        self.requests: list[InferRequest] = []

    def infer(self, request: InferRequest) -> None:
        self.requests.append(request)
        request.owner = self

    def answer(self, requests: Sequence[InferRequest], responses: Sequence[InferResponse]) -> None:
        for request, response in zip(requests, responses, strict=True):
            request.answered = response.final
            request.sink.put(request, response)

    def cancel(self, request: InferRequest) -> None:
        request.respond(InferResponse.failed(request, Cancelled("Request cancelled")))


@asynccontextmanager
async def worker_of(engine: Engine, **more: Any) -> AsyncIterator[FakeWorker]:
    """Let a worker of the model `caller` talk to a server with `engine`."""
    worker = FakeWorker(model_context(engine, more.pop("metrics", None)), neighbours_of(engine), **more)
    try:
        yield worker
    finally:
        worker.close()


async def eventually(condition: Callable[[], object]) -> None:
    """Let the loop run until `condition` holds."""
    while not condition():  # noqa: ASYNC110  it is told of no event
        await asyncio.sleep(0)
