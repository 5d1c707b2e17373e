"""The worker process: it runs a user's function, which may call other models of the server."""

from __future__ import annotations

import itertools
import runpy
import socket
import sys
from collections import deque
from collections.abc import Mapping
from typing import Any

from tritonpy_types import Tensor
from tritonpy_types.errors import Internal, TritonError

from .frames import Channel, error_from_wire, error_to_wire, from_wire, to_wire
from .worker_frames import Call, CallResponse, Execute, Response, ToWorker

Arrays = Mapping[str, Any]


class Worker:
    """Executes one request at a time; requests that arrive during a call are queued."""

    def __init__(self, channel: Channel, path: str) -> None:
        self._channel = channel
        self._function = runpy.run_path(path)["run"]
        self._backlog: deque[Execute] = deque()
        self._numbers = itertools.count()

    def run(self) -> None:
        """Serve until the other end closes."""
        while (frame := self._next()) is not None:
            self._channel.send(self._respond(frame))

    def _next(self) -> Execute | None:
        if self._backlog:
            return self._backlog.popleft()
        frame = self._channel.receive(ToWorker)
        assert not isinstance(frame, CallResponse), "a response without a call: this is a bug"
        return frame

    def _respond(self, frame: Execute) -> Response:
        def call(model: str, inputs: Arrays) -> Arrays:
            return self._call(frame.id, model, inputs)

        inputs = {name: tensor.numpy() for name, tensor in from_wire(frame.inputs).items()}
        try:
            outputs = self._function(inputs, call)
        except TritonError as error:
            return Response(frame.id, [], error_to_wire(error))
        except Exception as error:
            return Response(frame.id, [], error_to_wire(Internal(str(error))))
        return Response(
            frame.id, to_wire(Tensor.from_numpy(name, array) for name, array in outputs.items())
        )

    def _call(self, execution: int, model: str, inputs: Arrays) -> Arrays:
        number = next(self._numbers)
        tensors = to_wire(Tensor.from_numpy(name, array) for name, array in inputs.items())
        self._channel.send(Call(number, execution, model, tensors))
        while True:
            frame = self._channel.receive(ToWorker)
            if frame is None:
                raise SystemExit
            if isinstance(frame, Execute):
                self._backlog.append(frame)
                continue
            error = error_from_wire(frame.error)
            if error is not None:
                raise error
            return {name: tensor.numpy() for name, tensor in from_wire(frame.outputs).items()}


if __name__ == "__main__":
    Worker(Channel(socket.socket(fileno=int(sys.argv[1]))), sys.argv[2]).run()
