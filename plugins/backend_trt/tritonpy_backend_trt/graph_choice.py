"""The shapes of a CUDA graph under a profile, and which graph stands in for a batch. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from tritonpy import InvalidArgument
from tritonpy_backend_trt.graph_specs import GraphSpec
from tritonpy_backend_trt.limits import outside
from tritonpy_backend_trt.signature import Profile, Shape


@dataclass(frozen=True, slots=True, order=True)
class GraphShapes:
    """The shapes of all inputs in the engine's order: what the graph runs on, and the least that it may run for."""

    shapes: tuple[Shape, ...]
    least: tuple[Shape, ...]

    def stands_in_for(self, shapes: tuple[Shape, ...]) -> bool:
        """Say whether a batch of `shapes` can run in the graph, padded."""
        return all(
            len(most) == len(found) and all(map(_between, low, found, most))
            for low, found, most in zip(self.least, shapes, self.shapes, strict=True)
        )


def _between(low: int, found: int, high: int) -> bool:
    return low <= found <= high


def graph_shapes(spec: GraphSpec, profile: Profile, batched: Collection[str], instance: str) -> GraphShapes | None:
    """Return the shapes of the graph of `spec` under `profile`, None where the profile does not allow them.

    `batched` are the inputs with a batch dimension. Raises InvalidArgument where `spec` gives shapes, but not for every input.
    """
    pairs = [_pair(spec, name, allowed.optimum, name in batched, instance) for name, allowed in profile.shapes.items()]
    if any(outside(allowed, shape) for allowed, (shape, _) in zip(profile.shapes.values(), pairs, strict=True)):
        return None
    return GraphShapes(tuple(shape for shape, _ in pairs), tuple(least for _, least in pairs))


def _pair(spec: GraphSpec, name: str, optimum: Shape, batched: bool, instance: str) -> tuple[Shape, Shape]:
    rows = (spec.batch_size,) if batched else ()
    if not spec.shapes:
        shape = (*rows, *optimum[len(rows) :])
        return shape, (*[spec.least_batch_size] * len(rows), *optimum[len(rows) :])
    if name not in spec.shapes:
        raise InvalidArgument(f"trt failed to set input shape for unknown input '{name}' for {instance}")
    least_rows = (spec.least_batch_size,) if batched else ()
    return (*rows, *spec.shapes[name]), (*least_rows, *spec.least_shapes[name])


def chosen_graph(graphs: Iterable[GraphShapes], shapes: Mapping[str, Shape]) -> GraphShapes | None:
    """Return the graph for a batch whose inputs, in the engine's order, have `shapes`: that of exactly these, or the smallest that stands in."""
    wanted = tuple(shapes.values())
    return min(
        (graph for graph in graphs if graph.stands_in_for(wanted)),
        key=lambda graph: (graph.shapes != wanted, graph),
        default=None,
    )
