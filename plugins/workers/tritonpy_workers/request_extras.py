"""Optional request fields, as the JSON of a frame."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tritonpy import InferRequest


def is_plain(request: InferRequest) -> bool:
    """Return whether `request` needs no optional fields; checked once on the hot path.

    Ids, tensors, sequences and requested outputs are sent separately.
    """
    return (
        not (request.parameters or request.timeout_us or request.priority or request.deadline_ns)
        and request.batch_size == 1
        and request.trace is None
        and not request.unchecked_strings
    )


def request_extras(requests: Sequence[InferRequest]) -> dict[str, Any]:
    """Return the optional fields of the requests in a frame.

    Ids are added by the caller, and sequences are among the words of the frame.
    """
    extras: dict[str, Any] = {}
    unchecked = [index for index, request in enumerate(requests) if request.unchecked_strings]
    if unchecked:
        extras["unchecked"] = unchecked
    optional = {
        str(index): fields
        for index, request in enumerate(requests)
        if (fields := _optional_fields(request))
    }
    if optional:
        extras["requests"] = optional
    return extras


def _optional_fields(request: InferRequest) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    if request.parameters:
        fields["parameters"] = dict(request.parameters)
    if request.timeout_us:
        fields["timeout_us"] = request.timeout_us
    if request.priority:
        fields["priority"] = request.priority
    if request.deadline_ns:
        fields["deadline_ns"] = request.deadline_ns
    if request.trace is not None:
        fields["trace"] = str(request.trace)
    if request.batch_size != 1:
        fields["batch_size"] = request.batch_size
    return fields
