"""Limits of a worker's execution time and memory."""

from __future__ import annotations

from dataclasses import dataclass

from tritonpy import InvalidArgument, ModelContext
from tritonpy.config import parse_byte_size
from tritonpy_backend_python.options import PythonOptions

EXECUTION, MEMORY = "EXECUTION_LIMIT_SECONDS", "MEMORY_LIMIT"


@dataclass(frozen=True, slots=True)
class WorkerLimits:
    """Limits in seconds and bytes. 0 means no limit."""

    execution_s: float
    memory: int


def limits_of(model: ModelContext, options: PythonOptions) -> WorkerLimits:
    """Return a model's limits: its parameters, or the backend's options.

    Raises `InvalidArgument` for invalid values.
    """
    return WorkerLimits(
        _seconds(model, options.execution_limit_seconds),
        _bytes(model, options.memory_limit),
    )


def _seconds(model: ModelContext, default: float) -> float:
    text = model.parameters.get(EXECUTION)
    if text is None:
        return default
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds < float("inf"):
        raise InvalidArgument(
            f"model '{model.name}': parameter '{EXECUTION}' is '{text}', "
            "it must be a number of seconds (0: no limit)"
        )
    return seconds


def _bytes(model: ModelContext, default: int) -> int:
    text = model.parameters.get(MEMORY)
    if text is None:
        return default
    try:
        return parse_byte_size(text)
    except ValueError:
        raise InvalidArgument(
            f"model '{model.name}': parameter '{MEMORY}' is '{text}', it must be a size such as "
            '"2GiB" (0: no limit)'
        ) from None
