"""The requests that an ensemble makes of its members, and the answer that it makes of theirs; no data is copied."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import NamedTuple

from tritonpy import InferRequest, InferResponse, SequenceInfo, Sink, Tensor, Work
from tritonpy_ensemble.frame import Frame
from tritonpy_ensemble.members import Member
from tritonpy_ensemble.plan import Step
from tritonpy_ensemble.sequences import parameters_of
from tritonpy_ensemble.shapes import handed_on

log = logging.getLogger("tritonpy.model")


class Call(NamedTuple):
    """What an ensemble knows of a request that it made: for which step of which frame, and of which model."""

    frame: Frame
    step: Step
    member: Member


def call_of(request: InferRequest, frame: Frame, step: Step, member: Member, sink: Sink) -> InferRequest:
    """Return the request of `step`: with the tensors that `frame` has for it, and all that the ensemble's `request` says besides."""
    inputs: dict[str, Tensor] = {}
    sequence = request.sequence
    for name, tensor in step.inputs:
        value = frame.take(tensor)
        if value.tensor is not None:
            inputs[name] = _passed(value.tensor, value.rows, name, member.dims.get(name, ()), member.batched)
        if value.sequence is not request.sequence:
            sequence = _joined(sequence, value.sequence, request, step)
    return InferRequest(
        step.model,
        inputs,
        sink,
        step.version,
        request.id,
        step.wants,
        request.parameters,
        request.priority,
        request.timeout_us,
        request.deadline_ns,
        sequence if sequence is not None and sequence.id else None,
        request.accepts_decoupled,
        tag=Call(frame, step, member),
        principal=request.principal,
        headers=request.headers,
        trace=request.trace,
        parent=request,
        work=Work(),
    )


def answer_of(request: InferRequest, frame: Frame) -> InferResponse:
    """Return an answer of the ensemble from a frame that lacks nothing; an output that a member left out is left out."""
    outputs: list[Tensor] = []
    sequence = request.sequence
    for output in frame.plan.outputs:
        value = frame.end(output.tensor)
        if value.tensor is not None:
            outputs.append(_passed(value.tensor, value.rows, output.name, output.dims, frame.plan.batched))
        else:
            log.debug("Composing models did not output tensor %s", output.name)
        if value.sequence is not request.sequence:
            sequence = value.sequence
    return InferResponse(outputs, parameters=parameters_of(sequence), final=False)


def _passed(tensor: Tensor, rows: int, name: str, dims: Sequence[int], batched: bool) -> Tensor:
    shape = tensor.shape if batched == bool(rows) else handed_on(tensor.shape, rows, dims, batched)
    return tensor if tensor.name == name and shape == tensor.shape else tensor.view(name, shape)


def _joined(
    sequence: SequenceInfo | None, other: SequenceInfo | None, request: InferRequest, step: Step
) -> SequenceInfo | None:
    if sequence is request.sequence or sequence == other:
        return other
    log.error(
        "ensemble '%s': the tensors for %s come with different sequences, %s and %s; the first is used",
        request.model_name, step.said, sequence, other,
    )  # fmt: skip
    return sequence
