"""Pure parsing of TensorFlow settings from a model configuration."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tritonpy import InvalidArgument
from tritonpy.config import (
    MOST_THREADS,
    parameter_bool,
    parameter_bytes,
    parameter_int,
    parameter_threads,
)

if TYPE_CHECKING:
    from tritonpy_protos.model_config_pb2 import ModelConfig


@dataclass(frozen=True, slots=True)
class ModelSettings:
    """Settings of one model; 0, None and "" keep the default of TensorFlow or the backend.

    With one inter-operator thread, the instance's own thread is used. `jit_level` is a name in
    TensorFlow's `OptimizerOptions.GlobalJitLevel`. `share_count` is the maximum number of instances
    per session (None: no limit). `memory_limit` is in bytes of GPU memory.
    """

    intra_op_threads: int
    inter_op_threads: int
    own_threads: bool
    jit_level: str
    graph_tag: str
    signature: str
    init_ops_file: str
    share_count: int | None
    keras_safe_mode: bool | None
    memory_limit: int | None
    op_libraries: tuple[str, ...]


def model_settings(config: ModelConfig, parameters: Mapping[str, str]) -> ModelSettings:
    """Return the settings in `config` and `parameters`.

    Raises `InvalidArgument` for invalid values.
    """
    inter_op = parameter_threads(
        "TF_NUM_INTER_THREADS", parameters.get("TF_NUM_INTER_THREADS", "0")
    )
    own_threads = _bool_or_none(parameters, "TF_USE_PER_SESSION_THREADS")
    limit = parameters.get("memory_limit_bytes")
    return ModelSettings(
        intra_op_threads=_count(config, parameters, "TF_NUM_INTRA_THREADS") or 0,
        inter_op_threads=inter_op,
        # A model with its own thread count needs its own thread pool.
        own_threads=inter_op > 1 if own_threads is None else own_threads,
        jit_level=_jit_level(config),
        graph_tag=parameters.get("TF_GRAPH_TAG", ""),
        signature=parameters.get("TF_SIGNATURE_DEF", ""),
        init_ops_file=parameters.get("TF_INIT_OPS_FILE", ""),
        share_count=_count(config, parameters, "MAX_SESSION_SHARE_COUNT", least=1),
        keras_safe_mode=_bool_or_none(parameters, "KERAS_SAFE_MODE"),
        memory_limit=None
        if limit is None
        else parameter_bytes("memory_limit_bytes", limit, least=1),
        op_libraries=tuple(config.model_operations.op_library_filename),
    )


def _jit_level(config: ModelConfig) -> str:
    level = config.optimization.graph.level
    if level == 0:
        return "DEFAULT"
    return "OFF" if level < 0 else "ON_1" if level == 1 else "ON_2"


def _bool_or_none(parameters: Mapping[str, str], key: str) -> bool | None:
    return parameter_bool(key, parameters[key]) if key in parameters else None


def _count(
    config: ModelConfig, parameters: Mapping[str, str], key: str, least: int = 0
) -> int | None:
    if key not in parameters:
        return None
    count = parameter_int(key, parameters[key], most=MOST_THREADS)
    if count < least:
        kind = "positive" if least else "non-negative"
        raise InvalidArgument(
            f"parameter '{key}' must be {kind} number for TensorFlow model '{config.name}'"
        )
    return count
