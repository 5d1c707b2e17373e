"""Pure parsing of the CUDA graphs in a configuration."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tritonpy import InvalidArgument
from tritonpy_backend_trt.signature import Shape

if TYPE_CHECKING:
    from tritonpy_protos.model_config_pb2 import ModelConfig, ModelOptimizationPolicy

# Graphs help most for short kernels, that is, for small batches.
_DEFAULT_BATCH_SIZES = (1, 2, 3, 4, 6, 8, 12, 16)


@dataclass(frozen=True, slots=True)
class GraphSpec:
    """One graph to capture.

    `batch_size` is 0 if the model does not batch. `shapes` are by input without the batch
    dimension; if empty, the profile's optimum is used. `min_batch_size` and `min_shapes` are the
    smallest that the graph serves.
    """

    batch_size: int
    min_batch_size: int
    shapes: Mapping[str, Shape] = field(default_factory=dict)
    min_shapes: Mapping[str, Shape] = field(default_factory=dict)


def graph_specs(config: ModelConfig) -> list[GraphSpec]:
    """Return the graphs to capture; empty if `config` does not enable them.

    Raises `InvalidArgument` for an invalid graph.
    """
    cuda = config.optimization.cuda
    if not cuda.graphs:
        return []
    if not cuda.graph_spec:
        return [GraphSpec(size, size) for size in _default_sizes(config)]
    specs = [_parse_spec(spec) for spec in cuda.graph_spec]
    for spec in specs:
        _check(spec, config.max_batch_size)
    return specs


def _default_sizes(config: ModelConfig) -> list[int]:
    most = config.max_batch_size
    if most == 0:
        return [0]
    sizes: Iterable[int] = _DEFAULT_BATCH_SIZES
    if config.HasField("dynamic_batching"):
        sizes = (1, *config.dynamic_batching.preferred_batch_size)
    elif config.sequence_batching.HasField("oldest"):
        sizes = (1, *config.sequence_batching.oldest.preferred_batch_size)
    return sorted({size for size in (*sizes, most) if size <= most})


def _parse_spec(spec: ModelOptimizationPolicy.Cuda.GraphSpec) -> GraphSpec:
    shapes = {name: tuple(spec.input[name].dim) for name in sorted(spec.input)}
    if not spec.HasField("graph_lower_bound"):
        return GraphSpec(spec.batch_size, spec.batch_size, shapes, shapes)
    minimum = spec.graph_lower_bound
    min_shapes = {name: tuple(minimum.input[name].dim) for name in sorted(minimum.input)}
    return GraphSpec(spec.batch_size, minimum.batch_size, shapes, min_shapes)


def _check(spec: GraphSpec, max_batch_size: int) -> None:
    sizes = (spec.batch_size, spec.min_batch_size)
    if max_batch_size == 0 and sizes != (0, 0):
        raise InvalidArgument("graph spec expects 'batch_size' to be 0 if 'max_batch_size' is 0")
    if max_batch_size > 0 and not all(1 <= size <= max_batch_size for size in sizes):
        raise InvalidArgument(f"graph spec expects 'batch_size' to be >= 1 and <= {max_batch_size}")
    if spec.min_batch_size > spec.batch_size:
        raise InvalidArgument(
            "graph lower bound spec expects 'batch_size' to be <= graph spec 'batch_size'"
        )
    for name, shape in spec.shapes.items():
        _check_bound(name, shape, spec.min_shapes.get(name))


def _check_bound(name: str, shape: Shape, minimum: Shape | None) -> None:
    if minimum is None:
        raise InvalidArgument(f"graph lower bound spec expects shape for input '{name}'")
    if len(minimum) != len(shape):
        raise InvalidArgument(
            f"graph lower bound spec expects to have '{len(shape)} dimensions, got {len(minimum)}"
        )
    for low, high in zip(minimum, shape, strict=True):
        if low < 0 or high < 0:
            raise InvalidArgument(f"graph spec expects input '{name}' to have dimension >= 0")
        if low > high:
            raise InvalidArgument(
                f"graph lower bound spec expects input '{name}' to have dimension <= {high}"
            )
