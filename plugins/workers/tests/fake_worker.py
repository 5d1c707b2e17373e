"""A fake worker without a process, on the event loop of the test."""

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

from plugins.workers.tests.worker_end import WorkerEnd
from tritonpy.api.contexts import InstanceContext, ModelContext
from tritonpy.api.engine import Engine
from tritonpy.runners.call_graph import CallGraph
from tritonpy.runners.slot import Slot
from tritonpy_config.options import NoOptions
from tritonpy_engine_rpc.connection import Connection
from tritonpy_ipc import Frame, Kind
from tritonpy_metrics import CustomMetrics, ModelMetrics
from tritonpy_testing.parse import model_config
from tritonpy_testing.recording_sink import WAIT_S
from tritonpy_testing.toy_engine import ToyEngine
from tritonpy_types import Batch, InferRequest, InferResponse, Tensor
from tritonpy_types.errors import Cancelled, Internal
from tritonpy_workers.executions import Executions
from tritonpy_workers.rpc_session import RpcSession
from tritonpy_workers.worker_registry import WorkerRegistry

CALLER = 'name: "caller" instance_group { count: 1 kind: KIND_CPU }'


def on_loop(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """Run an `async def` test on its own event loop."""

    @functools.wraps(test)
    def run(*arguments: Any, **named: Any) -> None:
        async def bounded() -> None:
            async with asyncio.timeout(WAIT_S):
                await test(*arguments, **named)

        asyncio.run(bounded())

    return run


async def nothing_more(_count: int) -> int | None:
    return None


def registry_of(engine: Engine) -> WorkerRegistry:
    """Return the worker registry of a server with `engine`."""
    return WorkerRegistry(engine.model_config, CallGraph(engine.model_config))


def model_context(engine: Engine, metrics: CustomMetrics | None = None) -> ModelContext:
    """Return the context of version 1 of the model `caller`."""
    config = model_config(CALLER)
    log = logging.LoggerAdapter(
        logging.getLogger("tritonpy.backend"), {"model": "caller", "version": 1}
    )
    folder = Path("nowhere")
    context = ModelContext(
        "caller", 1, config, folder, folder / "1", {}, {}, NoOptions(), engine, log
    )
    context.metrics = ModelMetrics(metrics or CustomMetrics())
    return context


def floats(*values: float) -> Tensor:
    return tensor(np.array(values, np.float32))


def tensor(value: Any, name: str = "IN") -> Tensor:
    return Tensor.from_numpy(name, np.atleast_1d(np.asarray(value)))


class FakeWorker(WorkerEnd):
    """Sends frames to a real `RpcSession` and records its frames.

    `broken` is the reason for which the server would end the worker, if any.
    """

    def __init__(
        self,
        model: ModelContext,
        registry: WorkerRegistry,
        take_more: Callable[[int], Awaitable[int | None]] = nothing_more,
        name: str = "caller_0_0",
    ) -> None:
        self.loop = asyncio.get_running_loop()
        ours, theirs = socket.socketpair()
        super().__init__(theirs)
        self.model = model
        self.instance = InstanceContext(name, "CPU", 0, 0)
        self.slot = Slot(self.instance)
        self.connection = Connection(self.loop, ours, self._handle_frame, self._lose)
        self.executions = Executions(model, self.connection)
        self.session = RpcSession(
            model, self.instance, self.loop, self.connection, self.executions, registry, take_more
        )
        self.broken: str | None = None
        self._changed = asyncio.Condition()

    def call(
        self, number: int, inputs: Sequence[Tensor], words: Sequence[int] = (0, 0), **fields: Any
    ) -> None:
        """Send a CALL; `words` are its execution and its request."""
        requested = fields.pop("requested", None)
        self.send(Kind.CALL, [number, *words], rows=[inputs], requested=[requested], extras=fields)

    def ask(
        self, number: int, verb: str, descriptors: Sequence[int] = (), **arguments: Any
    ) -> None:
        self.send(
            Kind.QUERY,
            [number],
            extras={"verb": verb, "arguments": arguments},
            descriptors=descriptors,
        )

    def notify(self, verb: str, **arguments: Any) -> None:
        self.send(Kind.NOTIFY, extras={"verb": verb, "arguments": arguments})

    async def receive(self, kind: int) -> Frame:
        """Return the next frame of `kind`; other frames are kept."""
        while True:
            for index, frame in enumerate(self.frames):
                if frame.kind == kind:
                    return self.frames.pop(index)
            await self.read()

    async def answer(self) -> tuple[tuple[int, ...], list[dict[str, Any]], dict[str, Any]]:
        """Return words, outputs by name and JSON extras of the next CALL_RESPONSE."""
        frame = await self.receive(Kind.CALL_RESPONSE)
        rows, _ = self.endpoint.rows(frame, 2, Tensor)
        outputs = [{each.name: each.numpy() for each in row} for row in rows]
        fields = {key: frame.extras[key] for key in ("error", "parameters") if key in frame.extras}
        if "error" in fields:
            # Only backends of this project use the class name.
            fields["error"] = fields["error"][:2]
        return frame.words[:2], outputs, fields

    async def reply(self, number: int) -> Any:
        """Return the value of the next result, or its error as a list."""
        frame = await self.receive(Kind.QUERY_RESULT)
        assert frame.words == (number,)
        return frame.extras["error"] if "error" in frame.extras else frame.extras["value"]

    async def until_broken(self) -> str:
        """Wait until the server finds the worker broken and return the reason."""
        async with self._changed:
            await self._changed.wait_for(lambda: self.broken is not None)
        return self.broken or ""

    def execute(self, *requests: InferRequest) -> Batch:
        """Let the server send these requests in one execution."""
        batch = Batch(list(requests), model=self.model, instance=self.slot)
        for request in requests:
            request.batch = batch
        self.executions.send([batch])
        return batch

    def done(self, execution: int) -> None:
        """Report that `execute` returned."""
        self.send(Kind.RESPONSES, [1, execution, 1, 2, 0], rows=[])

    def close(self) -> None:
        """End the worker, as the server sees it."""
        self.socket.close()
        self.connection.close()
        self.session.close(Internal("the worker died"))
        self.endpoint.close()

    def _handle_frame(self, frame: Frame) -> None:
        if frame.kind == Kind.RESPONSES:
            self.executions.take(frame, lambda _: None)
        else:
            self.session.handle(frame)

    def _lose(self, reason: str) -> None:
        self.broken = reason
        self.loop.create_task(self._notify())

    async def _notify(self) -> None:
        async with self._changed:
            self._changed.notify_all()


class Recorder(ToyEngine):
    """Records requests; the test responds to them or never does."""

    def __init__(self) -> None:
        super().__init__()
        self.requests: list[InferRequest] = []

    def infer(self, request: InferRequest) -> None:
        self.requests.append(request)
        request.owner = self

    def respond(self, requests: Sequence[InferRequest], responses: Sequence[InferResponse]) -> None:
        for request, response in zip(requests, responses, strict=True):
            request.finished = response.final
            request.sink.put(request, response)

    def cancel(self, request: InferRequest) -> None:
        request.respond(InferResponse.failed(request, Cancelled("Request cancelled")))


@asynccontextmanager
async def worker_of(engine: Engine, **more: Any) -> AsyncIterator[FakeWorker]:
    """Connect a worker of the model `caller` to a server with `engine`."""
    worker = FakeWorker(
        model_context(engine, more.pop("metrics", None)), registry_of(engine), **more
    )
    try:
        yield worker
    finally:
        worker.close()


async def eventually(condition: Callable[[], object]) -> None:
    """Run the loop until `condition` holds."""
    while not condition():  # noqa: ASYNC110  no event is available
        await asyncio.sleep(0)
