"""The management operation for the memory report: GET /v2/memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tritonpy.api.authenticator import Verb
from tritonpy.api.engine import Operation
from tritonpy.api.operation import OperationHandler

MEMORY = Operation(
    "memory",
    "GET",
    "memory",
    "The memory budget, its use by each model, and the counters of lazy models.",
    Verb.READ,
)


def memory_operation(report: Callable[[], Any]) -> Mapping[Operation, OperationHandler]:
    """Return the operation; `report` returns its result."""
    return {MEMORY: lambda _call: report()}
