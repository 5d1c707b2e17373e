"""Answers as the server reads them: many in one frame."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tritonpy.errors import Code
from tritonpy.ipc import Kind
from tritonpy.ipc.channel import Channel
from tritonpy.runners.workers.backend_process.execution import Execution
from tritonpy.runners.workers.told_error import tell_error
from tritonpy.types import InferResponse, Tensor

FINAL, EMPTY = 1, 2  # flags of an answer
Row = Sequence[Tensor]


class AnswerFrame:
    """What one frame will carry; used by one thread at a time."""

    def __init__(self) -> None:
        self._done: list[int] = []
        self._runs: list[int] = []
        self._rows: list[Row] = []
        self._states: list[Row] = []
        self._extras: dict[str, Any] = {}
        self._running: dict[
            int, Execution
        ] = {}  # those that are not over, by the number of a request that is answered here

    def __bool__(self) -> bool:
        return bool(self._done or self._rows or self._extras)

    def add(self, number: int, execution: Execution, response: InferResponse, row: Row) -> None:
        """Answer request `number` of `execution`; `row` is the outputs of `response`, in host memory."""
        index = str(len(self._rows))
        runs = self._runs
        flags = (FINAL if response.final else 0) | (EMPTY if response.empty else 0)
        if runs and runs[-3] + runs[-2] == number and runs[-1] == flags:
            runs[-2] += 1
        else:
            runs += (number, 1, flags)
            self._running[number] = execution
        if response.error is not None:
            self._rare("errors")[index] = tell_error(response.error)
        if response.parameters:
            self._rare("parameters")[index] = dict(response.parameters)
        self._rows.append(row)

    def add_states(self, number: int, states: Row) -> None:
        """Send the new states of the batch that request `number` is of: the scheduler wants them with the answer."""
        self._rare("states")[str(number)] = 1
        self._states.append(states)

    def reschedule(self, number: int) -> None:
        """Hand a request back to the scheduler."""
        self._extras.setdefault("reschedule", []).append(number)

    def over(self, execution: Execution, begin_ns: int, end_ns: int) -> None:
        """Say that `execute` returned; its own times stand in for those that the backend did not give."""
        batch = execution.batch
        self._done += (execution.number, batch.input_end_ns or begin_ns, batch.infer_end_ns or end_ns)
        self._running = {number: each for number, each in self._running.items() if each is not execution}

    def send(self, channel: Channel) -> None:
        """Send it; where memory for the outputs cannot be had, errors go in their place."""
        self._add_times()
        words = [len(self._done) // 3, *self._done, len(self._runs) // 3, *self._runs]
        try:
            channel.send(Kind.ANSWERS, words, [*self._rows, *self._states], None, self._extras)
        except (OSError, MemoryError) as error:
            failure = [int(Code.INTERNAL), f"no memory for the outputs: {error}"]
            self._rare("errors").update({str(index): failure for index, row in enumerate(self._rows) if row})
            self._extras.pop("states", None)
            channel.send(Kind.ANSWERS, words, [()] * len(self._rows), None, self._extras)

    def _add_times(self) -> None:
        # Answers are counted when they come: what goes before the end of its execution brings its times along.
        for number, execution in self._running.items():
            batch = execution.batch
            if batch.input_end_ns:
                self._rare("times")[str(number)] = [batch.input_end_ns, batch.infer_end_ns]
        self._running = {}

    def _rare(self, what: str) -> dict[str, Any]:
        found: dict[str, Any] = self._extras.setdefault(what, {})
        return found
