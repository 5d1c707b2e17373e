"""Wrapper of the CUDA runtime calls that engines need, through cuda-python.

Streams, events, graphs and addresses are integers, as in TensorRT's API.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

from tritonpy import Internal, Unavailable


class CudaRuntimeError(Internal):
    """A CUDA call failed; the text is CUDA's."""


@cache
def load_cuda() -> Cuda:
    """Return the CUDA wrapper; raise `Unavailable` if cuda-python is not installed."""
    try:
        return Cuda(importlib.import_module("cuda.bindings.runtime"))
    except ImportError as error:
        raise Unavailable(f"CUDA cannot be called ({error}): pip install cuda-bindings") from error


class Cuda:
    """Methods raise `CudaRuntimeError` and use the calling thread's device (`set_device`).

    `runtime` is the module `cuda.bindings.runtime`.
    """

    def __init__(self, runtime: Any) -> None:
        self._runtime = runtime
        self._anywhere = runtime.cudaMemcpyKind.cudaMemcpyDefault

    def set_device(self, device: int) -> None:
        """Set the calling thread's device."""
        self._call(self._runtime.cudaSetDevice, device)

    @contextmanager
    def device_context(self, device: int) -> Iterator[None]:
        """Set the calling thread's device for a `with` block; the thread may be shared."""
        before = self._call(self._runtime.cudaGetDevice)
        self.set_device(device)
        try:
            yield
        finally:
            self.set_device(before)

    def compute_capability(self, device: int) -> str:
        """Return the compute capability, such as 8.6."""
        names = ("cudaDevAttrComputeCapabilityMajor", "cudaDevAttrComputeCapabilityMinor")
        attributes = [getattr(self._runtime.cudaDeviceAttr, name) for name in names]
        return ".".join(
            str(self._call(self._runtime.cudaDeviceGetAttribute, each, device))
            for each in attributes
        )

    def allocate(self, size: int) -> int:
        """Allocate `size` bytes and return their address."""
        return int(self._call(self._runtime.cudaMalloc, size))

    def free(self, address: int) -> None:
        """Free memory from `allocate` after all work on the device is done."""
        self._call(self._runtime.cudaFree, address)

    def create_stream(self, priority: str) -> int:
        """Return a new stream; `priority` is MAX, MIN or DEFAULT."""
        low, high = self._call(self._runtime.cudaDeviceGetStreamPriorityRange)
        level = {"MAX": high, "MIN": low}.get(priority, 0)
        return int(
            self._call(
                self._runtime.cudaStreamCreateWithPriority,
                self._runtime.cudaStreamNonBlocking,
                level,
            )
        )

    def destroy_stream(self, stream: int) -> None:
        """Destroy a stream."""
        self._call(self._runtime.cudaStreamDestroy, stream)

    def create_event(self, busy_wait: bool) -> int:
        """Return a new event; waiting for it spins with `busy_wait`, and sleeps without."""
        waiting = (
            self._runtime.cudaEventDefault if busy_wait else self._runtime.cudaEventBlockingSync
        )
        flags = waiting | self._runtime.cudaEventDisableTiming
        return int(self._call(self._runtime.cudaEventCreateWithFlags, flags))

    def destroy_event(self, event: int) -> None:
        """Destroy an event."""
        self._call(self._runtime.cudaEventDestroy, event)

    def record_event(self, event: int, stream: int) -> None:
        """Record the event after the current work of the stream."""
        self._call(self._runtime.cudaEventRecord, event, stream)

    def wait_for_event(self, stream: int, event: int) -> None:
        """Make later work on the stream wait for the event."""
        self._call(self._runtime.cudaStreamWaitEvent, stream, event, 0)

    def synchronize_event(self, event: int) -> None:
        """Block until the event is recorded. Like all waiting calls here, it releases the GIL."""
        self._call(self._runtime.cudaEventSynchronize, event)

    def synchronize_stream(self, stream: int) -> None:
        """Block until the stream has no work."""
        self._call(self._runtime.cudaStreamSynchronize, stream)

    def copy_async(self, target: int, source: int, size: int, stream: int) -> None:
        """Copy bytes between any two addresses, on the stream.

        With host memory that is not pinned, the call may block.
        """
        self._call(self._runtime.cudaMemcpyAsync, target, source, size, self._anywhere, stream)

    def zero_async(self, address: int, size: int, stream: int) -> None:
        """Fill GPU memory with zeros, on the stream."""
        self._call(self._runtime.cudaMemsetAsync, address, 0, size, stream)

    def begin_capture(self, stream: int) -> None:
        """Start capturing this thread's later work on the stream instead of running it."""
        mode = self._runtime.cudaStreamCaptureMode.cudaStreamCaptureModeThreadLocal
        self._call(self._runtime.cudaStreamBeginCapture, stream, mode)

    def end_capture(self, stream: int) -> int:
        """Return the captured work as an executable graph; free it with `destroy_graph`."""
        noted = self._call(self._runtime.cudaStreamEndCapture, stream)
        try:
            return int(self._call(self._runtime.cudaGraphInstantiate, noted, 0))
        finally:
            self._call(self._runtime.cudaGraphDestroy, noted)

    def abort_capture(self, stream: int) -> None:
        """End a failed capture and clear the error."""
        status, graph = self._runtime.cudaStreamEndCapture(stream)
        if not int(status):
            self._call(self._runtime.cudaGraphDestroy, graph)
        self._runtime.cudaGetLastError()

    def launch_graph(self, graph: int, stream: int) -> None:
        """Launch a graph on the stream."""
        self._call(self._runtime.cudaGraphLaunch, graph, stream)

    def destroy_graph(self, graph: int) -> None:
        """Destroy a graph."""
        self._call(self._runtime.cudaGraphExecDestroy, graph)

    def _call(self, function: Any, *arguments: Any) -> Any:
        error, *results = function(*arguments)
        if int(error):
            _, text = self._runtime.cudaGetErrorString(error)
            raise CudaRuntimeError(text.decode())
        return results[0] if len(results) == 1 else results
