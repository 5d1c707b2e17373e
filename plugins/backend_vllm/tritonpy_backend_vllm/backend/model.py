"""The entry point of a worker: a Python model on vLLM's engine.

Inputs, outputs, files, parameters and texts are those of Triton's vllm_backend.
"""

from __future__ import annotations

import json
import os
from typing import Any

import triton_python_backend_utils as pb_utils

from tritonpy_text_backend.contract import complete_config, error_response, optional_input
from tritonpy_vllm.engine import VllmEngine
from tritonpy_vllm.settings import adapters, check_devices, engine_arguments, flag

_UNHEALTHY = "Model is unavailable due to unhealthy vLLM engine"


class TritonPythonModel:
    """One instance: one engine, which batches the tokens of all requests itself."""

    @staticmethod
    def auto_complete_config(config: Any) -> Any:
        """Add the inputs and outputs of the backend to the configuration."""
        return complete_config(config, optional_input("image", "TYPE_STRING", -1))

    def initialize(self, args: dict[str, str]) -> None:
        """Start the engine. Raises the engine's error if it cannot start."""
        config = json.loads(args["model_config"])
        folder = pb_utils.get_model_dir()
        arguments = engine_arguments(folder)
        kind, device = args["model_instance_kind"], int(args["model_instance_device_id"])
        check_devices(arguments, kind)
        if kind == "GPU" and device >= 0:
            os.environ["CUDA_VISIBLE_DEVICES"] = str(device)
        self._name = args["model_name"]
        self._checks_health = flag(config, "ENABLE_VLLM_HEALTH_CHECK")
        self._is_healthy = True
        reports = flag(config, "REPORT_CUSTOM_METRICS") and not arguments.get("disable_log_stats")
        loggers = []
        if reports:
            from tritonpy_vllm.metrics import logger_factory

            loggers.append(logger_factory(self._name, args["model_version"]))
        self._engine = VllmEngine(self._name, arguments, adapters(arguments, folder), loggers)

    async def execute(self, requests: list[Any]) -> None:
        """Answer requests. Other requests are answered at the same time."""
        if self._checks_health and not await self._is_engine_healthy():
            for request in requests:
                request.get_response_sender().send(
                    error_response(_UNHEALTHY, pb_utils.TritonError.UNAVAILABLE),
                    flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL,
                )
            return
        await self._engine.answer(requests)

    def finalize(self) -> None:
        """Stop the engine."""
        self._engine.close()

    async def _is_engine_healthy(self) -> bool:
        """Return whether the engine is alive. A dead one unloads the model."""
        if self._is_healthy:
            try:
                await self._engine.check_health()
            except Exception as error:
                pb_utils.Logger.log_error(
                    f"[vllm] Engine is not healthy and model will be unloaded: {error!r}"
                )
                self._is_healthy = False
                pb_utils.unload_model(self._name)
        return self._is_healthy
