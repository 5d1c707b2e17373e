"""Configuration of the models that an ensemble calls."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tritonpy import Engine, TritonError
from tritonpy_ensemble.errors import step_error
from tritonpy_ensemble.plan import Plan


@dataclass(frozen=True, slots=True, eq=False)
class Member:
    """A model that an ensemble calls.

    `dims` are those of its inputs without the batch dimension.
    """

    decoupled: bool
    batched: bool
    dims: Mapping[str, tuple[int, ...]]


def resolve_members(plan: Plan, engine: Engine) -> tuple[Member, ...]:
    """Return the models that the steps of `plan` call.

    They are valid for the ensemble's lifetime, because reloading a member also reloads the
    ensemble. Called at the first request, since the engine has no model metadata before the server
    is ready or while it exits. Raises a `TritonError` if a model is not ready.
    """
    found = []
    for step in plan.steps:
        try:
            config = engine.model_config(step.model, step.version)
        except TritonError as error:
            raise step_error(plan, step, error) from error
        found.append(
            Member(
                config.model_transaction_policy.decoupled,
                config.max_batch_size > 0,
                {tensor.name: tuple(tensor.dims) for tensor in config.input},
            )
        )
    return tuple(found)
