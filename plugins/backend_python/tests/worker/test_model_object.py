from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from tritonpy_worker import model_object
from tritonpy_worker.coroutines import Coroutines
from tritonpy_worker.failure import Refused


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


def test_a_model_is_initialized_with_arguments_that_are_its_own() -> None:
    given = {"model_name": "m"}
    model = model_object.make(SimpleNamespace(TritonPythonModel=Whole), given)
    model.args["more"] = "1"
    assert given == {"model_name": "m"}
    model_object.finalize(model)
    assert model.args == {}


def test_every_method_may_be_missing() -> None:
    model = model_object.make(SimpleNamespace(TritonPythonModel=object), {})
    model_object.finalize(model)
    assert not model_object.asks_ready(model)


async def later(answer: Any) -> Any:
    return answer


@pytest.mark.parametrize("answer", [True, False])
def test_a_model_says_whether_it_is_ready_at_once_or_in_a_coroutine(coroutines: Coroutines, answer: bool) -> None:
    for model in (SimpleNamespace(is_ready=lambda: answer), SimpleNamespace(is_ready=lambda: later(answer))):
        assert model_object.asks_ready(model)
        assert model_object.is_ready(model, coroutines) is answer


@pytest.mark.parametrize("answer", [None, 1, "yes"])
def test_anything_but_true_and_false_is_refused(coroutines: Coroutines, answer: Any) -> None:
    with pytest.raises(Refused, match="must return a boolean"):
        model_object.is_ready(SimpleNamespace(is_ready=lambda: answer), coroutines)
