"""Pure selection of the CUDA graph for a batch, and of a graph's shapes under a profile."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from tritonpy import InvalidArgument
from tritonpy_backend_trt.graph_specs import GraphSpec
from tritonpy_backend_trt.limits import range_violation
from tritonpy_backend_trt.signature import Profile, Shape


@dataclass(frozen=True, slots=True, order=True)
class GraphShapes:
    """Shapes of all inputs in the engine's order: of the graph, and the minimum that it serves."""

    shapes: tuple[Shape, ...]
    minimum: tuple[Shape, ...]

    def fits(self, shapes: tuple[Shape, ...]) -> bool:
        """Return whether a batch of `shapes`, padded, can run in the graph."""
        return all(
            len(most) == len(found) and all(map(_between, low, found, most))
            for low, found, most in zip(self.minimum, shapes, self.shapes, strict=True)
        )


def _between(low: int, found: int, high: int) -> bool:
    return low <= found <= high


def graph_shapes(
    spec: GraphSpec, profile: Profile, batched: Collection[str], instance: str
) -> GraphShapes | None:
    """Return the shapes of the graph of `spec`, or None if `profile` does not allow them.

    `batched` are the inputs with a batch dimension. Raises `InvalidArgument` if `spec` has shapes
    for some inputs only.
    """
    pairs = [
        _pair(spec, name, allowed.optimum, name in batched, instance)
        for name, allowed in profile.shapes.items()
    ]
    if any(
        range_violation(allowed, shape)
        for allowed, (shape, _) in zip(profile.shapes.values(), pairs, strict=True)
    ):
        return None
    return GraphShapes(tuple(shape for shape, _ in pairs), tuple(minimum for _, minimum in pairs))


def _pair(
    spec: GraphSpec, name: str, optimum: Shape, batched: bool, instance: str
) -> tuple[Shape, Shape]:
    rows = (spec.batch_size,) if batched else ()
    if not spec.shapes:
        shape = (*rows, *optimum[len(rows) :])
        return shape, (*[spec.min_batch_size] * len(rows), *optimum[len(rows) :])
    if name not in spec.shapes:
        raise InvalidArgument(
            f"trt failed to set input shape for unknown input '{name}' for {instance}"
        )
    least_rows = (spec.min_batch_size,) if batched else ()
    return (*rows, *spec.shapes[name]), (*least_rows, *spec.min_shapes[name])


def select_graph(graphs: Iterable[GraphShapes], shapes: Mapping[str, Shape]) -> GraphShapes | None:
    """Return the graph for a batch whose inputs, in the engine's order, have `shapes`.

    Prefers a graph of exactly these shapes, else the smallest that fits.
    """
    wanted = tuple(shapes.values())
    return min(
        (graph for graph in graphs if graph.fits(wanted)),
        key=lambda graph: (graph.shapes != wanted, graph),
        default=None,
    )
