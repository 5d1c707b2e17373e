"""A backend that runs the user's function in a worker process, which may call other models."""

from __future__ import annotations

import itertools
import os
import socket
import subprocess
import sys
import threading
from pathlib import Path

from tritonpy.api.backend import Backend
from tritonpy.api.contexts import InstanceContext, ModelContext
from tritonpy_types import Batch, CallbackSink, InferRequest, InferResponse
from tritonpy_types.errors import TritonError, Unavailable

from .frames import Channel, error_from_wire, error_to_wire, from_wire, to_wire
from .worker_frames import Call, CallResponse, Execute, Response, ToServer


class InWorker(Backend):
    """Runs `run(inputs, call)` of `1/model.py`; a thread reads responses and calls."""

    def __init__(self, model: ModelContext, instance: InstanceContext) -> None:
        super().__init__(model, instance)
        self._numbers = itertools.count()
        self._open: dict[int, InferRequest] = {}
        self._alive = True
        self._lock = threading.Lock()
        self._sink = CallbackSink(self._on_call_response)
        ours, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                [
                    sys.executable,
                    "-m",
                    "toys.worker_main",
                    str(theirs.fileno()),
                    str(model.path / "model.py"),
                ],
                pass_fds=[theirs.fileno()],
                env={**os.environ, "PYTHONPATH": str(Path(__file__).parent.parent)},
            )
        self._channel = Channel(ours)
        self._reader = threading.Thread(target=self._read, name=f"{instance.name} reader")
        self._reader.start()

    def execute(self, batch: Batch) -> None:
        batch.stamp()
        for request in batch.requests:
            number = next(self._numbers)
            with self._lock:
                alive = self._alive
                self._open[number] = request
            sent = alive and self._channel.send(Execute(number, to_wire(request.inputs.values())))
            if not sent:
                self._fail_open()

    def close(self) -> None:
        self._channel.close()
        self._process.wait()
        self._reader.join()

    def _read(self) -> None:
        while (frame := self._channel.receive(ToServer)) is not None:
            if isinstance(frame, Call):
                self._call(frame)
            else:
                self._respond(frame)
        self._fail_open()

    def _respond(self, frame: Response) -> None:
        with self._lock:
            request = self._open.pop(frame.id)
        error = error_from_wire(frame.error)
        if error is not None:
            request.respond(InferResponse.failed(request, error))
            return
        outputs = list(from_wire(frame.outputs).values())
        request.respond(InferResponse(outputs, self.model.name, self.model.version, request.id))

    def _call(self, frame: Call) -> None:
        with self._lock:
            parent = self._open[frame.execution]
        child = InferRequest(
            frame.model, from_wire(frame.inputs), self._sink, parent=parent, tag=frame.id
        )
        try:
            self.model.engine.infer(child)
        except TritonError as error:
            self._on_call_response(child, InferResponse.failed(child, error))

    def _on_call_response(self, child: InferRequest, response: InferResponse) -> None:
        self._channel.send(
            CallResponse(child.tag, to_wire(response.outputs), error_to_wire(response.error))
        )

    def _fail_open(self) -> None:
        with self._lock:
            self._alive = False
            requests = list(self._open.values())
            self._open.clear()
        for request in requests:
            error = Unavailable(f"the worker process of model '{self.model.name}' ended")
            request.respond(InferResponse.failed(request, error))
