"""The calls of CUDA that engines need, by way of cuda-python. Streams, events, graphs and addresses are numbers here, as TensorRT takes them."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

from tritonpy import Internal, Unavailable


class CudaFailure(Internal):
    """CUDA refused; the text is its own."""


@cache
def cuda() -> Cuda:
    """Return the calls. Raises Unavailable where cuda-python is not there."""
    try:
        return Cuda(importlib.import_module("cuda.bindings.runtime"))
    except ImportError as error:
        raise Unavailable(f"CUDA cannot be called ({error}): pip install cuda-bindings") from error


class Cuda:
    """`runtime` is the module `cuda.bindings.runtime`. Every method raises CudaFailure; the device of most is the calling thread's, see `use`."""

    def __init__(self, runtime: Any) -> None:
        self._runtime = runtime
        self._anywhere = runtime.cudaMemcpyKind.cudaMemcpyDefault

    def use(self, device: int) -> None:
        """Make `device` that of the calling thread."""
        self._call(self._runtime.cudaSetDevice, device)

    @contextmanager
    def on(self, device: int) -> Iterator[None]:
        """Make `device` that of the calling thread for a while: the thread may be one that others use too."""
        before = self._call(self._runtime.cudaGetDevice)
        self.use(device)
        try:
            yield
        finally:
            self.use(before)

    def capability(self, device: int) -> str:
        """Return the compute capability, such as 8.6."""
        names = ("cudaDevAttrComputeCapabilityMajor", "cudaDevAttrComputeCapabilityMinor")
        attributes = [getattr(self._runtime.cudaDeviceAttr, name) for name in names]
        return ".".join(str(self._call(self._runtime.cudaDeviceGetAttribute, each, device)) for each in attributes)

    def allocate(self, size: int) -> int:
        """Return the address of so many bytes."""
        return int(self._call(self._runtime.cudaMalloc, size))

    def free(self, address: int) -> None:
        """Free what `allocate` gave, when all work on the device is done."""
        self._call(self._runtime.cudaFree, address)

    def stream(self, priority: str) -> int:
        """Return a new stream; `priority` is MAX, MIN or DEFAULT."""
        low, high = self._call(self._runtime.cudaDeviceGetStreamPriorityRange)
        level = {"MAX": high, "MIN": low}.get(priority, 0)
        return int(self._call(self._runtime.cudaStreamCreateWithPriority, self._runtime.cudaStreamNonBlocking, level))

    def end_stream(self, stream: int) -> None:
        """Destroy a stream."""
        self._call(self._runtime.cudaStreamDestroy, stream)

    def event(self, busy_wait: bool) -> int:
        """Return a new event; who waits for it spins where `busy_wait` says so, and sleeps otherwise."""
        waiting = self._runtime.cudaEventDefault if busy_wait else self._runtime.cudaEventBlockingSync
        flags = waiting | self._runtime.cudaEventDisableTiming
        return int(self._call(self._runtime.cudaEventCreateWithFlags, flags))

    def end_event(self, event: int) -> None:
        """Destroy an event."""
        self._call(self._runtime.cudaEventDestroy, event)

    def record(self, event: int, stream: int) -> None:
        """Have the event happen when what is on the stream now is done."""
        self._call(self._runtime.cudaEventRecord, event, stream)

    def follow(self, stream: int, event: int) -> None:
        """Have what comes on the stream from now on wait for the event."""
        self._call(self._runtime.cudaStreamWaitEvent, stream, event, 0)

    def await_event(self, event: int) -> None:
        """Return when the event has happened. Another thread may run Python meanwhile, as with every call here that waits."""
        self._call(self._runtime.cudaEventSynchronize, event)

    def await_stream(self, stream: int) -> None:
        """Return when the stream has nothing to do."""
        self._call(self._runtime.cudaStreamSynchronize, stream)

    def copy(self, target: int, source: int, size: int, stream: int) -> None:
        """Copy bytes between any two addresses, on the stream; memory of the host that is not pinned may make this wait."""
        self._call(self._runtime.cudaMemcpyAsync, target, source, size, self._anywhere, stream)

    def zero(self, address: int, size: int, stream: int) -> None:
        """Fill bytes of the GPU with zeros, on the stream."""
        self._call(self._runtime.cudaMemsetAsync, address, 0, size, stream)

    def begin_capture(self, stream: int) -> None:
        """Have what comes on the stream be noted instead of done; other threads are not concerned."""
        mode = self._runtime.cudaStreamCaptureMode.cudaStreamCaptureModeThreadLocal
        self._call(self._runtime.cudaStreamBeginCapture, stream, mode)

    def end_capture(self, stream: int) -> int:
        """Return what was noted, as a graph that can be launched; `end_graph` ends it."""
        noted = self._call(self._runtime.cudaStreamEndCapture, stream)
        try:
            return int(self._call(self._runtime.cudaGraphInstantiate, noted, 0))
        finally:
            self._call(self._runtime.cudaGraphDestroy, noted)

    def give_up_capture(self, stream: int) -> None:
        """End a capture in which something failed, and forget the failure."""
        status, graph = self._runtime.cudaStreamEndCapture(stream)
        if not int(status):
            self._call(self._runtime.cudaGraphDestroy, graph)
        self._runtime.cudaGetLastError()

    def launch(self, graph: int, stream: int) -> None:
        """Run a graph on the stream."""
        self._call(self._runtime.cudaGraphLaunch, graph, stream)

    def end_graph(self, graph: int) -> None:
        """Destroy a graph."""
        self._call(self._runtime.cudaGraphExecDestroy, graph)

    def _call(self, function: Any, *arguments: Any) -> Any:
        error, *results = function(*arguments)
        if int(error):
            _, text = self._runtime.cudaGetErrorString(error)
            raise CudaFailure(text.decode())
        return results[0] if len(results) == 1 else results
