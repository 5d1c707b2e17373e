"""Requests to members and the ensemble's responses. Data is not copied."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import NamedTuple

from tritonpy import InferRequest, InferResponse, SequenceInfo, Tensor
from tritonpy.frontend import Sink
from tritonpy.metrics import ComputeTimes
from tritonpy_ensemble.members import Member
from tritonpy_ensemble.plan import EnsembleStep
from tritonpy_ensemble.plan_progress import PlanProgress
from tritonpy_ensemble.sequences import sequence_parameters
from tritonpy_ensemble.shapes import adapt_shape

log = logging.getLogger("tritonpy.model")


class MemberCall(NamedTuple):
    """The plan progress, step and member of a request to a member."""

    progress: PlanProgress
    step: EnsembleStep
    member: Member


def make_call(
    request: InferRequest, progress: PlanProgress, step: EnsembleStep, member: Member, sink: Sink
) -> InferRequest:
    """Return the request of `step` with its input tensors.

    All other fields are those of the ensemble's `request`.
    """
    inputs: dict[str, Tensor] = {}
    sequence = request.sequence
    for name, tensor in step.inputs:
        value = progress.take(tensor)
        if value.tensor is not None:
            inputs[name] = _adapted(
                value.tensor, value.rows, name, member.dims.get(name, ()), member.batched
            )
        if value.sequence is not request.sequence:
            sequence = _merge_sequences(sequence, value.sequence, request, step)
    return InferRequest(
        step.model,
        inputs,
        sink,
        step.version,
        request.id,
        step.requested_outputs,
        request.parameters,
        request.priority,
        request.timeout_us,
        request.deadline_ns,
        sequence if sequence is not None and sequence.id else None,
        request.accepts_decoupled,
        tag=MemberCall(progress, step, member),
        principal=request.principal,
        headers=request.headers,
        trace=request.trace,
        parent=request,
        compute_times=ComputeTimes(),
    )


def make_response(request: InferRequest, progress: PlanProgress) -> InferResponse:
    """Return the ensemble's response with the outputs of `progress`, which is complete.

    Outputs that members left out are omitted.
    """
    outputs: list[Tensor] = []
    sequence = request.sequence
    for output in progress.plan.outputs:
        value = progress.end(output.tensor)
        if value.tensor is not None:
            outputs.append(
                _adapted(value.tensor, value.rows, output.name, output.dims, progress.plan.batched)
            )
        else:
            log.debug("Composing models did not output tensor %s", output.name)
        if value.sequence is not request.sequence:
            sequence = value.sequence
    return InferResponse(outputs, parameters=sequence_parameters(sequence), final=False)


def _adapted(tensor: Tensor, rows: int, name: str, dims: Sequence[int], batched: bool) -> Tensor:
    shape = (
        tensor.shape if batched == bool(rows) else adapt_shape(tensor.shape, rows, dims, batched)
    )
    return tensor if tensor.name == name and shape == tensor.shape else tensor.view(name, shape)


def _merge_sequences(
    sequence: SequenceInfo | None,
    other: SequenceInfo | None,
    request: InferRequest,
    step: EnsembleStep,
) -> SequenceInfo | None:
    if sequence is request.sequence or sequence == other:
        return other
    log.error(
        (
            "ensemble '%s': the tensors for %s come with different sequences, %s and %s; "
            "using the first"
        ),
        request.model_name, step.description, sequence, other,
    )  # fmt: skip
    return sequence
