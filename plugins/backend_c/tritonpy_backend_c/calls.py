"""Requests of backends to other models."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from queue import SimpleQueue
from typing import Any

import numpy as np

from tritonpy import (
    Batch,
    CallbackSink,
    InferRequest,
    InferResponse,
    ModelContext,
    OutputSpec,
    SequenceInfo,
    Tensor,
    Unavailable,
)
from tritonpy.tracing import synthetic_parent
from tritonpy_backend_c.library import error_number
from tritonpy_backend_c.wire import (
    DATATYPES,
    FINAL,
    Buffers,
    Reader,
    Words,
)

_START, _END = 1, 2  # flags of a sequence


class Calls:
    """The calls of this process, by their numbers.

    `instances` have the batch that they execute, as `batch`. Responses are delivered on a thread of
    their own, because the backend's code handles them and may wait for the server.
    """

    def __init__(
        self, library: Any, models: Mapping[int, ModelContext], instances: Mapping[int, Any]
    ) -> None:
        self._library = library
        self._models = models
        self._instances = instances
        self._buffers = Buffers(1024, 16384)
        self._open: dict[int, InferRequest] = {}
        self._waiting: SimpleQueue[tuple[InferRequest, InferResponse]] = SimpleQueue()
        self._sink = CallbackSink(self._put)
        self._started = False

    def start(self, model: int, number: int, call: int, instance: int) -> str:
        """Send a request of a model that `instance` executes, or 0. Raises the server's refusal.

        A backend in a worker process gets the refusal as a response.
        """
        caller = self._models.get(model)
        if caller is None:
            raise Unavailable("the calling model is not loaded")
        request = self._read(call)
        request.tag = (number, call)
        batch = getattr(self._instances.get(instance), "batch", None)
        request.parent = synthetic_parent(caller.name, batch or Batch([], model=caller))
        if not self._started:
            self._started = True
            threading.Thread(target=self._run, name="calls of backends", daemon=True).start()
        self._open[number] = request
        try:
            caller.engine.infer(request)
        except BaseException:
            self._open.pop(number, None)
            raise
        return ""

    def cancel(self, number: int) -> None:
        """Cancel a call that runs."""
        request = self._open.get(number)
        if request is not None:
            request.cancel()

    def _put(self, request: InferRequest, response: InferResponse) -> None:
        self._waiting.put((request, response))

    def _run(self) -> None:
        while True:
            self._deliver(*self._waiting.get())

    def _deliver(self, request: InferRequest, response: InferResponse) -> None:
        number, call = request.tag
        if response.final and self._open.pop(number, None) is None:
            return
        error = response.error
        has_data = error is None and not (response.final and response.empty)
        words = Words(FINAL if response.final else 0, has_data)
        words.add(-1 if error is None else error_number(error))
        words.text("" if error is None else error.message)
        words.text(response.model_name or request.model_name)
        words.add(response.model_version)
        words.text(response.id)
        words.parameters(response.parameters)
        outputs = [_on_host(tensor) for tensor in response.outputs]
        words.add(len(outputs))
        for tensor in outputs:
            words.spec(tensor.name, tensor.datatype, tensor.shape)
            words.data([tensor])
        self._library.call_respond(call, *words.pack())

    def _read(self, call: int) -> InferRequest:
        buffers = self._buffers
        count = buffers.call(self._library.call_read, call)
        words, data = buffers.content(count, int(buffers.words[0]))
        reader = Reader(words, data, 1)
        name, version, identifier = reader.text(), reader.word(), reader.text()
        flags, number, is_text = reader.take(3)
        text = reader.text()
        priority, timeout_us = reader.take(2)
        parameters = reader.parameters()
        inputs = {}
        for _ in range(reader.word()):
            tensor = _input(*reader.spec(), *reader.take(2))
            inputs[tensor.name] = tensor
        outputs = {name: OutputSpec(name) for name in [reader.text() for _ in range(reader.word())]}
        sequence = text if is_text else number
        return InferRequest(
            name,
            inputs,
            self._sink,
            version,
            identifier,
            outputs or None,
            parameters,
            priority,
            timeout_us,
            sequence=SequenceInfo(sequence, bool(flags & _START), bool(flags & _END))
            if sequence
            else None,
            accepts_decoupled=True,
        )


def _input(name: str, datatype: int, shape: tuple[int, ...], address: int, size: int) -> Tensor:
    """Return a view of the backend's buffer, which lives until its request is released."""
    array: Any = np.empty(0, np.uint8)
    if size:
        array = np.asarray(_BackendMemory(address, size))
    return Tensor.from_buffer(name, DATATYPES[datatype], shape, memoryview(array))


class _BackendMemory:
    def __init__(self, address: int, size: int) -> None:
        self.__array_interface__ = {
            "version": 3, "typestr": "|u1", "shape": (size,), "data": (address, True)
        }  # fmt: skip


def _on_host(tensor: Tensor) -> Tensor:
    if isinstance(tensor.data, np.ndarray):
        return tensor
    return Tensor(tensor.name, tensor.datatype, tensor.shape, np.ascontiguousarray(tensor.numpy()))
