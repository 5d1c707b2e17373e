from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from tritonpy_worker import model_object
from tritonpy_worker.coroutines import Coroutines
from tritonpy_worker.failure import ModelContractError


class Whole:
    def initialize(self, args: dict[str, str]) -> None:
        self.args = args

    def finalize(self) -> None:
        self.args = {}


@pytest.fixture
def coroutines() -> Iterator[Coroutines]:
    made = Coroutines()
    yield made
    made.stop()


def test_a_model_gets_its_own_copy_of_the_arguments() -> None:
    given = {"model_name": "m"}
    model = model_object.make(SimpleNamespace(TritonPythonModel=Whole), given)
    model.args["more"] = "1"
    assert given == {"model_name": "m"}
    model_object.finalize(model)
    assert model.args == {}


def test_every_method_is_optional() -> None:
    model = model_object.make(SimpleNamespace(TritonPythonModel=object), {})
    model_object.finalize(model)
    assert not model_object.has_ready_check(model)


async def later(answer: Any) -> Any:
    return answer


@pytest.mark.parametrize("answer", [True, False])
def test_is_ready_may_be_a_function_or_a_coroutine(coroutines: Coroutines, answer: bool) -> None:
    for model in (
        SimpleNamespace(is_ready=lambda: answer),
        SimpleNamespace(is_ready=lambda: later(answer)),
    ):
        assert model_object.has_ready_check(model)
        assert model_object.is_ready(model, coroutines) is answer


@pytest.mark.parametrize("answer", [None, 1, "yes"])
def test_is_ready_must_return_a_boolean(coroutines: Coroutines, answer: Any) -> None:
    with pytest.raises(ModelContractError, match="must return a boolean"):
        model_object.is_ready(SimpleNamespace(is_ready=lambda: answer), coroutines)
