"""The entry point of a worker: a GGUF file on llama.cpp's engine.

Inputs and outputs are those of Triton's vllm_backend, with further ones for tokens and ranks.
"""

from __future__ import annotations

import json
from typing import Any

import triton_python_backend_utils as pb_utils

from tritonpy_llamacpp.engine import LlamaEngine
from tritonpy_llamacpp.settings import read_settings, task_of
from tritonpy_text_backend.contract import (
    EMBEDDING_REQUEST,
    RERANK_REQUEST,
    complete_config,
    optional_input,
)
from tritonpy_text_backend.metrics import GenerationMetrics

# Figures that llama.cpp does not have.
_NOT_MEASURED = frozenset({"kv_cache_usage_perc", "num_preemptions_total", "request_params_n"})


class TritonPythonModel:
    """One instance: one engine, which batches the tokens of all requests itself."""

    @staticmethod
    def auto_complete_config(config: Any) -> Any:
        """Add the inputs and outputs of the backend to the configuration."""
        task = task_of(config.as_dict())
        inputs_of_tasks = {
            "generate": {"text_input", "input_ids", "sampling_parameters", "stream"},
            "embed": {EMBEDDING_REQUEST},
            "rerank": {RERANK_REQUEST},
        }
        omitted = {
            name for other, names in inputs_of_tasks.items() if other != task for name in names
        }
        rerank = optional_input(RERANK_REQUEST, "TYPE_STRING", 1)
        return complete_config(config, rerank, omitted=omitted)

    def initialize(self, args: dict[str, str]) -> None:
        """Load the model. Raises InvalidLlamaSettings."""
        config = json.loads(args["model_config"])
        settings = read_settings(pb_utils.get_model_dir(), config)
        labels = {"model": args["model_name"], "version": args["model_version"]}
        reports = config.get("parameters", {}).get("REPORT_CUSTOM_METRICS", {})
        prefixes = ["nv_generation_"]
        if str(reports.get("string_value", "")).lower() == "true":
            prefixes.append("vllm:")
        metrics = [
            GenerationMetrics(labels, settings.context, prefix, omitted=_NOT_MEASURED)
            for prefix in prefixes
        ]
        self._engine = LlamaEngine(settings, metrics)

    async def execute(self, requests: list[Any]) -> None:
        """Answer requests. Other requests are answered at the same time."""
        await self._engine.answer(requests)

    def finalize(self) -> None:
        """Stop the engine."""
        self._engine.close()
