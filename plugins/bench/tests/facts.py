"""Models as the bench sees them."""

from __future__ import annotations

from tritonpy_bench.options import BenchOptions
from tritonpy_bench.target.facts import ModelFacts, ServerFacts, TargetFacts, TensorFacts


def model(*inputs, batch=0, **more):
    return ModelFacts(
        "m", "", inputs, (TensorFacts("OUT", "FP32", (-1,)), TensorFacts("NUM", "INT32", (4,))), batch, **more
    )


def target(facts, binary=True):
    return TargetFacts(ServerFacts("toy", "1", ("binary_tensor_data",) if binary else ()), facts)


def options(**more):
    return BenchOptions(model="m", **more)


INTS = TensorFacts("A", "INT32", (3,))
VARIED = TensorFacts("V", "FP32", (-1, 2))
TEXT = TensorFacts("T", "BYTES", (2,))
