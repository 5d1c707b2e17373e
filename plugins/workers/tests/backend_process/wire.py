"""The server's end of a worker's channel, without a server."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from plugins.workers.tests.fake_worker import model_context
from tritonpy.api.contexts import InstanceContext, ModelContext
from tritonpy_ipc import Endpoint, Frame, Kind
from tritonpy_ipc.channel import Channel
from tritonpy_types import DTYPES, Batch, InferRequest, InferResponse, Tensor
from tritonpy_types.request import UNOWNED
from tritonpy_workers.backend_process.execution import ReceivedExecution

WAIT_S = 10


def eventually(condition: Callable[[], object]) -> None:
    """Wait until `condition()` is true."""
    end = time.monotonic() + WAIT_S
    while not condition():
        assert time.monotonic() < end, "it never became true"
        time.sleep(0.001)


@dataclass
class ReceivedResponses:
    """The contents of one RESPONSES frame."""

    done: list[tuple[int, int, int]]
    responses: list[tuple[int, int]]  # number and flags
    rows: list[dict[str, Any]]
    extras: dict[str, Any] = field(default_factory=dict)

    @property
    def numbers(self) -> list[int]:
        return [number for number, _ in self.responses]


class Wire:
    """A channel of a worker, and the other end, which records its frames.

    No method waits longer than `WAIT_S`.
    """

    def __init__(self) -> None:
        self._socket, self.theirs = socket.socketpair()
        self._socket.settimeout(WAIT_S)
        self.returns = 0  # number of RETURN frames
        self.channel = Channel(self.theirs, self._lost, DTYPES, self._returned)
        self.endpoint = Endpoint(DTYPES)
        self._frames: list[Frame] = []

    def send(self, kind: int, words: Sequence[int] = (), **more: Any) -> int:
        """Send a frame to the worker and return the number of new segments with it."""
        data, descriptors = self.endpoint.compose(kind, words, **more)
        socket.send_fds(self._socket, [data], descriptors)
        for descriptor in descriptors:
            os.close(descriptor)
        return len(descriptors)

    def next(self) -> Frame:
        """Return the next frame of the worker."""
        while not self._frames:
            data, descriptors, _, _ = socket.recv_fds(self._socket, 1 << 16, 16)
            assert data, "the worker hung up"
            self._frames += self.endpoint.feed(data, descriptors)
        return self._frames.pop(0)

    def is_silent(self) -> bool:
        """Return whether the worker has sent nothing that was not read."""
        self._socket.setblocking(False)
        try:
            data, descriptors, _, _ = socket.recv_fds(self._socket, 1 << 16, 16)
            self._frames += self.endpoint.feed(data, descriptors)
        except BlockingIOError:
            pass
        finally:
            self._socket.settimeout(WAIT_S)
        return not self._frames

    def next_responses(self) -> ReceivedResponses:
        """Return the next frame, which must contain responses."""
        frame = self.next()
        assert frame.kind == Kind.RESPONSES
        words = frame.words
        runs = 1 + 3 * words[0]
        at = runs + 1 + 3 * words[runs]
        done = [(words[i], words[i + 1], words[i + 2]) for i in range(1, runs, 3)]
        responses = [
            (number, words[i + 2])
            for i in range(runs + 1, at, 3)
            for number in range(words[i], words[i] + words[i + 1])
        ]
        rows = [
            {each.name: each.numpy().tolist() for each in row}
            for row in self.endpoint.rows(frame, at, Tensor)[0]
        ]
        return ReceivedResponses(done, responses, rows, frame.extras)

    def close(self) -> None:
        self._socket.close()
        self.channel.close()
        self.endpoint.close()

    def _lost(self, reason: str) -> None:  # type: ignore[misc]
        raise AssertionError(f"the channel was lost: {reason}")

    def _returned(self) -> None:
        self.returns += 1


def context() -> tuple[ModelContext, InstanceContext]:
    """Return the contexts of an instance of a model with one output."""
    model = model_context(None)  # type: ignore[arg-type]
    model.output_types = {"OUT": "INT32"}
    return model, InstanceContext("caller_0_0", "CPU", 0, 0)


def execution_of(
    number: int, first: int, count: int, opened: dict[int, ReceivedExecution], owner: Any = UNOWNED
) -> ReceivedExecution:
    """Return an execution of `count` requests numbered from `first`, as received by the worker."""
    model, instance = context()
    requests = {
        each: InferRequest("caller", {}, None, tag=each, owner=owner, id=str(each))  # type: ignore[arg-type]
        for each in range(first, first + count)
    }
    batch = Batch(list(requests.values()), model=model, instance=instance)
    execution = ReceivedExecution(number, batch, requests)
    for request in batch.requests:
        request.batch = batch
        opened[request.tag] = execution
    return execution


def response_of(value: int, final: bool = True, **more: Any) -> InferResponse:
    """Return a response with one output."""
    tensor = Tensor.from_numpy("OUT", np.array([value], np.int32))
    return InferResponse([tensor], "caller", 1, final=final, **more)
