"""What the parameters of a model's configuration ask for. Pure: OpenVINO is not needed to read them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tritonpy import InvalidArgument, Unsupported, parameter_choice, parameter_threads

PRECISIONS = {"fp32": "f32", "bf16": "bf16", "fp16": "f16"}
CPU_EXTENSION = "CPU_EXTENSION_PATH"
_HINTS = ("latency", "throughput", "cumulative_throughput")
_SWITCHES = {"yes": True, "no": False, "": False}

Properties = Mapping[str, str | int]


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of one model.

    `device` is the one that the configuration names, in capitals, empty where it names none; `properties` are OpenVINO's own, by its names;
    `precision` is the one that the device must be able to compute in, empty where none was asked for. A model with `fixed_batch` is
    compiled for batches of exactly `max_batch_size` rows, and `pads` fills smaller ones; with `reshapes` its inputs take the configured shapes.
    """

    device: str
    cpu_extension: str
    properties: Properties
    precision: str
    fixed_batch: bool
    pads: bool
    reshapes: bool


def settings_of(parameters: Mapping[str, str]) -> Settings:
    """Read the settings; raises InvalidArgument, for Triton's own parameters with Triton's texts, Unsupported for a limit of memory."""
    if "memory_limit_bytes" in parameters:
        raise Unsupported("parameter 'memory_limit_bytes' cannot be kept: OpenVINO bounds no device's memory")
    pads = _switch(parameters, "ENABLE_BATCH_PADDING")
    return Settings(
        device=parameters.get("TARGET_DEVICE", "").upper(),
        cpu_extension=parameters.get(CPU_EXTENSION, ""),
        properties=_properties(parameters),
        precision=_precision(parameters),
        fixed_batch=_switch(parameters, "SKIP_OV_DYNAMIC_BATCHSIZE") or pads,
        pads=pads,
        reshapes=_switch(parameters, "RESHAPE_IO_LAYERS"),
    )


def _properties(parameters: Mapping[str, str]) -> Properties:
    found: dict[str, str | int] = {}
    for key in ("INFERENCE_NUM_THREADS", "COMPILATION_NUM_THREADS"):
        value = parameters.get(key, "").lower()
        if value:
            found[key] = _count(key, value, "a non-negative number")
    if _hints_bf16(parameters):
        found["INFERENCE_PRECISION_HINT"] = PRECISIONS["bf16"]
    streams = parameters.get("NUM_STREAMS", "").lower()
    if streams in {"auto", "numa"}:
        found["NUM_STREAMS"] = streams.upper()
    elif streams:
        found["NUM_STREAMS"] = _count("NUM_STREAMS", streams, "either AUTO/NUMA/<int_value>")
    hint = parameters.get("PERFORMANCE_HINT", "").lower()
    if hint and hint not in _HINTS:
        raise _unexpected("PERFORMANCE_HINT", "LATENCY/THROUGHPUT/CUMULATIVE_THROUGHPUT", hint)
    if hint:
        found["PERFORMANCE_HINT"] = hint.upper()
    precision = _precision(parameters)
    if precision:
        found["INFERENCE_PRECISION_HINT"] = PRECISIONS[precision]
    return found


def _count(key: str, value: str, expected: str) -> int:
    if not (value.isascii() and value.isdigit()):
        raise _unexpected(key, expected, value)
    return parameter_threads(key, value)


def _hints_bf16(parameters: Mapping[str, str]) -> bool:
    value = parameters.get("HINT_BF16", "").lower()
    if value not in {"", "yes"}:
        raise _unexpected("HINT_BF16", "YES", value)
    return value == "yes"


def _precision(parameters: Mapping[str, str]) -> str:
    given = parameters.get("precision", "")
    chosen = given and parameter_choice("precision", given, PRECISIONS)
    if chosen not in {"", "bf16"} and _hints_bf16(parameters):
        raise InvalidArgument(f"the parameters 'HINT_BF16' and 'precision' contradict each other: YES and {chosen}")
    return chosen


def _switch(parameters: Mapping[str, str], key: str) -> bool:
    value = parameters.get(key, "").lower()
    if value not in _SWITCHES:
        raise _unexpected(key, "YES or NO", value)
    return _SWITCHES[value]


def _unexpected(key: str, expected: str, value: str) -> InvalidArgument:
    return InvalidArgument(f"expected the parameter '{key}' to be {expected}, got {value}")
