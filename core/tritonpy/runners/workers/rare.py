"""What is rare about requests, as the JSON of their frame."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tritonpy.types import InferRequest


def is_plain(request: InferRequest) -> bool:
    """Say whether there is nothing to be said of `request` but its tensors, its id, its sequence and the outputs that it wants: the hot path looks once."""
    return (
        not (request.parameters or request.timeout_us or request.priority or request.deadline_ns)
        and request.batch_size == 1
        and request.trace is None
        and not request.unchecked_strings
    )


def request_extras(requests: Sequence[InferRequest]) -> dict[str, Any]:
    """Return what a frame says of its requests beside their ids; what they say of their sequences is among its words."""
    extras: dict[str, Any] = {}
    unchecked = [index for index, request in enumerate(requests) if request.unchecked_strings]
    if unchecked:
        extras["unchecked"] = unchecked
    rare = {str(index): said for index, request in enumerate(requests) if (said := _rare(request))}
    if rare:
        extras["requests"] = rare
    return extras


def _rare(request: InferRequest) -> dict[str, Any]:
    said: dict[str, Any] = {}
    if request.parameters:
        said["parameters"] = dict(request.parameters)
    if request.timeout_us:
        said["timeout_us"] = request.timeout_us
    if request.priority:
        said["priority"] = request.priority
    if request.deadline_ns:
        said["deadline_ns"] = request.deadline_ns
    if request.trace is not None:
        said["trace"] = str(request.trace)
    if request.batch_size != 1:
        said["batch_size"] = request.batch_size
    return said
