"""The engine. Each word of the prompt is a token. Some words have a meaning:

`forever` repeats itself until the request is aborted, `broken` fails, `dead` ends the process,
`sick` makes the engine unhealthy.
"""

from __future__ import annotations

import asyncio
import os
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from vllm.sampling_params import RequestOutputKind


def _log(text: str) -> None:
    with open(os.environ["FAKE_VLLM_LOG"], "a", encoding="utf-8") as file:
        file.write(text + " ")


@dataclass
class Completion:
    text: str
    token_ids: list[int]
    finish_reason: str | None
    cumulative_logprob: float | None = None
    logprobs: Any = None


@dataclass
class Output:
    prompt: str | None
    prompt_token_ids: list[int]
    outputs: list[Completion]
    finished: bool
    num_cached_tokens: int = 3


class Tokenizer:
    """Each character is a token; 1 is the token before a text."""

    def encode(self, text: str, add_special_tokens: bool) -> list[int]:
        return [1] * add_special_tokens + [ord(each) for each in text]

    def decode(self, tokens: list[int]) -> str:
        return "".join(map(chr, tokens))

    def convert_ids_to_tokens(self, tokens: list[int]) -> list[str]:
        return [chr(each) for each in tokens]


@dataclass
class AsyncLLM:
    args: Any
    loggers: list[Any]
    sick: bool = False
    aborted: list[str] = field(default_factory=list)

    @classmethod
    def from_engine_args(cls, args: Any, stat_loggers: Any = None) -> AsyncLLM:
        if args.model == "missing":
            raise ValueError("the model 'missing' does not exist")
        config = SimpleNamespace(model_config=SimpleNamespace(max_model_len=args.max_model_len))
        return cls(args, [make(config, 0) for make in stat_loggers or ()])

    async def get_supported_tasks(self) -> tuple[str, ...]:
        return (self.args.task,)

    async def check_health(self) -> None:
        if self.sick:
            raise RuntimeError("the engine is sick")

    async def generate(self, prompt: Any, sampling: Any, request_id: str, lora_request: Any = None):
        if isinstance(prompt, dict):
            text, ids = None, prompt["prompt_token_ids"]
            words = [f"#{each}" for each in ids]
        else:
            text, words = prompt, prompt.split()
            ids = list(range(len(words)))
        if "dead" in words:
            os._exit(3)
        if "sick" in words:
            self.sick = True
        if "broken" in words:
            raise RuntimeError("the engine is broken")
        if lora_request is not None:
            words = [f"{lora_request.lora_name}@{lora_request.lora_path}", *words]
        if "options" in words:
            words = [repr(sampling.logit_bias), repr(sampling.structured_outputs)]
        words = words[: sampling.max_tokens]
        delta = sampling.output_kind is RequestOutputKind.DELTA
        is_finished = False
        _log("began")
        try:
            count = 0
            while "forever" in words:
                await asyncio.sleep(0.001)
                count += 1
                if delta:
                    yield Output(text, ids, [Completion("forever ", [1], None)], False)
            for number, word in enumerate(words):
                await asyncio.sleep(0)
                last = number == len(words) - 1
                if last:
                    is_finished = True
                    self._record(len(ids), len(words))
                if delta:
                    yield Output(text, ids, [self._part(word, sampling, last)], last)
            if not delta:
                whole = self._part(" ".join(words), sampling, True)
                whole.token_ids = list(range(len(words)))
                yield Output(text, ids, [whole] * sampling.n, True)
        except (asyncio.CancelledError, GeneratorExit):
            if not is_finished:
                _log("aborted")
            raise

    def _part(self, word: str, sampling: Any, last: bool) -> Completion:
        chosen = SimpleNamespace(logprob=-0.5, rank=1, decoded_token=word)
        logprobs = None if sampling.logprobs is None else [{7: chosen}]
        return Completion(word + " ", [7], "stop" if last else None, -0.5, logprobs)

    def _record(self, prompt: int, generated: int) -> None:
        request = SimpleNamespace(
            finish_reason="stop", e2e_latency=0.5, num_prompt_tokens=prompt,
            num_generation_tokens=generated, queued_time=0.1, prefill_time=0.1, decode_time=0.3,
        )  # fmt: skip
        step = SimpleNamespace(
            num_prompt_tokens=prompt, num_generation_tokens=generated, num_preempted_reqs=0,
            time_to_first_tokens_iter=[0.2], inter_token_latencies_iter=[0.02] * (generated - 1),
            n_params_iter=[1], finished_requests=[request],
        )  # fmt: skip
        scheduler = SimpleNamespace(
            num_running_reqs=2, num_waiting_reqs=1, kv_cache_usage=0.25,
            prefix_cache_stats=SimpleNamespace(queries=10, hits=4),
        )  # fmt: skip
        for logger in self.loggers:
            logger.record(scheduler, step)

    async def encode(self, prompt: Any, pooling: Any, request_id: str):
        import numpy as np

        ids = prompt["prompt_token_ids"] if isinstance(prompt, dict) else prompt.split()
        data = np.arange(pooling.dimensions or 4, dtype=np.float32)
        yield SimpleNamespace(
            finished=True, prompt_token_ids=list(ids), outputs=SimpleNamespace(data=data)
        )

    def get_tokenizer(self) -> Tokenizer:
        return Tokenizer()

    def shutdown(self) -> None:
        pass
