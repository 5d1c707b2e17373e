"""CUDA graphs of one instance, captured at load and launched for batches that fit them."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tritonpy import TritonError
from tritonpy_backend_trt.buffers import BufferSet
from tritonpy_backend_trt.config_inputs import config_inputs
from tritonpy_backend_trt.context import ExecutionContext
from tritonpy_backend_trt.cuda import Cuda, CudaRuntimeError
from tritonpy_backend_trt.graph_selection import GraphShapes, graph_shapes, select_graph
from tritonpy_backend_trt.graph_specs import GraphSpec
from tritonpy_backend_trt.signature import Shape

if TYPE_CHECKING:
    from tritonpy_protos.model_config_pb2 import ModelConfig

Log = logging.LoggerAdapter[logging.Logger]


@dataclass(frozen=True, slots=True)
class Graph:
    """An executable graph with the shapes of its inputs and outputs."""

    handle: int
    inputs: Mapping[str, Shape]
    outputs: Mapping[str, Shape]


class Graphs:
    """Graphs of an instance, by context and buffer set.

    A graph runs on the addresses that it was captured with, so each combination needs its own.
    """

    def __init__(self, cuda: Cuda, stream: int, instance: str, log: Log) -> None:
        self._cuda = cuda
        self._stream = stream
        self._instance = instance
        self._log = log
        self._graphs: dict[tuple[ExecutionContext, BufferSet], dict[GraphShapes, Graph]] = {}

    def capture(
        self,
        specs: Sequence[GraphSpec],
        contexts: Sequence[ExecutionContext],
        sets: Sequence[BufferSet],
        batched: Sequence[str],
    ) -> None:
        """Capture the graphs of `specs`; log and skip a graph that the runtime rejects.

        `batched` are the inputs with a batch dimension. Raises `InvalidArgument` for a spec that
        has shapes for some inputs only.
        """
        for context in contexts:
            wanted = [
                graph_shapes(spec, context.profile, batched, self._instance) for spec in specs
            ]
            for buffers in sets:
                found = self._graphs.setdefault((context, buffers), {})
                for shapes in filter(None, wanted):
                    try:
                        found[shapes] = self._capture_graph(context, buffers, shapes)
                    except TritonError as error:
                        self._log.error(
                            "unable to record CUDA graph for %s: %s", self._instance, error.message
                        )

    def find(
        self, context: ExecutionContext, buffers: BufferSet, shapes: Mapping[str, Shape]
    ) -> Graph | None:
        """Return the graph for a batch of `shapes`, or None."""
        graphs = self._graphs.get((context, buffers))
        if not graphs:
            return None
        chosen = select_graph(graphs, shapes)
        return None if chosen is None else graphs[chosen]

    def launch(self, graph: Graph) -> None:
        """Launch a graph on the stream; raise `CudaRuntimeError` on failure."""
        try:
            self._cuda.launch_graph(graph.handle, self._stream)
        except CudaRuntimeError as error:
            raise CudaRuntimeError(
                f"unable to execute graph for inference {self._instance}: {error.message}"
            ) from error

    def close(self) -> None:
        """Destroy all graphs."""
        for graph in self._all():
            self._cuda.destroy_graph(graph.handle)
        self._graphs.clear()

    def _all(self) -> Iterator[Graph]:
        for graphs in self._graphs.values():
            yield from graphs.values()

    def _capture_graph(
        self, context: ExecutionContext, buffers: BufferSet, shapes: GraphShapes
    ) -> Graph:
        inputs = dict(zip(context.profile.shapes, shapes.shapes, strict=True))
        buffers.bind(context)
        context.set_inputs(inputs, {})
        context.enqueue(
            self._stream, 0
        )  # one-time setup for these shapes must not be part of the graph
        self._cuda.synchronize_stream(self._stream)
        self._cuda.begin_capture(self._stream)
        try:
            context.enqueue(self._stream, 0)
        except TritonError:
            self._cuda.abort_capture(self._stream)
            raise
        return Graph(self._cuda.end_capture(self._stream), inputs, dict(context.outputs))


def batch_dimension_inputs(config: ModelConfig) -> list[str]:
    """Return the names of the inputs whose first dimension is the batch."""
    if config.max_batch_size == 0:
        return []
    return [
        each.name
        for each in config_inputs(config)
        if not each.ragged and each.role != "batch input"
    ]
