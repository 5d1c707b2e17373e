"""Responses collected for one frame, which can hold those of several executions."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from threading import get_ident
from typing import Any

from .api.errors import ErrorCode, TritonModelException
from .api.outgoing_tensor import OutgoingTensor, outgoing_tensor
from .api.response import InferenceResponse
from .failure import failure_prefix
from .inflight_requests import NULL_REQUEST
from .ipc import Kind
from .ipc.channel import Channel

FINAL, EMPTY = 1, 2  # flags of a response
_INTERNAL = int(ErrorCode.INTERNAL)
_MAX_DELAY_NS = 200_000  # the longest time that the first response may wait for others of its frame


def output_row(
    response: InferenceResponse, output_names: Collection[str] | None = None
) -> Sequence[OutgoingTensor]:
    """Return the `output_names` outputs for the frame (None: all).

    Raises `TritonModelException` if an output cannot be copied from its device.
    """
    if response._error is not None:
        return ()
    return [
        outgoing_tensor(tensor)
        for tensor in response._outputs
        if output_names is None or tensor._name in output_names
    ]


class ResponseFrame:
    """The contents of the next frame. Only the thread that created the object may use it."""

    def __init__(self, channel: Channel, instance: str) -> None:
        self._channel = channel
        self._instance = instance
        self._thread = get_ident()
        self._clear()

    def add_execution(self, execution: int, start_ns: int, end_ns: int) -> None:
        """Add the times of an execution that has returned."""
        self._done += (execution, start_ns, end_ns)

    def add(
        self,
        request: int,
        response: InferenceResponse | None,
        row: Sequence[OutgoingTensor],
        flags: int,
    ) -> None:
        """Add the response of a request. `row` contains its outputs."""
        if request == NULL_REQUEST:
            return
        runs = self._runs
        if runs and runs[-3] + runs[-2] == request and runs[-1] == flags:
            runs[-2] += 1
        else:
            runs += (request, 1, flags)
        self._rows.append(row)
        if response is not None and (response._error is not None or response._parameters):
            index = str(len(self._rows) - 1)
            if response._parameters:
                self._extras.setdefault("parameters", {})[index] = dict(response._parameters)
            if response._error is not None:
                error = response._error
                self._extras.setdefault("errors", {})[index] = [int(error.code()), error.message()]

    def reschedule(self, request: int) -> None:
        """Return a request to the scheduler."""
        if request == NULL_REQUEST:
            return
        self._extras.setdefault("reschedule", []).append(request)

    def is_due(self, next_ns: int) -> bool:
        """Return true to send before the next execution, which will probably end at `next_ns`."""
        return bool(self._done) and next_ns - self._done[2] > _MAX_DELAY_NS

    def send_early(self) -> None:
        """Send now, because the calling thread is about to wait. Does nothing in other threads."""
        if self._done and get_ident() == self._thread:
            self.send()

    def send(self) -> None:
        """Send the collected responses, if any.

        If there is no memory for the outputs, send errors instead and raise `TritonModelException`.
        """
        if not (self._done or self._rows or self._extras):
            return
        done, runs, rows, extras = self._done, self._runs, self._rows, self._extras
        self._clear()
        words = [len(done) // 3, *done, len(runs) // 3, *runs]
        try:
            self._channel.send(Kind.RESPONSES, words, rows, None, extras)
        except (OSError, MemoryError) as error:
            text = f"{failure_prefix(self._instance)}there is no memory for the outputs: {error}"
            refused = {str(index): [_INTERNAL, text] for index, row in enumerate(rows) if row}
            extras.setdefault("errors", {}).update(refused)
            self._channel.send(Kind.RESPONSES, words, [()] * len(rows), None, extras)
            raise TritonModelException(text) from error

    def _clear(self) -> None:
        self._done: list[int] = []
        self._runs: list[int] = []
        self._rows: list[Sequence[OutgoingTensor]] = []
        self._extras: dict[str, Any] = {}
