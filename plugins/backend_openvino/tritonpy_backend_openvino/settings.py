"""Pure parsing of OpenVINO settings from model parameters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tritonpy import InvalidArgument, Unsupported
from tritonpy.config import parameter_choice, parameter_threads

PRECISIONS = {"fp32": "f32", "bf16": "bf16", "fp16": "f16"}
CPU_EXTENSION = "CPU_EXTENSION_PATH"
_HINTS = ("latency", "throughput", "cumulative_throughput")
_SWITCHES = {"yes": True, "no": False, "": False}

Properties = Mapping[str, str | int]


@dataclass(frozen=True, slots=True)
class ModelSettings:
    """Settings of one model.

    `device` is the configured device in capitals, or empty. `properties` are OpenVINO properties by
    name. `precision` is the precision that the device must support, or empty. A model with
    `fixed_batch` is compiled for batches of exactly `max_batch_size` rows, and `pad_batches` pads
    smaller ones. With `reshape_inputs`, the inputs get the configured shapes.
    """

    device: str
    cpu_extension: str
    properties: Properties
    precision: str
    fixed_batch: bool
    pad_batches: bool
    reshape_inputs: bool


def model_settings(parameters: Mapping[str, str]) -> ModelSettings:
    """Return the settings in `parameters`.

    Raises `InvalidArgument` for invalid values, with Triton's texts for Triton's parameters, and
    `Unsupported` for a memory limit.
    """
    if "memory_limit_bytes" in parameters:
        raise Unsupported(
            "parameter 'memory_limit_bytes' is not supported: OpenVINO cannot limit device memory"
        )
    pad_batches = _parse_switch(parameters, "ENABLE_BATCH_PADDING")
    return ModelSettings(
        device=parameters.get("TARGET_DEVICE", "").upper(),
        cpu_extension=parameters.get(CPU_EXTENSION, ""),
        properties=_properties(parameters),
        precision=_precision(parameters),
        fixed_batch=_parse_switch(parameters, "SKIP_OV_DYNAMIC_BATCHSIZE") or pad_batches,
        pad_batches=pad_batches,
        reshape_inputs=_parse_switch(parameters, "RESHAPE_IO_LAYERS"),
    )


def _properties(parameters: Mapping[str, str]) -> Properties:
    found: dict[str, str | int] = {}
    for key in ("INFERENCE_NUM_THREADS", "COMPILATION_NUM_THREADS"):
        value = parameters.get(key, "").lower()
        if value:
            found[key] = _count(key, value, "a non-negative number")
    if _has_bf16_hint(parameters):
        found["INFERENCE_PRECISION_HINT"] = PRECISIONS["bf16"]
    streams = parameters.get("NUM_STREAMS", "").lower()
    if streams in {"auto", "numa"}:
        found["NUM_STREAMS"] = streams.upper()
    elif streams:
        found["NUM_STREAMS"] = _count("NUM_STREAMS", streams, "either AUTO/NUMA/<int_value>")
    hint = parameters.get("PERFORMANCE_HINT", "").lower()
    if hint and hint not in _HINTS:
        raise _unexpected_value(
            "PERFORMANCE_HINT", "LATENCY/THROUGHPUT/CUMULATIVE_THROUGHPUT", hint
        )
    if hint:
        found["PERFORMANCE_HINT"] = hint.upper()
    precision = _precision(parameters)
    if precision:
        found["INFERENCE_PRECISION_HINT"] = PRECISIONS[precision]
    return found


def _count(key: str, value: str, expected: str) -> int:
    if not (value.isascii() and value.isdigit()):
        raise _unexpected_value(key, expected, value)
    return parameter_threads(key, value)


def _has_bf16_hint(parameters: Mapping[str, str]) -> bool:
    value = parameters.get("HINT_BF16", "").lower()
    if value not in {"", "yes"}:
        raise _unexpected_value("HINT_BF16", "YES", value)
    return value == "yes"


def _precision(parameters: Mapping[str, str]) -> str:
    given = parameters.get("precision", "")
    chosen = given and parameter_choice("precision", given, PRECISIONS)
    if chosen not in {"", "bf16"} and _has_bf16_hint(parameters):
        raise InvalidArgument(
            f"the parameters 'HINT_BF16' and 'precision' contradict each other: YES and {chosen}"
        )
    return chosen


def _parse_switch(parameters: Mapping[str, str], key: str) -> bool:
    value = parameters.get(key, "").lower()
    if value not in _SWITCHES:
        raise _unexpected_value(key, "YES or NO", value)
    return _SWITCHES[value]


def _unexpected_value(key: str, expected: str, value: str) -> InvalidArgument:
    return InvalidArgument(f"expected the parameter '{key}' to be {expected}, got {value}")
