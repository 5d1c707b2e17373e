"""The management operation that tells of the memory of models: GET /v2/memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tritonpy.api.authenticator import Verb
from tritonpy.api.operation import Answerer, Operation

MEMORY = Operation(
    "memory",
    "GET",
    "memory",
    "The memory budget, who holds how much of it, and what was counted of lazy models.",
    Verb.READ,
)


def memory_operation(plain: Callable[[], Any]) -> Mapping[Operation, Answerer]:
    """Return the operation; `plain` gives its answer."""
    return {MEMORY: lambda _call: plain()}
