"""Encoding of many responses in one frame."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tritonpy import Code, InferResponse, Tensor
from tritonpy_engine_rpc.messages import encode_error
from tritonpy_ipc import Kind
from tritonpy_ipc.channel import Channel
from tritonpy_workers.backend_process.execution import ReceivedExecution

FINAL, EMPTY = 1, 2  # flags of a response
Row = Sequence[Tensor]


class ResponseFrame:
    """The content of a frame of responses; used by one thread at a time."""

    def __init__(self) -> None:
        self._done: list[int] = []
        self._runs: list[int] = []
        self._rows: list[Row] = []
        self._states: list[Row] = []
        self._extras: dict[str, Any] = {}
        self._running: dict[
            int, ReceivedExecution
        ] = {}  # unfinished executions by the number of a request with a response in this frame

    def __bool__(self) -> bool:
        return bool(self._done or self._rows or self._extras)

    def add(
        self, number: int, execution: ReceivedExecution, response: InferResponse, row: Row
    ) -> None:
        """Add a response to request `number`; `row` is its outputs in host memory."""
        index = str(len(self._rows))
        runs = self._runs
        flags = (FINAL if response.final else 0) | (EMPTY if response.empty else 0)
        if runs and runs[-3] + runs[-2] == number and runs[-1] == flags:
            runs[-2] += 1
        else:
            runs += (number, 1, flags)
            self._running[number] = execution
        if response.error is not None:
            self._extras_field("errors")[index] = encode_error(response.error)
        if response.parameters:
            self._extras_field("parameters")[index] = dict(response.parameters)
        self._rows.append(row)

    def add_states(self, number: int, states: Row) -> None:
        """Add the new states of the batch of request `number` for the scheduler."""
        self._extras_field("states")[str(number)] = 1
        self._states.append(states)

    def reschedule(self, number: int) -> None:
        """Return a request to the scheduler."""
        self._extras.setdefault("reschedule", []).append(number)

    def finish(self, execution: ReceivedExecution, begin_ns: int, end_ns: int) -> None:
        """Add the end of `execution`; its times replace those that the backend did not record."""
        batch = execution.batch
        self._done += (
            execution.number,
            batch.input_end_ns or begin_ns,
            batch.infer_end_ns or end_ns,
        )
        self._running = {
            number: each for number, each in self._running.items() if each is not execution
        }

    def send(self, channel: Channel) -> None:
        """Send the frame; if shared memory cannot be allocated, send errors instead of outputs."""
        self._add_times()
        words = [len(self._done) // 3, *self._done, len(self._runs) // 3, *self._runs]
        try:
            channel.send(Kind.RESPONSES, words, [*self._rows, *self._states], None, self._extras)
        except (OSError, MemoryError) as error:
            failure = [int(Code.INTERNAL), f"no memory for the outputs: {error}"]
            self._extras_field("errors").update(
                {str(index): failure for index, row in enumerate(self._rows) if row}
            )
            self._extras.pop("states", None)
            channel.send(Kind.RESPONSES, words, [()] * len(self._rows), None, self._extras)

    def _add_times(self) -> None:
        # The server counts a response on arrival, so one that precedes the end of its execution
        # carries the times.
        for number, execution in self._running.items():
            batch = execution.batch
            if batch.input_end_ns:
                self._extras_field("times")[str(number)] = [batch.input_end_ns, batch.infer_end_ns]
        self._running = {}

    def _extras_field(self, name: str) -> dict[str, Any]:
        found: dict[str, Any] = self._extras.setdefault(name, {})
        return found
