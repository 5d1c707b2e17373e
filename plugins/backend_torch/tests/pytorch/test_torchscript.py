from __future__ import annotations

from typing import Dict, List, Optional, Tuple  # noqa: UP035  # TorchScript reads these

import numpy as np
import pytest
import torch

from tritonpy import TritonError

IO = """
    input [{ name: "a" data_type: TYPE_FP32 dims: 2 }, { name: "b" data_type: TYPE_FP32 dims: 2 }]
    output { name: "OUT" data_type: TYPE_FP32 dims: 2 }
"""
UNBATCHED = 'name: "m" backend: "pytorch" '
PAIR = {"a": np.array([1, 2], np.float32), "b": np.array([10, 20], np.float32)}


class Minus(torch.nn.Module):
    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return a - b


class OfDict(torch.nn.Module):
    def forward(self, inputs: Dict[str, torch.Tensor]) -> Dict[str, torch.Tensor]:  # noqa: UP006
        return {"OUT": inputs["a"] - inputs["b"], "other": inputs["a"]}


class TwoDicts(torch.nn.Module):
    def forward(self, a: Dict[str, torch.Tensor], b: Dict[str, torch.Tensor]) -> torch.Tensor:  # noqa: UP006
        return a["x"] + b["x"]


class OfNumber(torch.nn.Module):
    def forward(self, a: torch.Tensor, b: int) -> torch.Tensor:
        return a + b


class Masked(torch.nn.Module):
    def forward(self, a: torch.Tensor, b: Optional[torch.Tensor] = None) -> torch.Tensor:  # noqa: UP045
        return a if b is None else a * b


class Texts(torch.nn.Module):
    def forward(self, words: List[str], x: torch.Tensor) -> Tuple[List[str], torch.Tensor]:  # noqa: UP006
        return [word + "!" for word in words], x


class Scalar(torch.nn.Module):
    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return (a + b).sum()


@pytest.fixture
def ask(models, load):
    """`ask(module, io, inputs)`: the output of the scripted module."""

    def run(module, io=IO, inputs=PAIR):
        models.script(module)
        with load(UNBATCHED + io) as harness:
            [[answer]] = harness.execute(harness.request(inputs))
        return answer

    return run


def refused(ask, module, io=IO):
    with pytest.raises(TritonError) as refusal:
        ask(module, io)
    return refusal.value.message


def values(answer):
    assert answer.error is None, answer.error
    return [tensor.numpy().tolist() for tensor in answer.outputs]


@pytest.mark.parametrize(("first", "second"), [("a", "b"), ("IN__0", "IN__1"), ("left", "right")])
def test_inputs_are_found_by_argument_number_or_order(ask, first, second):
    io = IO.replace('"a"', f'"{first}"').replace('"b"', f'"{second}"')
    assert values(ask(Minus(), io, {first: PAIR["a"], second: PAIR["b"]})) == [[-9, -18]]


def test_arguments_may_come_in_any_order(ask):
    swapped = IO.replace('"a"', '"?"').replace('"b"', '"a"').replace('"?"', '"b"')
    assert values(ask(Minus(), swapped)) == [[-9, -18]]


def test_a_dictionary_has_the_names_of_the_configuration_as_keys(ask):
    assert values(ask(OfDict())) == [[-9, -18]]


def test_two_dictionaries_are_refused(ask):
    assert refused(ask, TwoDicts()) == (
        "Multiple inputs of kind DictType were detected. Only a single input of type Dict(str, Tensor) is supported."
    )


def test_a_nontensor_argument_is_rejected(ask):
    assert refused(ask, OfNumber()) == (
        "An input of type 'int' was detected in the model. Only a single input of type Dict(str, Tensor) or input(s) of type Tensor are supported."
    )


def test_another_number_of_inputs_is_refused(ask):
    one = 'input { name: "a" data_type: TYPE_FP32 dims: 2 } output { name: "OUT" data_type: TYPE_FP32 dims: 2 }'
    assert (
        refused(ask, Minus(), one)
        == "unable to load model 'm', configuration expects 1 inputs, model provides 2"
    )


def test_an_argument_with_a_default_may_be_left_out(ask):
    optional = IO.replace(
        '"b" data_type: TYPE_FP32 dims: 2', '"b" data_type: TYPE_FP32 dims: 2 optional: true'
    )
    assert values(ask(Masked(), optional)) == [[10, 40]]
    assert values(ask(Masked(), optional, {"a": PAIR["a"]})) == [[1, 2]]


def test_texts_are_lists(ask):
    io = """
        input [{ name: "words" data_type: TYPE_STRING dims: -1 }, { name: "x" data_type: TYPE_FP32 dims: 2 }]
        output [{ name: "OUT__0" data_type: TYPE_STRING dims: -1 }, { name: "OUT__1" data_type: TYPE_FP32 dims: 2 }]
    """
    words = np.array([b"a", "é".encode()], object)
    assert values(ask(Texts(), io, {"words": words, "x": PAIR["a"]})) == [
        [b"a!", "é!".encode()],
        [1, 2],
    ]


def test_a_scalar_is_refused(ask):
    assert ask(Scalar()).error.message == "output 'OUT' is a scalar which is not supported."


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_script_that_was_saved_for_training_is_served_for_inference(ask, models, load):
    torch.manual_seed(0)

    class Dropping(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.drop = torch.nn.Dropout(0.9)

        def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
            return self.drop(a) + b

    path = models.script(Dropping())
    module = torch.jit.load(path)
    module.train()
    module.save(path)
    with load(UNBATCHED + IO) as harness:
        [[answer]] = harness.execute(harness.request(PAIR))
    assert values(answer) == [[11, 22]]
