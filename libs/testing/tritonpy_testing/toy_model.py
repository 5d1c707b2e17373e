"""Models made of one Python function, for the toy engine."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tritonpy import Internal
from tritonpy_protos.model_config_pb2 import ModelConfig
from tritonpy_testing.parse import model_config

Arrays = Mapping[str, npt.NDArray[Any]]


@dataclass(frozen=True, slots=True)
class ToyModel:
    """A configuration, and a function that maps inputs to the outputs of each response."""

    config: ModelConfig
    function: Callable[[Arrays], Iterable[Arrays]]


def _repeat(inputs: Arrays) -> Iterable[Arrays]:
    return [{"OUT": np.array([number], np.int32)} for number in range(int(inputs["IN"].ravel()[0]))]


def _fail(_inputs: Arrays) -> Iterable[Arrays]:
    raise Internal("this model always fails")


def toy_models() -> list[ToyModel]:
    """Return one model of each kind.

    - `identity` returns its FP32 input `IN` [n] as `OUT`; `text` does so for BYTES.
    - `failing` always raises "this model always fails".
    - `repeat` is decoupled: its INT32 input `IN` [1] is the number of responses. Each has its index
      as `OUT` [1].
    """
    return [
        ToyModel(_config("identity", "TYPE_FP32", -1), lambda inputs: [{"OUT": inputs["IN"]}]),
        ToyModel(_config("text", "TYPE_STRING", -1), lambda inputs: [{"OUT": inputs["IN"]}]),
        ToyModel(_config("failing", "TYPE_FP32", -1), _fail),
        ToyModel(
            _config("repeat", "TYPE_INT32", 1, "model_transaction_policy { decoupled: true }"),
            _repeat,
        ),
    ]


def _config(name: str, datatype: str, dim: int, more: str = "") -> ModelConfig:
    return model_config(
        f'name: "{name}" platform: "toy" backend: "toy" {more} '
        f'input {{ name: "IN" data_type: {datatype} dims: {dim} }} output {{ name: '
        f'"OUT" data_type: {datatype} dims: {dim} }}'
    )
