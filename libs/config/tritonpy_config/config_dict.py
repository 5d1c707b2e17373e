"""Conversion of a configuration to JSON values, as Triton's HTTP endpoint returns it.

The endpoint is `/v2/models/<model>/config`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

from tritonpy_config.fields import enum_numbers, fields_of, is_map, map_parts
from tritonpy_protos.model_config_pb2 import ModelConfig

_EXACT = 1 << 53  # whole numbers below it are exact


def config_to_dict(config: ModelConfig) -> dict[str, Any]:
    """Return `config` as JSON-ready values, including defaults.

    Names and order are those of the .proto file. Messages and members of a oneof appear only if
    they are set. Enums are names. 64-bit integers are numbers; in `initial_state.dims` and
    `graph_spec` Triton prints them as strings. Floats without a JSON form are strings. The keys of
    maps are sorted, since maps have no order.
    """
    return _message(config)


def _message(message: Message) -> dict[str, Any]:
    return {
        field.name: _field(field, getattr(message, field.name))
        for field in fields_of(message).values()
        if not field.has_presence or message.HasField(field.name)
    }


def _field(field: FieldDescriptor, value: Any) -> Any:
    if is_map(field):
        _, inner = map_parts(field)
        return {str(key): _single(inner, value[key]) for key in sorted(value)}
    if field.is_repeated:
        return [_single(field, item) for item in value]
    return _single(field, value)


def _single(field: FieldDescriptor, value: Any) -> Any:
    if field.message_type is not None:
        return _message(value)
    if field.enum_type is not None:
        names = {number: name for name, number in enum_numbers(field).items()}
        return names.get(value, value)
    if field.cpp_type in {FieldDescriptor.CPPTYPE_FLOAT, FieldDescriptor.CPPTYPE_DOUBLE}:
        return _float(field, value)
    return value


def _float(field: FieldDescriptor, value: float) -> float | int | str:
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if field.cpp_type == FieldDescriptor.CPPTYPE_FLOAT:
        # A 32-bit value prints as 0.3; the same value in 64 bits would print as
        # 0.30000001192092896.
        value = float(str(np.float32(value)))
    whole = (
        value.is_integer()
        and abs(value) < _EXACT
        and math.copysign(1, value) == (-1 if value < 0 else 1)
    )
    return int(value) if whole else value  # 1, not 1.0; -0.0 stays a float
