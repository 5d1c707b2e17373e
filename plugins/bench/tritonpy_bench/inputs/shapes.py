"""The shape of each input: the model's, or what the user says where it varies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tritonpy_bench.options import BadUsage
from tritonpy_bench.target.facts import ModelFacts, TensorFacts

Shapes = Mapping[str, tuple[int, ...]]


def given_shapes(facts: ModelFacts, shapes: Sequence[tuple[str, tuple[int, ...]]]) -> dict[str, tuple[int, ...]]:
    """Check what `--shape` gives. Raises BadUsage for an input that is not there, or a shape that contradicts the model's."""
    known = {tensor.name: tensor for tensor in facts.inputs}
    for name, shape in shapes:
        if name not in known:
            raise BadUsage(f"--shape {name}: model '{facts.name}' has no such input; it has {', '.join(known)}")
        if not fits(shape, known[name].dims):
            raise BadUsage(
                f"--shape {name}:{_text(shape)} does not fit the model's {list(known[name].dims)}"
                + (" (the batch is not part of it: -b says how large it is)" if facts.max_batch_size else "")
            )
    return dict(shapes)


def shape_of(tensor: TensorFacts, given: Shapes, model: str) -> tuple[int, ...]:
    """Return the shape of one element of a batch. Raises BadUsage that says what to type where it varies and nothing is given."""
    if tensor.name in given:
        return given[tensor.name]
    if -1 in tensor.dims:
        example = _text([8 if dim == -1 else dim for dim in tensor.dims])
        raise BadUsage(
            f"input '{tensor.name}' of model '{model}' has the shape {list(tensor.dims)}, which varies: "
            f"say which, for example --shape {tensor.name}:{example}"
        )
    return tensor.dims


def fits(shape: Sequence[int], dims: Sequence[int]) -> bool:
    """Whether a shape is one of those that the model takes."""
    return len(shape) == len(dims) and all(dim in {-1, have} for have, dim in zip(shape, dims, strict=True))


def _text(dims: Sequence[int]) -> str:
    return ",".join(map(str, dims))
