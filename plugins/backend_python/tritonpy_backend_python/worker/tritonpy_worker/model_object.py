"""A model's own object: how it is made, asked and ended, wherever it runs."""

from __future__ import annotations

from asyncio import iscoroutine
from collections.abc import Mapping
from typing import Any

from .coroutines import Coroutines
from .failure import Refused


def make(module: Any, args: Mapping[str, str]) -> Any:
    """Return the initialized object of the module's class. Raises what the model raises."""
    model = module.TritonPythonModel()
    if hasattr(model, "initialize"):
        model.initialize(dict(args))
    return model


def asks_ready(model: Any) -> bool:
    """Say whether the model has a readiness check of its own."""
    return hasattr(model, "is_ready")


def is_ready(model: Any, coroutines: Coroutines) -> bool:
    """Return what the model's readiness check says. Raises Refused for anything but true and false, and what the model raises."""
    ready = model.is_ready()
    if iscoroutine(ready):
        ready = coroutines.run(ready)
    if not isinstance(ready, bool):
        raise Refused("is_ready() must return a boolean value")
    return ready


def finalize(model: Any) -> None:
    """Let the model clean up, if it wants to. Raises what the model raises."""
    if hasattr(model, "finalize"):
        model.finalize()
