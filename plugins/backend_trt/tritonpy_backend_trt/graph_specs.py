"""The CUDA graphs that a configuration asks for. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tritonpy import InvalidArgument
from tritonpy_backend_trt.signature import Shape

if TYPE_CHECKING:
    from tritonpy_protos.model_config_pb2 import ModelConfig, ModelOptimizationPolicy

# Graphs help most where kernels are short, which is where batches are small.
_USUAL_SIZES = (1, 2, 3, 4, 6, 8, 12, 16)


@dataclass(frozen=True, slots=True)
class GraphSpec:
    """One graph: a batch size (0 where the model does not batch), and shapes by input without the batch dimension (none: a profile's optimum).

    `least_batch_size` and `least_shapes` are the smallest that the graph may stand in for.
    """

    batch_size: int
    least_batch_size: int
    shapes: Mapping[str, Shape] = field(default_factory=dict)
    least_shapes: Mapping[str, Shape] = field(default_factory=dict)


def graph_specs(config: ModelConfig) -> list[GraphSpec]:
    """Return the graphs to capture, none where the configuration has them off; raises InvalidArgument for one that cannot be."""
    cuda = config.optimization.cuda
    if not cuda.graphs:
        return []
    if not cuda.graph_spec:
        return [GraphSpec(size, size) for size in _default_sizes(config)]
    specs = [_parsed(spec) for spec in cuda.graph_spec]
    for spec in specs:
        _check(spec, config.max_batch_size)
    return specs


def _default_sizes(config: ModelConfig) -> list[int]:
    most = config.max_batch_size
    if most == 0:
        return [0]
    sizes: Iterable[int] = _USUAL_SIZES
    if config.HasField("dynamic_batching"):
        sizes = (1, *config.dynamic_batching.preferred_batch_size)
    elif config.sequence_batching.HasField("oldest"):
        sizes = (1, *config.sequence_batching.oldest.preferred_batch_size)
    return sorted({size for size in (*sizes, most) if size <= most})


def _parsed(spec: ModelOptimizationPolicy.Cuda.GraphSpec) -> GraphSpec:
    shapes = {name: tuple(spec.input[name].dim) for name in sorted(spec.input)}
    if not spec.HasField("graph_lower_bound"):
        return GraphSpec(spec.batch_size, spec.batch_size, shapes, shapes)
    least = spec.graph_lower_bound
    least_shapes = {name: tuple(least.input[name].dim) for name in sorted(least.input)}
    return GraphSpec(spec.batch_size, least.batch_size, shapes, least_shapes)


def _check(spec: GraphSpec, max_batch_size: int) -> None:
    sizes = (spec.batch_size, spec.least_batch_size)
    if max_batch_size == 0 and sizes != (0, 0):
        raise InvalidArgument("graph spec expects 'batch_size' to be 0 if 'max_batch_size' is 0")
    if max_batch_size > 0 and not all(1 <= size <= max_batch_size for size in sizes):
        raise InvalidArgument(f"graph spec expects 'batch_size' to be >= 1 and <= {max_batch_size}")
    if spec.least_batch_size > spec.batch_size:
        raise InvalidArgument("graph lower bound spec expects 'batch_size' to be <= graph spec 'batch_size'")
    for name, shape in spec.shapes.items():
        _check_bound(name, shape, spec.least_shapes.get(name))


def _check_bound(name: str, shape: Shape, least: Shape | None) -> None:
    if least is None:
        raise InvalidArgument(f"graph lower bound spec expects shape for input '{name}'")
    if len(least) != len(shape):
        raise InvalidArgument(f"graph lower bound spec expects to have '{len(shape)} dimensions, got {len(least)}")
    for low, high in zip(least, shape, strict=True):
        if low < 0 or high < 0:
            raise InvalidArgument(f"graph spec expects input '{name}' to have dimension >= 0")
        if low > high:
            raise InvalidArgument(f"graph lower bound spec expects input '{name}' to have dimension <= {high}")
