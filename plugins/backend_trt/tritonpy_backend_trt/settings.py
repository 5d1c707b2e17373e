"""What a model's configuration asks of an instance, beside its tensors. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tritonpy import InvalidArgument, Unsupported, parameter_bool, parameter_bytes
from tritonpy_protos.model_config_pb2 import ModelOptimizationPolicy

if TYPE_CHECKING:
    from tritonpy_protos.model_config_pb2 import ModelConfig

AUTO = "auto"
_STRATEGIES = ("STATIC", "ON_PROFILE_CHANGE")


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of one model.

    `strategy` is the name of an ExecutionContextAllocationStrategy; `streaming_budget` is in bytes, or `auto`; None leaves all weights on the GPU.
    `memory_limit` bounds the bytes that TensorRT allocates on each GPU; None does not. `priority` is MAX, MIN or DEFAULT.
    """

    strategy: str
    streaming_budget: int | str | None
    memory_limit: int | None
    priority: str
    eager: bool
    output_stream: bool
    busy_wait: bool

    @property
    def buffer_sets(self) -> int:
        """Two where an execution may begin before the one before it is over."""
        return 2 if self.eager or self.output_stream else 1


def settings_of(config: ModelConfig, parameters: Mapping[str, str]) -> Settings:
    """Read the settings; raises InvalidArgument for a value that is none, Unsupported for what cannot be had."""
    _refuse(config, parameters)
    optimization = config.optimization
    return Settings(
        strategy=_strategy(config, parameters),
        streaming_budget=_budget(parameters.get("weight_streaming_budget")),
        memory_limit=_memory_limit(parameters.get("memory_limit_bytes")),
        priority=ModelOptimizationPolicy.ModelPriority.Name(optimization.priority).removeprefix("PRIORITY_"),
        eager=optimization.eager_batching,
        output_stream=optimization.cuda.output_copy_stream,
        busy_wait=optimization.cuda.busy_wait_events,
    )


def _refuse(config: ModelConfig, parameters: Mapping[str, str]) -> None:
    if "precision" in parameters:
        raise InvalidArgument(
            f"unable to load model '{config.name}', parameter 'precision' has no values for backend 'tensorrt': the precision of an "
            "engine is chosen when it is built (trtexec --fp16, --bf16, --int8, --fp8)"
        )
    if parameter_bool("enable_multi_device", parameters.get("enable_multi_device", "0")):
        raise Unsupported(
            f"unable to load model '{config.name}', engines that are spread over several GPUs (enable_multi_device) are not "
            "supported: give each GPU an instance of its own (gpus: [0, 1])"
        )


def _strategy(config: ModelConfig, parameters: Mapping[str, str]) -> str:
    value = parameters.get("execution_context_allocation_strategy", _STRATEGIES[0])
    if value not in _STRATEGIES:
        raise InvalidArgument(
            f"Invalid value for 'execution_context_allocation_strategy': '{value}' for model instance '{config.name}'. "
            "Supported values are 'STATIC' and 'ON_PROFILE_CHANGE'."
        )
    return value


def _budget(value: str | None) -> int | str | None:
    if value is None or value.lower() == AUTO:
        return value and AUTO
    try:
        return parameter_bytes("weight_streaming_budget", value)
    except InvalidArgument as error:
        raise InvalidArgument(f"{error.message}, or '{AUTO}'") from None


def _memory_limit(value: str | None) -> int | None:
    return None if value is None else parameter_bytes("memory_limit_bytes", value, least=1)
