from __future__ import annotations

import msgspec
import numpy as np
import pytest

from tritonpy.model.cached_response import from_tensors, to_tensors
from tritonpy_types import InferResponse, Tensor

OUT = Tensor.from_numpy("OUT", np.array([1], np.int32))


def test_a_response_without_parameters_is_its_outputs() -> None:
    assert to_tensors(InferResponse([OUT])) == [OUT]
    assert list(from_tensors([OUT]).outputs) == [OUT]


def test_parameters_of_every_type_are_restored() -> None:
    parameters = {"a": 'é"', "b": 2**63, "c": True, "d": 0.1, "e": -1}
    kept = to_tensors(InferResponse([OUT], parameters=parameters))
    assert kept is not None
    found = from_tensors(kept)
    assert (found.outputs, found.parameters) == ([OUT], parameters)
    assert [type(value) for value in found.parameters.values()] == [str, int, bool, float, int]


def test_a_response_without_outputs_is_restored() -> None:
    assert list(from_tensors([]).outputs) == []


def test_an_output_outside_host_memory_is_not_stored() -> None:
    assert (
        to_tensors(InferResponse([OUT, Tensor("G", "FP32", (1,), object(), device=(2, 0))])) is None
    )


def test_invalid_parameters_raise() -> None:
    data = np.frombuffer(b"{", np.uint8)
    with pytest.raises(msgspec.DecodeError):
        from_tensors([Tensor("", "UINT8", data.shape, data)])
