"""What an instance allows in one execution: a profile, narrowed by the configuration. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from tritonpy import Internal, InvalidArgument
from tritonpy_backend_trt.configured import WILDCARD, input_shapes
from tritonpy_backend_trt.signature import Profile, Range, Shape, Signature, TensorInfo

if TYPE_CHECKING:
    from tritonpy_protos.model_config_pb2 import ModelConfig


def narrowed(profile: Profile, config: ModelConfig, signature: Signature) -> Profile:
    """Return `profile` with its largest shapes no larger than what the configuration lets requests have.

    Raises InvalidArgument where the configuration asks for a shape that the profile does not have.
    """
    wanted = input_shapes(config)
    shapes = dict(profile.shapes)
    for name, info in signature.inputs.items():
        if name in wanted and not info.is_shape:
            shapes[name] = _narrowed(config, info, shapes[name], wanted[name])
    return replace(profile, shapes=shapes)


def _narrowed(config: ModelConfig, info: TensorInfo, allowed: Range, wanted: Shape) -> Range:
    batch = wanted[:1] if config.max_batch_size > 0 else ()
    flaw = outside(allowed, (*[WILDCARD] * len(batch), *wanted[len(batch) :]))
    if flaw is not None:
        raise InvalidArgument(
            f"model configuration specified invalid shape for input '{info.name}' for model {config.name}. "
            f"Error details: {flaw}"
        )
    largest = [top if size == WILDCARD else min(top, size) for top, size in zip(allowed.maximum, wanted, strict=True)]
    return allowed._replace(maximum=tuple(largest))


def outside(allowed: Range, shape: Sequence[int]) -> str | None:
    """Return in which way `shape` is not within `allowed`, None where it is; -1 is a size that nobody knows yet."""
    if len(shape) != len(allowed.maximum):
        return f"model expected {len(allowed.maximum)} dimensions but received {len(shape)} dimensions"
    for index, (least, size, most) in enumerate(zip(allowed.minimum, shape, allowed.maximum, strict=True)):
        if size != WILDCARD and not least <= size <= most:
            return f"model expected the shape of dimension {index} to be between {least} and {most} but received {size}"
    return None


def check_shape(instance: str, name: str, allowed: Range, shape: Shape) -> None:
    """Raise Internal where the input `name` of a batch has a `shape` that is not within `allowed`."""
    flaw = outside(allowed, shape)
    if flaw is not None:
        raise Internal(f"request specifies invalid shape for input '{name}' for {instance}. Error details: {flaw}")


def check_values(allowed: Range, values: Sequence[int]) -> None:
    """Raise InvalidArgument where the values of a shape tensor are not within `allowed`."""
    if len(values) != len(allowed.maximum):
        raise InvalidArgument(
            f"mismatch between the number of shape values. Expecting {len(allowed.maximum)}. Got {len(values)}"
        )
    for index, (least, value, most) in enumerate(zip(allowed.minimum, values, allowed.maximum, strict=True)):
        if not least <= value <= most:
            raise InvalidArgument(
                f"The shape value at index {index} is expected to be in range from {least} to {most}, Got: {value}"
            )


def largest_rows(profile: Profile) -> int:
    """Return how many rows a batch may have under `profile`; 0 where an input has no dimension that could be the batch."""
    rows = [
        profile.values[name].maximum if name in profile.values else shapes.maximum
        for name, shapes in profile.shapes.items()
    ]
    return min((each[0] if each else 0 for each in rows), default=0)
