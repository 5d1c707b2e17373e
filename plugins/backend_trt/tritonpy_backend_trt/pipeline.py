"""Executions of one instance on its GPU: inputs there, engine, outputs back, several on their way at once."""

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
from tritonpy_backend_trt.context import Context
from tritonpy_backend_trt.cuda import Cuda, CudaFailure
from tritonpy_backend_trt.flight import EventPool, Flight
from tritonpy_backend_trt.graphs import Graph, Graphs
from tritonpy_backend_trt.inputs import Allocate, InputReader, address, padded
from tritonpy_backend_trt.logger import log
from tritonpy_backend_trt.profiles import chosen_profile, no_profile
from tritonpy_backend_trt.signature import Shape, Signature, TensorInfo
from tritonpy_backend_trt.streams import Streams


@dataclass(frozen=True, slots=True)
class Parts:
    """What an instance is made of.

    `launching` is held while work is put on the GPU, `out` gives memory for outputs (None: ordinary memory is good enough), `outputs` are those that are
    fetched, `rowed` those of them whose first dimension is the batch.
    """

    cuda: Cuda
    gpu: int
    signature: Signature
    contexts: Sequence[Context]
    sets: Sequence[BufferSet]
    streams: Streams
    graphs: Graphs
    events: EventPool
    reader: InputReader
    launching: AbstractContextManager[Any]
    out: Allocate | None
    outputs: Sequence[str]
    rowed: Collection[str]


class Pipeline:
    """Puts batches on the GPU. One thread calls `launch` and `settle`, `landed` may be called from another."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._sets = cycle(parts.sets)
        self._names = {context.profile.index: context.name for context in parts.contexts}
        self._by_profile = {context.profile.index: context for context in parts.contexts}

    def launch(self, batch: Batch) -> Flight:
        """Return the batch on its way. What it raises leaves nothing of it on the GPU; a TritonError's text is for the batch."""
        parts = self._parts
        parts.cuda.use(parts.gpu)
        buffers = next(self._sets)
        if buffers.flight is not None:
            self.await_inputs(buffers.flight)
        tensors = parts.reader.gathered(batch)
        shapes, values = parts.reader.shapes(batch, tensors), parts.reader.values(batch, tensors)
        context = self._context(shapes, values)
        graph = parts.graphs.fitting(context, buffers, shapes)
        flight = Flight(batch, parts.events.take(), list(tensors.values()))
        try:
            with parts.launching:
                self._prepare(context, buffers, graph, shapes, values)
                self._send(flight, buffers, graph, tensors)
                self._run(flight, context, buffers, graph)
                self._fetch(flight, context, buffers, graph)
        except BaseException:
            self._abandon(flight)
            raise
        buffers.flight = flight
        return flight

    def await_inputs(self, flight: Flight) -> None:
        """Return when the buffers that the inputs of `flight` lie in may be written to again."""
        if not flight.over:
            self._parts.cuda.await_event(flight.events.consumed)

    def landed(self, flight: Flight) -> dict[str, Tensor]:
        """Return the outputs of `flight`, on the host; its batch is stamped on the way. Raises CudaFailure where the GPU failed."""
        cuda, events = self._parts.cuda, flight.events
        cuda.await_event(events.arrived)
        flight.batch.stamp()
        cuda.await_event(events.computed)
        flight.batch.stamp()
        cuda.await_event(events.returned)
        return {
            **flight.outputs,
            **{name: Tensor.from_numpy(name, each.copy()) for name, each in flight.values.items()},
        }

    def release(self, flight: Flight) -> None:
        """Take back what `flight` had, now that it is over."""
        flight.over = True
        flight.kept.clear()
        self._parts.events.give(flight.events)

    def close(self) -> None:
        """Free everything, when the GPU is done with it."""
        parts = self._parts
        parts.cuda.use(parts.gpu)
        with suppress(CudaFailure):  # a GPU that failed is done too
            parts.streams.settle()
        parts.graphs.close()
        parts.events.close()
        parts.streams.close()

    def _context(self, shapes: Mapping[str, Shape], values: Mapping[str, Sequence[int]]) -> Context:
        contexts = self._parts.contexts
        if len(contexts) == 1:
            return contexts[0]
        profile = chosen_profile([context.profile for context in contexts], shapes, values)
        if profile is None:
            log.error("%s", no_profile(self._names))
            return contexts[0]
        return self._by_profile[profile.index]

    def _prepare(
        self,
        context: Context,
        buffers: BufferSet,
        graph: Graph | None,
        shapes: Mapping[str, Shape],
        values: Mapping[str, Sequence[int]],
    ) -> None:
        """Let `context` know where everything is and how large; a graph knows by itself."""
        for name, found in values.items():
            if len(found) == len(buffers.values[name]):  # otherwise `specify` says what is wrong
                buffers.values[name][...] = found
        if graph is None:
            buffers.bind(context)
            context.specify(shapes, values)

    def _send(self, flight: Flight, buffers: BufferSet, graph: Graph | None, tensors: Mapping[str, Tensor]) -> None:
        cuda, stream = self._parts.cuda, self._parts.streams.inputs
        for name, tensor in tensors.items():
            if name not in buffers.blocks:
                continue  # a shape tensor: its values are where they belong
            data = tensor.data if graph is None else padded(tensor.data, graph.inputs[name])
            flight.kept.append(data)
            if data.nbytes:
                cuda.copy(buffers.blocks[name].address, address(data), data.nbytes, stream)
        cuda.record(flight.events.arrived, stream)

    def _run(self, flight: Flight, context: Context, buffers: BufferSet, graph: Graph | None) -> None:
        cuda, streams, events = self._parts.cuda, self._parts.streams, flight.events
        cuda.follow(streams.work, events.arrived)
        if buffers.flight is not None and streams.outputs != streams.work:
            cuda.follow(streams.work, buffers.flight.events.returned)  # what it computed is still being copied
        if graph is None:
            context.enqueue(streams.work, events.consumed)
        else:
            self._parts.graphs.launch(graph)
            cuda.record(events.consumed, streams.work)
        cuda.record(events.computed, streams.work)
        if streams.outputs != streams.work:
            cuda.follow(streams.outputs, events.computed)

    def _fetch(self, flight: Flight, context: Context, buffers: BufferSet, graph: Graph | None) -> None:
        parts = self._parts
        shapes = context.outputs if graph is None else graph.outputs
        for name in wanted_outputs(flight.batch, parts.outputs):
            info = parts.signature.tensors[name]
            if info.is_shape:
                flight.values = {**flight.values, name: buffers.values[name]}
                continue
            growing = buffers.growing.get(name)
            place = buffers.blocks[name] if growing is None else growing
            shape = shapes[name] if growing is None else growing.shape
            flight.kept.append(place)
            tensor = self._fetched(info, shape, place.address)
            flight.outputs[name] = (
                first_rows(tensor, flight.batch.size) if graph is not None and name in parts.rowed else tensor
            )
        parts.cuda.record(flight.events.returned, parts.streams.outputs)

    def _fetched(self, info: TensorInfo, shape: Shape, place: int) -> Tensor:
        memory = info.in_memory(shape)
        plain = memory == shape
        datatype = info.datatype if plain else "UINT8"
        dims = shape if plain else (shape[0], prod(memory[1:]) * DTYPES[info.datatype].itemsize)
        data = (
            np.empty(dims, DTYPES[datatype]) if self._parts.out is None else self._parts.out(info.name, datatype, dims)
        )
        if data.nbytes:
            self._parts.cuda.copy(address(data), place, data.nbytes, self._parts.streams.outputs)
        return Tensor(info.name, info.datatype, shape, data)

    def _abandon(self, flight: Flight) -> None:
        with suppress(CudaFailure):
            self._parts.streams.settle()
        self.release(flight)


def wanted_outputs(batch: Batch, names: Iterable[str]) -> list[str]:
    """Return those of `names` that any request of the batch asks for, or that are states."""
    if any(request.outputs is None for request in batch.requests):
        return list(names)
    asked = set(batch.state_outputs).union(*[request.outputs or () for request in batch.requests])
    return [name for name in names if name in asked]


def first_rows(tensor: Tensor, rows: int) -> Tensor:
    """Return the rows of a batch out of what a graph of perhaps a larger one computed."""
    if rows == tensor.shape[0]:
        return tensor
    return Tensor(tensor.name, tensor.datatype, (rows, *tensor.shape[1:]), tensor.data[:rows])
