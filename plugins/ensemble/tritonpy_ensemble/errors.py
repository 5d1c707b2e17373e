"""Error texts of ensembles: Triton's text, then the step with its model and tensors."""

from __future__ import annotations

import copy

from tritonpy import Cancelled, InferRequest, InvalidArgument, TritonError
from tritonpy.metrics import FailureReason
from tritonpy_ensemble.plan import EnsembleStep, Plan


def step_error(plan: Plan, step: EnsembleStep, error: TritonError) -> TritonError:
    """Return the ensemble's error for `error` of `step`. It has the same type."""
    wrapped = copy.copy(error)
    wrapped.message = f"in ensemble '{plan.ensemble}', {error.message} ({step.description})"
    wrapped.args = (wrapped.message,)
    if error.reason is not FailureReason.CANCELED:
        wrapped.reason = FailureReason.OTHER
    return wrapped


def cancelled_error(plan: Plan, step: EnsembleStep) -> Cancelled:
    """Return the error of an ensemble that was cancelled before `step` began."""
    return Cancelled(f"in ensemble '{plan.ensemble}', Request cancelled ({step.description})")


def deadlock_error(plan: Plan, request: InferRequest, step: EnsembleStep | None) -> TritonError:
    """Return the error of an ensemble that has no response.

    The reason is that `step` sent no response. If `step` is None, the reason is unknown.
    """
    text = (
        "unexpected deadlock, at least one output is not set while no more ensemble steps can be "
        "made"
    )
    detail = "" if step is None else f" (no response from {step.description})"
    error = InvalidArgument(text).with_request_id(request.id)
    return type(error)(f"in ensemble '{plan.ensemble}', {error.message}{detail}")
