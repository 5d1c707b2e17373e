"""The parameters of a request."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Any, Optional


class RequestOutputKind(enum.Enum):
    CUMULATIVE = 0
    DELTA = 1
    FINAL_ONLY = 2


@dataclass
class StructuredOutputsParams:
    json: Any = None
    json_object: bool | None = None


@dataclass
class SamplingParams:
    temperature: float = 1.0
    max_tokens: Optional[int] = 16  # noqa: UP045 - compared with the type in vLLM
    n: int = 1
    logprobs: Optional[int] = None  # noqa: UP045
    ignore_eos: bool = False
    logit_bias: Any = None
    structured_outputs: StructuredOutputsParams | None = None
    output_kind: RequestOutputKind = RequestOutputKind.CUMULATIVE

    def __post_init__(self) -> None:
        if self.temperature < 0:
            raise ValueError(f"temperature must be non-negative, got {self.temperature}.")


# vLLM's classes have types as annotations, not texts.
SamplingParams.__annotations__ |= {
    "temperature": float,
    "max_tokens": Optional[int],  # noqa: UP045
    "n": int,
    "logprobs": Optional[int],  # noqa: UP045
    "ignore_eos": bool,
}
