"""Pure limits of one execution: a profile, narrowed by the configuration."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from tritonpy import Internal, InvalidArgument
from tritonpy_backend_trt.config_inputs import WILDCARD, input_shapes
from tritonpy_backend_trt.signature import Profile, Range, Shape, Signature, TensorInfo

if TYPE_CHECKING:
    from tritonpy_protos.model_config_pb2 import ModelConfig


def narrow_profile(profile: Profile, config: ModelConfig, signature: Signature) -> Profile:
    """Return `profile` with its maximum shapes reduced to those that the configuration allows.

    Raises `InvalidArgument` if the configuration needs a shape outside the profile.
    """
    wanted = input_shapes(config)
    shapes = dict(profile.shapes)
    for name, info in signature.inputs.items():
        if name in wanted and not info.is_shape:
            shapes[name] = _narrow_range(config, info, shapes[name], wanted[name])
    return replace(profile, shapes=shapes)


def _narrow_range(config: ModelConfig, info: TensorInfo, allowed: Range, wanted: Shape) -> Range:
    batch = wanted[:1] if config.max_batch_size > 0 else ()
    problem = range_violation(allowed, (*[WILDCARD] * len(batch), *wanted[len(batch) :]))
    if problem is not None:
        raise InvalidArgument(
            f"model configuration specified invalid shape for input '{info.name}' for model "
            f"{config.name}. "
            f"Error details: {problem}"
        )
    largest = [
        top if size == WILDCARD else min(top, size)
        for top, size in zip(allowed.maximum, wanted, strict=True)
    ]
    return allowed._replace(maximum=tuple(largest))


def range_violation(allowed: Range, shape: Sequence[int]) -> str | None:
    """Return how `shape` violates `allowed`, or None; -1 is an unknown size."""
    if len(shape) != len(allowed.maximum):
        return (
            f"model expected {len(allowed.maximum)} dimensions but received {len(shape)} dimensions"
        )
    for index, (minimum, size, most) in enumerate(
        zip(allowed.minimum, shape, allowed.maximum, strict=True)
    ):
        if size != WILDCARD and not minimum <= size <= most:
            return (
                f"model expected the shape of dimension {index} to be between {minimum} and "
                f"{most} but received {size}"
            )
    return None


def check_shape(instance: str, name: str, allowed: Range, shape: Shape) -> None:
    """Raise `Internal` if the `shape` of the batch's input `name` is outside `allowed`."""
    problem = range_violation(allowed, shape)
    if problem is not None:
        raise Internal(
            f"request specifies invalid shape for input '{name}' for {instance}. Error details: "
            f"{problem}"
        )


def check_values(allowed: Range, values: Sequence[int]) -> None:
    """Raise `InvalidArgument` if the values of a shape tensor are outside `allowed`."""
    if len(values) != len(allowed.maximum):
        raise InvalidArgument(
            f"mismatch between the number of shape values. Expecting {len(allowed.maximum)}. "
            f"Got {len(values)}"
        )
    for index, (minimum, value, most) in enumerate(
        zip(allowed.minimum, values, allowed.maximum, strict=True)
    ):
        if not minimum <= value <= most:
            raise InvalidArgument(
                f"The shape value at index {index} is expected to be in range from {minimum} to "
                f"{most}, Got: {value}"
            )


def max_rows(profile: Profile) -> int:
    """Return the largest batch under `profile`; 0 if an input has no batch dimension."""
    rows = [
        profile.values[name].maximum if name in profile.values else shapes.maximum
        for name, shapes in profile.shapes.items()
    ]
    return min((each[0] if each else 0 for each in rows), default=0)
