"""What clients are told when an ensemble fails: Triton's words, then the step, its model and its tensors."""

from __future__ import annotations

import copy

from tritonpy import Cancelled, FailureReason, InferRequest, InvalidArgument, TritonError
from tritonpy_ensemble.plan import Plan, Step


def failed_step(plan: Plan, step: Step, error: TritonError) -> TritonError:
    """Return the error of an ensemble whose `step` ended with `error`; it keeps the kind."""
    told = copy.copy(error)
    told.message = f"in ensemble '{plan.ensemble}', {error.message} ({step.said})"
    told.args = (told.message,)
    if error.reason is not FailureReason.CANCELED:
        told.reason = FailureReason.OTHER
    return told


def cancelled_before(plan: Plan, step: Step) -> Cancelled:
    """Return the error of an ensemble that was cancelled before `step` began."""
    return Cancelled(f"in ensemble '{plan.ensemble}', Request cancelled ({step.said})")


def nothing_more(plan: Plan, request: InferRequest, step: Step | None) -> TritonError:
    """Return the error of an ensemble that cannot answer because `step` (None: nobody) made nothing."""
    text = "unexpected deadlock, at least one output is not set while no more ensemble steps can be made"
    why = "" if step is None else f" (no answer came from {step.said})"
    told = InvalidArgument(text).with_request_id(request.id)
    return type(told)(f"in ensemble '{plan.ensemble}', {told.message}{why}")
