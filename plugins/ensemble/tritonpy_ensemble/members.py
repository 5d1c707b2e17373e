"""What an ensemble has to know of the models that it calls."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tritonpy import Engine, TritonError
from tritonpy_ensemble.failures import failed_step
from tritonpy_ensemble.plan import Plan


@dataclass(frozen=True, slots=True, eq=False)
class Member:
    """A model; `dims` are those of its inputs, without the batch dimension."""

    decoupled: bool
    batched: bool
    dims: Mapping[str, tuple[int, ...]]


def members_of(plan: Plan, engine: Engine) -> tuple[Member, ...]:
    """Return the models that the steps of `plan` call. They stay as they are: where one is loaded anew, so is the ensemble.

    Asked with the first request: the engine tells nothing of models before the server is ready, and nothing once it exits. Raises a TritonError where a
    model does not serve.
    """
    found = []
    for step in plan.steps:
        try:
            config = engine.model_config(step.model, step.version)
        except TritonError as error:
            raise failed_step(plan, step, error) from error
        found.append(
            Member(
                config.model_transaction_policy.decoupled,
                config.max_batch_size > 0,
                {tensor.name: tuple(tensor.dims) for tensor in config.input},
            )
        )
    return tuple(found)
