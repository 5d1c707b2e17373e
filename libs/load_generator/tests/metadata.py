"""Descriptions of models and targets for tests."""

from __future__ import annotations

from tritonpy_load_generator.options import LoadOptions
from tritonpy_load_generator.target.metadata import (
    ModelDescription,
    ServerDescription,
    TargetDescription,
    TensorDescription,
)


def model(*inputs, batch=0, **more):
    return ModelDescription(
        "m",
        "",
        inputs,
        (TensorDescription("OUT", "FP32", (-1,)), TensorDescription("NUM", "INT32", (4,))),
        batch,
        **more,
    )


def target(description, binary=True):
    return TargetDescription(
        ServerDescription("toy", "1", ("binary_tensor_data",) if binary else ()), description
    )


def options(**more):
    return LoadOptions(model="m", **more)


INTS = TensorDescription("A", "INT32", (3,))
VARIED = TensorDescription("V", "FP32", (-1, 2))
TEXT = TensorDescription("T", "BYTES", (2,))
