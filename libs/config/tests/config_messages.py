"""Strategies for random model configurations, drawn from the message's descriptor."""

from __future__ import annotations

from math import isinf
from typing import Any

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message
from hypothesis import strategies as st

from tritonpy_config.fields import INTEGER_RANGES, enum_numbers, fields_of, is_map, map_parts
from tritonpy_protos.model_config_pb2 import ModelConfig

LETTERS = st.text(st.characters(codec="utf-8"), max_size=6)


def scalars(field: FieldDescriptor) -> st.SearchStrategy[Any]:
    if field.cpp_type in INTEGER_RANGES:
        return st.integers(*INTEGER_RANGES[field.cpp_type])
    if field.cpp_type == FieldDescriptor.CPPTYPE_FLOAT:
        # protobuf's own JSON reader takes the shortest text of the largest float for one that is
        # too large.
        return st.floats(width=32, allow_nan=False).filter(
            lambda value: abs(value) <= 3.4e38 or isinf(value)
        )
    if field.cpp_type == FieldDescriptor.CPPTYPE_DOUBLE:
        return st.floats(allow_nan=False)
    if field.cpp_type == FieldDescriptor.CPPTYPE_BOOL:
        return st.booleans()
    if field.cpp_type == FieldDescriptor.CPPTYPE_ENUM:
        return st.sampled_from(sorted(enum_numbers(field).values()))
    return LETTERS


def fill(draw: st.DrawFn, message: Message) -> None:
    known = list(fields_of(message).values())
    chosen = (
        draw(st.lists(st.sampled_from(known), max_size=4, unique_by=lambda field: field.name))
        if known
        else []
    )
    for field in chosen:
        target = getattr(message, field.name)
        if is_map(field):
            key, value = map_parts(field)
            for name in draw(st.lists(scalars(key), max_size=2)):
                if value.message_type is None:
                    target[name] = draw(scalars(value))
                else:
                    fill(draw, target[name])
        elif field.is_repeated and field.message_type is not None:
            for _ in range(draw(st.integers(0, 2))):
                fill(draw, target.add())
        elif field.is_repeated:
            target.extend(draw(st.lists(scalars(field), max_size=3)))
        elif field.message_type is not None:
            target.SetInParent()
            fill(draw, target)
        else:
            setattr(message, field.name, draw(scalars(field)))


@st.composite
def model_configs(draw: st.DrawFn) -> ModelConfig:
    config = ModelConfig()
    fill(draw, config)
    return config
