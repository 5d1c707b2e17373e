"""The life cycle of a model's object: creation, readiness check and finalization."""

from __future__ import annotations

from asyncio import iscoroutine
from collections.abc import Mapping
from typing import Any

from .coroutines import Coroutines
from .failure import ModelContractError


def make(module: Any, args: Mapping[str, str]) -> Any:
    """Return the initialized object of the module's class. Raises exceptions of the model."""
    model = module.TritonPythonModel()
    if hasattr(model, "initialize"):
        model.initialize(dict(args))
    return model


def has_ready_check(model: Any) -> bool:
    """Return true if the model has its own readiness check."""
    return hasattr(model, "is_ready")


def is_ready(model: Any, coroutines: Coroutines) -> bool:
    """Return the result of the model's readiness check.

    Raises `ModelContractError` if it is not a boolean, and exceptions of the model.
    """
    ready = model.is_ready()
    if iscoroutine(ready):
        ready = coroutines.run(ready)
    if not isinstance(ready, bool):
        raise ModelContractError("is_ready() must return a boolean value")
    return ready


def finalize(model: Any) -> None:
    """Call the model's `finalize`, if any. Raises exceptions of the model."""
    if hasattr(model, "finalize"):
        model.finalize()
