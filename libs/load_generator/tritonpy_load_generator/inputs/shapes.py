"""Shapes of inputs: from the model, or from the user for variable dimensions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tritonpy_load_generator.options import BadUsage
from tritonpy_load_generator.target.metadata import ModelDescription, TensorDescription

Shapes = Mapping[str, tuple[int, ...]]


def checked_shapes(
    model: ModelDescription, shapes: Sequence[tuple[str, tuple[int, ...]]]
) -> dict[str, tuple[int, ...]]:
    """Return the shapes given by `--shape`.

    Raises BadUsage for an unknown input or a wrong shape.
    """
    known = {tensor.name: tensor for tensor in model.inputs}
    for name, shape in shapes:
        if name not in known:
            raise BadUsage(
                f"--shape {name}: model '{model.name}' has no such input; it has {', '.join(known)}"
            )
        if not fits(shape, known[name].dims):
            raise BadUsage(
                (
                    f"--shape {name}:{_join_dims(shape)} does not fit the model's "
                    f"{list(known[name].dims)}"
                )
                + (
                    " (without the batch dimension: set the batch size with -b)"
                    if model.max_batch_size
                    else ""
                )
            )
    return dict(shapes)


def shape_of(tensor: TensorDescription, given: Shapes, model: str) -> tuple[int, ...]:
    """Return the shape of one batch element.

    Raises BadUsage, with an example for `--shape`, if a variable shape is not given.
    """
    if tensor.name in given:
        return given[tensor.name]
    if -1 in tensor.dims:
        example = _join_dims([8 if dim == -1 else dim for dim in tensor.dims])
        raise BadUsage(
            f"input '{tensor.name}' of model '{model}' has the variable shape {list(tensor.dims)}: "
            f"set it, for example with --shape {tensor.name}:{example}"
        )
    return tensor.dims


def fits(shape: Sequence[int], dims: Sequence[int]) -> bool:
    """Return whether a shape matches the model's dimensions."""
    return len(shape) == len(dims) and all(
        dim in {-1, have} for have, dim in zip(shape, dims, strict=True)
    )


def _join_dims(dims: Sequence[int]) -> str:
    return ",".join(map(str, dims))
