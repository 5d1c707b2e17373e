"""A model's request to another model, as plain data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .parameters import Parameters
    from .preferred_memory import PreferredMemory
    from .tensor import Tensor


@dataclass(frozen=True)
class CallSpec:
    """A request to another model of the server."""

    model_name: str
    model_version: int  # -1: the server chooses
    request_id: str
    inputs: tuple[Tensor, ...]
    requested_output_names: tuple[str, ...]  # without duplicates
    correlation_id: int | str
    flags: int
    timeout: int  # microseconds, 0: none
    parameters: Parameters
    preferred_memory: PreferredMemory | None  # None: the server chooses
    trace: int | None  # number of the received request whose trace continues
    decoupled: bool  # any number of responses
