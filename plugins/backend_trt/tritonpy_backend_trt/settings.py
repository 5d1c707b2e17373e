"""Pure parsing of instance settings from a model configuration."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tritonpy import InvalidArgument, Unsupported
from tritonpy.config import parameter_bool, parameter_bytes
from tritonpy_protos.model_config_pb2 import ModelOptimizationPolicy

if TYPE_CHECKING:
    from tritonpy_protos.model_config_pb2 import ModelConfig

AUTO = "auto"
_STRATEGIES = ("STATIC", "ON_PROFILE_CHANGE")


@dataclass(frozen=True, slots=True)
class ModelSettings:
    """Settings of one model.

    `strategy` is a name in `ExecutionContextAllocationStrategy`. `streaming_budget` is in bytes,
    `auto`, or None to keep all weights on the GPU. `memory_limit` limits the bytes that TensorRT
    allocates on each GPU; None means no limit. `priority` is MAX, MIN or DEFAULT.
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
        """Number of buffer sets: two if an execution may start before the previous one is over."""
        return 2 if self.eager or self.output_stream else 1


def model_settings(config: ModelConfig, parameters: Mapping[str, str]) -> ModelSettings:
    """Return the settings in `config` and `parameters`.

    Raises `InvalidArgument` for invalid values, `Unsupported` for unsupported features.
    """
    _check_supported(config, parameters)
    optimization = config.optimization
    return ModelSettings(
        strategy=_strategy(config, parameters),
        streaming_budget=_streaming_budget(parameters.get("weight_streaming_budget")),
        memory_limit=_memory_limit(parameters.get("memory_limit_bytes")),
        priority=ModelOptimizationPolicy.ModelPriority.Name(optimization.priority).removeprefix(
            "PRIORITY_"
        ),
        eager=optimization.eager_batching,
        output_stream=optimization.cuda.output_copy_stream,
        busy_wait=optimization.cuda.busy_wait_events,
    )


def _check_supported(config: ModelConfig, parameters: Mapping[str, str]) -> None:
    if "precision" in parameters:
        raise InvalidArgument(
            f"unable to load model '{config.name}', parameter 'precision' is not supported by "
            "backend 'tensorrt': the precision of an "
            "engine is set when it is built (trtexec --fp16, --bf16, --int8, --fp8)"
        )
    if parameter_bool("enable_multi_device", parameters.get("enable_multi_device", "0")):
        raise Unsupported(
            f"unable to load model '{config.name}', multi-device engines (enable_multi_device) "
            "are not "
            "supported: use one instance per GPU (gpus: [0, 1])"
        )


def _strategy(config: ModelConfig, parameters: Mapping[str, str]) -> str:
    value = parameters.get("execution_context_allocation_strategy", _STRATEGIES[0])
    if value not in _STRATEGIES:
        raise InvalidArgument(
            "Invalid value for 'execution_context_allocation_strategy': "
            f"'{value}' for model instance '{config.name}'. "
            "Supported values are 'STATIC' and 'ON_PROFILE_CHANGE'."
        )
    return value


def _streaming_budget(value: str | None) -> int | str | None:
    if value is None or value.lower() == AUTO:
        return value and AUTO
    try:
        return parameter_bytes("weight_streaming_budget", value)
    except InvalidArgument as error:
        raise InvalidArgument(f"{error.message}, or '{AUTO}'") from None


def _memory_limit(value: str | None) -> int | None:
    return None if value is None else parameter_bytes("memory_limit_bytes", value, least=1)
