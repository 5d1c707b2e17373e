"""Pure parsing of PyTorch settings from model parameters."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tritonpy import InvalidArgument
from tritonpy.config import parameter_bool, parameter_bytes, parameter_choice, parameter_threads

PRECISIONS = ("fp32", "bf16", "fp16")
COMPILE = "TORCH_COMPILE_OPTIONAL_PARAMETERS"
_INTRA_OP = ("INTRA_OP_THREAD_COUNT", "NUM_THREADS")
_INTER_OP = ("INTER_OP_THREAD_COUNT", "NUM_INTEROP_THREADS")


@dataclass(frozen=True, slots=True)
class ModelSettings:
    """Settings of one model; None keeps PyTorch's switch, and 0 its default thread count.

    `compile` holds the keyword arguments for `torch.compile`, or None if not set. `model_class` is
    empty if the file determines the class. `memory_limit` is in bytes, 0 for none.
    """

    optimized_execution: bool
    inference_mode: bool
    cudnn: bool
    weight_sharing: bool
    cache_cleaning: bool
    tensor_fuser: bool | None
    jit_profiling: bool | None
    jit_executor: bool | None
    intra_op_threads: int
    inter_op_threads: int
    compile: Mapping[str, Any] | None
    precision: str
    channels_last: bool
    allow_pickles: bool
    model_class: str
    memory_limit: int


def model_settings(parameters: Mapping[str, str], allow_pickles: bool = False) -> ModelSettings:
    """Return the settings in `parameters`; `allow_pickles` is the backend's option.

    Raises `InvalidArgument` for invalid values.
    """
    return ModelSettings(
        optimized_execution=not _switch(parameters, "DISABLE_OPTIMIZED_EXECUTION", default=False),
        inference_mode=_switch(parameters, "INFERENCE_MODE", default=True),
        cudnn=not _switch(parameters, "DISABLE_CUDNN", default=False),
        weight_sharing=_switch(parameters, "ENABLE_WEIGHT_SHARING", default=False),
        cache_cleaning=_switch(parameters, "ENABLE_CACHE_CLEANING", default=False),
        tensor_fuser=_bool_or_none(parameters, "ENABLE_TENSOR_FUSER"),
        jit_profiling=_bool_or_none(parameters, "ENABLE_JIT_PROFILING"),
        jit_executor=_bool_or_none(parameters, "ENABLE_JIT_EXECUTOR"),
        intra_op_threads=_threads(parameters, _INTRA_OP),
        inter_op_threads=_threads(parameters, _INTER_OP),
        compile=_compile(parameters),
        precision=parameter_choice(
            "precision", parameters.get("precision", PRECISIONS[0]), PRECISIONS
        ),
        channels_last=_switch(parameters, "CHANNELS_LAST", default=False),
        allow_pickles=_switch(parameters, "ALLOW_PICKLES", default=allow_pickles),
        model_class=parameters.get("MODEL_CLASS", ""),
        memory_limit=_memory_limit(parameters),
    )


def _bool_or_none(parameters: Mapping[str, str], key: str) -> bool | None:
    return parameter_bool(key, parameters[key]) if key in parameters else None


def _switch(parameters: Mapping[str, str], key: str, default: bool) -> bool:
    given = _bool_or_none(parameters, key)
    return default if given is None else given


def _threads(parameters: Mapping[str, str], keys: tuple[str, ...]) -> int:
    return next((parameter_threads(key, parameters[key]) for key in keys if key in parameters), 0)


def _compile(parameters: Mapping[str, str]) -> Mapping[str, Any] | None:
    if COMPILE not in parameters:
        return None
    try:
        found = json.loads(parameters[COMPILE])
    except ValueError as error:
        raise InvalidArgument(f"parameter '{COMPILE}' is not valid JSON: {error}") from None
    if not isinstance(found, dict):
        raise InvalidArgument(
            f"parameter '{COMPILE}' must be a JSON object, such as {{\"dynamic\": true}}"
        )
    if "model" in found:
        raise InvalidArgument("'model' is not an optional parameter for 'torch.compile'")
    return found


def _memory_limit(parameters: Mapping[str, str]) -> int:
    given = parameters.get("memory_limit_bytes")
    return 0 if given is None else parameter_bytes("memory_limit_bytes", given, least=1)
