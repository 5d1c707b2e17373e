"""What one frontend process says to the engine's process, and hears from it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from typing import Any

import msgspec
import numpy as np

from tritonpy.api.engine import Engine
from tritonpy.api.tracer import Tracer
from tritonpy.custom_metrics import ModelMetrics
from tritonpy.errors import TritonError
from tritonpy.frontend_processes.guests import Guests
from tritonpy.ipc import Frame, Kind, ProtocolError
from tritonpy.runners.workers.connection import Connection
from tritonpy.runners.workers.engine_methods import MethodSaid, call_method
from tritonpy.runners.workers.log_records import RecordSaid, write_record
from tritonpy.runners.workers.metric_handles import MetricHandles
from tritonpy.runners.workers.off_loop import on_a_thread
from tritonpy.runners.workers.open_questions import OpenQuestions
from tritonpy.runners.workers.said import convert
from tritonpy.runners.workers.told_error import told_named_error
from tritonpy.runners.workers.verbs import Respondent, Verbs, VerbSaid

log = logging.getLogger("tritonpy.server")


class _LoadSaid(msgspec.Struct):
    """A model to load; the contents of its files are the row of tensors of the frame, by their names."""

    name: str
    config: str | None
    versions: list[int]


class _MemoryMessage(msgspec.Struct):
    """What `RequestMemory.values` of a process returns."""

    process: str
    values: list[int]


class _Respondent(Respondent):
    """`load_model` is the one verb whose frame has tensors: files may be large."""

    def __init__(
        self,
        engine: Engine,
        loop: asyncio.AbstractEventLoop,
        connection: Connection,
        metrics: MetricHandles,
        changed: Callable[[], None],
        request_memory: dict[str, list[int]],
    ) -> None:
        verbs: Verbs = {
            **metrics.verbs(),
            "request_memory": (_MemoryMessage, lambda said: request_memory.update({said.process: said.values})),
            "log_record": (RecordSaid, write_record),
            "engine": (MethodSaid, self._call),
        }
        super().__init__(loop, connection, verbs, log)
        self._engine = engine
        self._changed = changed

    async def _call(self, said: MethodSaid) -> Any:
        try:
            return await call_method(self._engine, said)
        finally:
            if said.method == "operate":  # it may have changed where the requests to a model go
                self._changed()

    def perform(self, said: VerbSaid, frame: Frame) -> Any:
        if said.verb != "load_model":
            return super().perform(said, frame)
        load = convert(said.arguments, _LoadSaid)
        rows = self._connection.tensors(frame, 1)
        views: dict[str, np.ndarray[Any, Any]] = {file.name: file.data for row in rows for file in row}
        return on_a_thread(
            lambda: self._engine.load_model(
                load.name, load.config, {path: view.tobytes() for path, view in views.items()} or None, load.versions
            )
        )


class Conversation:
    """Everything here runs on the loop's thread.

    `metrics` are those that frontends make; the handles of this process are given up with `forget_metrics`, later than the rest, so that
    a successor finds the counts. `changed()` is called where an operation may have changed what the process knows of models.
    `request_memory` takes what processes tell of their memory of requests.
    """

    def __init__(
        self,
        engine: Engine,
        tracer: Tracer,
        metrics: ModelMetrics,
        loop: asyncio.AbstractEventLoop,
        connection: Connection,
        changed: Callable[[], None],
        request_memory: dict[str, list[int]] | None = None,
    ) -> None:
        self._loop = loop
        self._connection = connection
        self._guests = Guests(engine, tracer, loop, connection)
        self._metrics = MetricHandles(metrics)
        self._respondent = _Respondent(
            engine, loop, connection, self._metrics, changed, {} if request_memory is None else request_memory
        )
        self._asked = OpenQuestions(loop, connection, _outcome)
        self._hear: dict[int, Callable[[Frame], None]] = {
            **self._guests.hear,
            Kind.ASK: self._respondent.asked,
            Kind.TELL: self._respondent.told,
            Kind.REPLY: self._asked.replied,
        }

    def hear(self, frame: Frame) -> None:
        """Act on a frame. Raises ProtocolError for what no frontend process says."""
        hear = self._hear.get(frame.kind)
        if hear is None:
            raise ProtocolError(f"a frame of kind {frame.kind} came")
        hear(frame)

    async def ask(self, verb: str, arguments: Mapping[str, Any]) -> None:
        """Have the process do something, and wait until it did; one that is gone has nothing to do. Raises the TritonError that it answers."""
        await self._asked.ask(verb, arguments)

    def tell(self, verb: str, arguments: Any) -> None:
        """Tell the process what has changed."""
        self._connection.send(Kind.TELL, extras={"verb": verb, "arguments": msgspec.to_builtins(arguments)})

    def close(self) -> None:
        """The process is gone: cancel what it asked for."""
        self._asked.close(None)
        self._respondent.close()
        self._guests.close()

    def forget_metrics(self) -> None:
        """Give up what the process counted, unless another one has joined it."""
        self._metrics.close()


def _outcome(frame: Frame) -> TritonError | None:
    error = frame.extras.get("error")
    return None if error is None else told_named_error(error)
