"""`cuda.bindings.runtime` on simulated GPUs, with the API of cuda-python."""

from __future__ import annotations

import enum
from types import ModuleType, SimpleNamespace
from typing import Any

from .gpus import Event, Machine, Stream

_ERRORS = {
    "cudaSuccess": 0, "cudaErrorInvalidValue": 1, "cudaErrorMemoryAllocation": 2, "cudaErrorInvalidDevice": 101, "cudaErrorInvalidResourceHandle": 400,
    "cudaErrorIllegalAddress": 700, "cudaErrorStreamCaptureUnsupported": 900, "cudaErrorStreamCaptureInvalidated": 901,
}  # fmt: skip
Error = enum.IntEnum("Error", _ERRORS)
_TEXTS = {
    2: b"out of memory",
    101: b"invalid device ordinal",
    400: b"invalid resource handle",
    700: b"an illegal memory access was encountered",
}
OK = (Error.cudaSuccess,)


def _refused(number: int, *nothing: Any) -> tuple[Any, ...]:
    return (Error(number), *nothing)


class Graph:
    def __init__(self, work: list[Any]) -> None:
        self.work = work


class Runnable(Graph):
    pass


class _Calls:
    """Every function of the module.

    Arguments are those of cuda-python; results are tuples that begin with the error.
    """

    def __init__(self, machine: Machine) -> None:
        self.machine = machine

    def cudaGetDevice(self):
        return (*OK, self.machine.device)

    def cudaSetDevice(self, device):
        if not 0 <= device < self.machine.gpus:
            return _refused(101)
        self.machine.device = device
        return OK

    def cudaGetLastError(self):
        return OK

    def cudaGetErrorString(self, error):
        return (*OK, _TEXTS.get(int(error), b"error %d" % int(error)))

    def cudaDeviceGetAttribute(self, attribute, device):
        return (*OK, {75: 8, 76: device}[attribute])

    def cudaDeviceGetStreamPriorityRange(self):
        return (*OK, 0, -5)

    def cudaMalloc(self, size):
        address = self.machine.allocate(size)
        return (*OK, address) if address else _refused(2, None)

    def cudaFree(self, address):
        return OK if self.machine.free(address) else _refused(1)

    def cudaHostAlloc(self, size, _flags):
        return (*OK, self.machine.pin(size))

    def cudaFreeHost(self, address):
        return OK if self.machine.unpin(address) else _refused(1)

    def cudaStreamCreateWithPriority(self, _flags, priority):
        hasty = self.machine.streams in self.machine.hasty
        self.machine.streams += 1
        return (*OK, self.machine.add(Stream(self.machine.device, priority, hasty)))

    def cudaStreamDestroy(self, stream):
        return OK if self.machine.remove(stream, Stream) else _refused(400)

    def cudaEventCreateWithFlags(self, flags):
        return (*OK, self.machine.add(Event(self.machine.device, flags)))

    def cudaEventDestroy(self, event):
        return OK if self.machine.remove(event, Event) else _refused(400)

    def cudaEventRecord(self, event, stream):
        event, stream = self.machine.get(event, Event), self._stream(stream)
        if event is None or stream is None or event.device != stream.device:
            return _refused(400)
        self.machine.record(event, stream)
        return OK

    def cudaStreamWaitEvent(self, stream, event, _flags):
        event, stream = self.machine.get(event, Event), self._stream(stream)
        if event is None or stream is None:
            return _refused(400)
        awaited = Event(
            event.device, 0, event.stream, event.position
        )  # a copy of the event as recorded now
        self.machine.put(stream, lambda _stream: self.machine.reach(awaited))
        return OK

    def cudaEventSynchronize(self, event):
        event = self.machine.get(event, Event)
        if event is None:
            return _refused(400)
        self.machine.reach(event)
        return OK

    def cudaStreamSynchronize(self, stream):
        stream = self._stream(stream)
        if stream is None:
            return _refused(400)
        if stream.graph is not None:
            stream.broken = True
            return _refused(900)
        self.machine.drain(stream)
        return OK

    def cudaMemcpyAsync(self, target, source, size, _kind, stream):
        machine, stream = self.machine, self._stream(stream)
        if stream is None:
            return _refused(400)
        machine.copies += 1
        ends = machine.view(target, size), machine.view(source, size)
        pageable = [end for end in (target, source) if end < 1 << 60 and not machine.is_pinned(end)]
        machine.pageable_copies += bool(pageable)

        def work(_stream):
            machine.view(target, size)[:] = machine.view(source, size)

        if source in pageable:
            staged = ends[1].copy()  # the driver reads pageable memory before it returns
            machine.put(
                stream, lambda _stream: machine.view(target, size).__setitem__(slice(None), staged)
            )
        else:
            machine.put(stream, work)
        if target in pageable:
            machine.drain(stream)
        return OK

    def cudaMemsetAsync(self, address, value, size, stream):
        stream = self._stream(stream)
        self.machine.put(stream, lambda _stream: self.machine.view(address, size).fill(value))
        return OK

    def cudaStreamBeginCapture(self, stream, mode):
        stream = self._stream(stream)
        if stream is None or mode != "thread local":
            return _refused(400)
        stream.graph, stream.broken = [], False
        return OK

    def cudaStreamEndCapture(self, stream):
        stream = self._stream(stream)
        noted, stream.graph = stream.graph, None
        return _refused(901, None) if stream.broken else (*OK, self.machine.add(Graph(noted)))

    def cudaGraphInstantiate(self, graph, _flags):
        return (*OK, self.machine.add(Runnable(self.machine.get(graph, Graph).work)))

    def cudaGraphDestroy(self, graph):
        return OK if self.machine.remove(graph, Graph) else _refused(400)

    def cudaGraphExecDestroy(self, graph):
        return OK if self.machine.remove(graph, Runnable) else _refused(400)

    def cudaGraphLaunch(self, graph, stream):
        graph, stream = self.machine.get(graph, Runnable), self._stream(stream)
        if graph is None or stream is None:
            return _refused(400)
        self.machine.launches += 1
        for work in graph.work:
            self.machine.put(stream, work)
        return OK

    def _stream(self, number):
        """Return the stream with this number; reject the default stream and other GPUs' streams."""
        stream = self.machine.get(number, Stream)
        return stream if stream is not None and stream.device == self.machine.device else None


def cuda_runtime(machine: Machine) -> ModuleType:
    """Return the module."""
    module = ModuleType("cuda.bindings.runtime")
    calls = _Calls(machine)
    for name in dir(calls):
        if name.startswith("cuda"):
            setattr(module, name, _guarded(machine, name, getattr(calls, name)))
    module.cudaError_t = Error
    module.cudaMemcpyKind = SimpleNamespace(cudaMemcpyDefault=4)
    module.cudaDeviceAttr = SimpleNamespace(
        cudaDevAttrComputeCapabilityMajor=75, cudaDevAttrComputeCapabilityMinor=76
    )
    module.cudaStreamCaptureMode = SimpleNamespace(cudaStreamCaptureModeThreadLocal="thread local")
    module.cudaStreamNonBlocking, module.cudaHostAllocPortable = 1, 1
    module.cudaEventDefault, module.cudaEventBlockingSync, module.cudaEventDisableTiming = 0, 1, 2
    return module


def _guarded(machine: Machine, name: str, call: Any) -> Any:
    def guarded(*arguments: Any) -> Any:
        with machine.lock:
            number = machine.refusals.pop(name, 0)
            return _refused(number) if number else call(*arguments)

    guarded.__name__ = name
    return guarded
