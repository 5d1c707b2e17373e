"""Pipeline of one instance: copies inputs, runs the engine and copies outputs, overlapped."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from itertools import cycle
from math import prod
from typing import Any

import numpy as np

from tritonpy import DTYPES, Batch, Tensor
from tritonpy_backend_trt.buffers import BufferSet
from tritonpy_backend_trt.context import ExecutionContext
from tritonpy_backend_trt.cuda import Cuda, CudaRuntimeError
from tritonpy_backend_trt.graphs import Graph, Graphs
from tritonpy_backend_trt.inputs import Allocate, InputReader, address, pad
from tritonpy_backend_trt.logger import log
from tritonpy_backend_trt.pending_execution import EventPool, PendingExecution
from tritonpy_backend_trt.profiles import no_profile_message, select_profile
from tritonpy_backend_trt.signature import Shape, Signature, TensorInfo
from tritonpy_backend_trt.streams import Streams


@dataclass(frozen=True, slots=True)
class PipelineResources:
    """Resources of an instance.

    `launch_lock` is held while work is enqueued on the GPU. `out` allocates memory for outputs, or
    is None to use ordinary memory. `outputs` are the outputs to copy, `batched_outputs` those of
    them whose first dimension is the batch.
    """

    cuda: Cuda
    gpu: int
    signature: Signature
    contexts: Sequence[ExecutionContext]
    sets: Sequence[BufferSet]
    streams: Streams
    graphs: Graphs
    events: EventPool
    reader: InputReader
    launch_lock: AbstractContextManager[Any]
    out: Allocate | None
    outputs: Sequence[str]
    batched_outputs: Collection[str]


class Pipeline:
    """Enqueues batches on the GPU.

    `launch` and `wait_for_inputs` must be called on one thread; `wait_for_outputs` may be called on
    another.
    """

    def __init__(self, resources: PipelineResources) -> None:
        self._resources = resources
        self._sets = cycle(resources.sets)
        self._profile_names = {
            context.profile.index: context.name for context in resources.contexts
        }
        self._by_profile = {context.profile.index: context for context in resources.contexts}

    def launch(self, batch: Batch) -> PendingExecution:
        """Enqueue a batch and return its execution; on an exception no work of it stays on the GPU.

        The text of a `TritonError` is meant for the whole batch.
        """
        resources = self._resources
        resources.cuda.set_device(resources.gpu)
        buffers = next(self._sets)
        if buffers.execution is not None:
            self.wait_for_inputs(buffers.execution)
        tensors = resources.reader.gather_inputs(batch)
        shapes, values = (
            resources.reader.shapes(batch, tensors),
            resources.reader.values(batch, tensors),
        )
        context = self._context(shapes, values)
        graph = resources.graphs.find(context, buffers, shapes)
        execution = PendingExecution(batch, resources.events.acquire(), list(tensors.values()))
        try:
            with resources.launch_lock:
                self._prepare(context, buffers, graph, shapes, values)
                self._copy_inputs(execution, buffers, graph, tensors)
                self._run(execution, context, buffers, graph)
                self._copy_outputs(execution, context, buffers, graph)
        except BaseException:
            self._abandon(execution)
            raise
        buffers.execution = execution
        return execution

    def wait_for_inputs(self, execution: PendingExecution) -> None:
        """Block until the input buffers of `execution` may be overwritten."""
        if not execution.over:
            self._resources.cuda.synchronize_event(execution.events.consumed)

    def wait_for_outputs(self, execution: PendingExecution) -> dict[str, Tensor]:
        """Return the outputs of `execution` on the host, and stamp its batch on the way.

        Raises `CudaRuntimeError` on a GPU failure.
        """
        cuda, events = self._resources.cuda, execution.events
        cuda.synchronize_event(events.arrived)
        execution.batch.stamp()
        cuda.synchronize_event(events.computed)
        execution.batch.stamp()
        cuda.synchronize_event(events.returned)
        return {
            **execution.outputs,
            **{
                name: Tensor.from_numpy(name, each.copy())
                for name, each in execution.values.items()
            },
        }

    def release(self, execution: PendingExecution) -> None:
        """Release the resources of a finished `execution`."""
        execution.over = True
        execution.kept.clear()
        self._resources.events.release(execution.events)

    def close(self) -> None:
        """Free all resources when the GPU has finished its work."""
        resources = self._resources
        resources.cuda.set_device(resources.gpu)
        with suppress(CudaRuntimeError):  # a failed GPU has no work, either
            resources.streams.synchronize()
        resources.graphs.close()
        resources.events.close()
        resources.streams.close()

    def _context(
        self, shapes: Mapping[str, Shape], values: Mapping[str, Sequence[int]]
    ) -> ExecutionContext:
        contexts = self._resources.contexts
        if len(contexts) == 1:
            return contexts[0]
        profile = select_profile([context.profile for context in contexts], shapes, values)
        if profile is None:
            log.error("%s", no_profile_message(self._profile_names))
            return contexts[0]
        return self._by_profile[profile.index]

    def _prepare(
        self,
        context: ExecutionContext,
        buffers: BufferSet,
        graph: Graph | None,
        shapes: Mapping[str, Shape],
        values: Mapping[str, Sequence[int]],
    ) -> None:
        """Set addresses and shapes in `context`; a graph already contains them."""
        for name, found in values.items():
            if len(found) == len(buffers.values[name]):  # otherwise `set_inputs` reports the error
                buffers.values[name][...] = found
        if graph is None:
            buffers.bind(context)
            context.set_inputs(shapes, values)

    def _copy_inputs(
        self,
        execution: PendingExecution,
        buffers: BufferSet,
        graph: Graph | None,
        tensors: Mapping[str, Tensor],
    ) -> None:
        cuda, stream = self._resources.cuda, self._resources.streams.inputs
        for name, tensor in tensors.items():
            if name not in buffers.blocks:
                continue  # a shape tensor: its values are already on the host
            data = tensor.data if graph is None else pad(tensor.data, graph.inputs[name])
            execution.kept.append(data)
            if data.nbytes:
                cuda.copy_async(buffers.blocks[name].address, address(data), data.nbytes, stream)
        cuda.record_event(execution.events.arrived, stream)

    def _run(
        self,
        execution: PendingExecution,
        context: ExecutionContext,
        buffers: BufferSet,
        graph: Graph | None,
    ) -> None:
        cuda, streams, events = self._resources.cuda, self._resources.streams, execution.events
        cuda.wait_for_event(streams.compute, events.arrived)
        if buffers.execution is not None and streams.outputs != streams.compute:
            cuda.wait_for_event(
                streams.compute, buffers.execution.events.returned
            )  # its outputs are still being copied
        if graph is None:
            context.enqueue(streams.compute, events.consumed)
        else:
            self._resources.graphs.launch(graph)
            cuda.record_event(events.consumed, streams.compute)
        cuda.record_event(events.computed, streams.compute)
        if streams.outputs != streams.compute:
            cuda.wait_for_event(streams.outputs, events.computed)

    def _copy_outputs(
        self,
        execution: PendingExecution,
        context: ExecutionContext,
        buffers: BufferSet,
        graph: Graph | None,
    ) -> None:
        resources = self._resources
        shapes = context.outputs if graph is None else graph.outputs
        for name in requested_outputs(execution.batch, resources.outputs):
            info = resources.signature.tensors[name]
            if info.is_shape:
                execution.values = {**execution.values, name: buffers.values[name]}
                continue
            growable = buffers.growable.get(name)
            place = buffers.blocks[name] if growable is None else growable
            shape = shapes[name] if growable is None else growable.shape
            execution.kept.append(place)
            tensor = self._copy_output(info, shape, place.address)
            execution.outputs[name] = (
                first_rows(tensor, execution.batch.size)
                if graph is not None and name in resources.batched_outputs
                else tensor
            )
        resources.cuda.record_event(execution.events.returned, resources.streams.outputs)

    def _copy_output(self, info: TensorInfo, shape: Shape, place: int) -> Tensor:
        memory = info.in_memory(shape)
        plain = memory == shape
        datatype = info.datatype if plain else "UINT8"
        dims = shape if plain else (shape[0], prod(memory[1:]) * DTYPES[info.datatype].itemsize)
        data = (
            np.empty(dims, DTYPES[datatype])
            if self._resources.out is None
            else self._resources.out(info.name, datatype, dims)
        )
        if data.nbytes:
            self._resources.cuda.copy_async(
                address(data), place, data.nbytes, self._resources.streams.outputs
            )
        return Tensor(info.name, info.datatype, shape, data)

    def _abandon(self, execution: PendingExecution) -> None:
        with suppress(CudaRuntimeError):
            self._resources.streams.synchronize()
        self.release(execution)


def requested_outputs(batch: Batch, names: Iterable[str]) -> list[str]:
    """Return those of `names` that a request of the batch needs, or that are states."""
    if any(request.outputs is None for request in batch.requests):
        return list(names)
    requested = set(batch.state_outputs).union(
        *[request.outputs or () for request in batch.requests]
    )
    return [name for name in names if name in requested]


def first_rows(tensor: Tensor, rows: int) -> Tensor:
    """Return the rows of the batch from the output of a graph, which may be for a larger batch."""
    if rows == tensor.shape[0]:
        return tensor
    return Tensor(tensor.name, tensor.datatype, (rows, *tensor.shape[1:]), tensor.data[:rows])
