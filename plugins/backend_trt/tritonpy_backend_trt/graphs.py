"""CUDA graphs of one instance: captured when it is made, launched in place of executions whose shapes they have."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tritonpy import TritonError
from tritonpy_backend_trt.buffers import BufferSet
from tritonpy_backend_trt.configured import inputs_of
from tritonpy_backend_trt.context import Context
from tritonpy_backend_trt.cuda import Cuda, CudaFailure
from tritonpy_backend_trt.graph_choice import GraphShapes, chosen_graph, graph_shapes
from tritonpy_backend_trt.graph_specs import GraphSpec
from tritonpy_backend_trt.signature import Shape

if TYPE_CHECKING:
    from tritonpy_protos.model_config_pb2 import ModelConfig

Log = logging.LoggerAdapter[logging.Logger]


@dataclass(frozen=True, slots=True)
class Graph:
    """A graph that can be launched, the shapes of its inputs and of its outputs."""

    handle: int
    inputs: Mapping[str, Shape]
    outputs: Mapping[str, Shape]


class Graphs:
    """The graphs of an instance: of each context and each set of buffers its own, because a graph runs on the addresses that it was captured with."""

    def __init__(self, cuda: Cuda, stream: int, instance: str, log: Log) -> None:
        self._cuda = cuda
        self._stream = stream
        self._instance = instance
        self._log = log
        self._graphs: dict[tuple[Context, BufferSet], dict[GraphShapes, Graph]] = {}

    def capture(
        self, specs: Sequence[GraphSpec], contexts: Sequence[Context], sets: Sequence[BufferSet], batched: Sequence[str]
    ) -> None:
        """Capture the graphs of `specs`; one that the runtime refuses is left out, and the log says why. `batched` are the inputs with a batch dimension.

        Raises InvalidArgument for a spec that does not give a shape for every input.
        """
        for context in contexts:
            wanted = [graph_shapes(spec, context.profile, batched, self._instance) for spec in specs]
            for buffers in sets:
                found = self._graphs.setdefault((context, buffers), {})
                for shapes in filter(None, wanted):
                    try:
                        found[shapes] = self._captured(context, buffers, shapes)
                    except TritonError as error:
                        self._log.error("unable to record CUDA graph for %s: %s", self._instance, error.message)

    def fitting(self, context: Context, buffers: BufferSet, shapes: Mapping[str, Shape]) -> Graph | None:
        """Return the graph for a batch of `shapes`, None where there is none."""
        graphs = self._graphs.get((context, buffers))
        if not graphs:
            return None
        chosen = chosen_graph(graphs, shapes)
        return None if chosen is None else graphs[chosen]

    def launch(self, graph: Graph) -> None:
        """Put a graph on the stream; raises CudaFailure."""
        try:
            self._cuda.launch(graph.handle, self._stream)
        except CudaFailure as error:
            raise CudaFailure(f"unable to execute graph for inference {self._instance}: {error.message}") from error

    def close(self) -> None:
        """Destroy them."""
        for graph in self._all():
            self._cuda.end_graph(graph.handle)
        self._graphs.clear()

    def _all(self) -> Iterator[Graph]:
        for graphs in self._graphs.values():
            yield from graphs.values()

    def _captured(self, context: Context, buffers: BufferSet, shapes: GraphShapes) -> Graph:
        inputs = dict(zip(context.profile.shapes, shapes.shapes, strict=True))
        buffers.bind(context)
        context.specify(inputs, {})
        context.enqueue(self._stream, 0)  # what the first execution of these shapes sets up is no part of a graph
        self._cuda.await_stream(self._stream)
        self._cuda.begin_capture(self._stream)
        try:
            context.enqueue(self._stream, 0)
        except TritonError:
            self._cuda.give_up_capture(self._stream)
            raise
        return Graph(self._cuda.end_capture(self._stream), inputs, dict(context.outputs))


def with_batch_dimension(config: ModelConfig) -> list[str]:
    """Return the names of the inputs whose first dimension is the batch."""
    if config.max_batch_size == 0:
        return []
    return [each.name for each in inputs_of(config) if not each.ragged and each.role != "batch input"]
