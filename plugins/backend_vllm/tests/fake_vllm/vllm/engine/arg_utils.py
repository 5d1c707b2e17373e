"""The arguments of the engine."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class AsyncEngineArgs:
    """The arguments that the tests use. Unknown ones raise TypeError, as in vLLM."""

    model: str = "none"
    tokenizer: str | None = None
    enable_lora: bool | str = False
    tensor_parallel_size: int = 1
    max_model_len: int = 100
    disable_log_stats: bool = False
    task: str = "generate"
