from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

import numpy as np
import pytest

from core.tests.frontend_processes.linked import linked
from tritonpy.api.engine import Engine
from tritonpy.api.engine_in_front import EngineInFront
from tritonpy.api.operation import OperationCall
from tritonpy.errors import Cancelled, DecoupledRefused
from tritonpy.testing.contracts.engine import EngineContract
from tritonpy.testing.toy_engine import ToyEngine
from tritonpy.testing.witness import Witness
from tritonpy.types import InferRequest, Tensor


@contextmanager
def connected(engine: Engine) -> Iterator[Engine]:
    with linked(engine) as (_, frontend):
        yield frontend.engine


class TestFrontendEngine(EngineContract):
    def connect(self, engine: Engine) -> AbstractContextManager[Engine]:
        return connected(engine)


class Asked(EngineInFront):
    """Counts what is asked of configurations and metadata."""

    def __init__(self, engine: Engine) -> None:
        super().__init__(engine)
        self.asked: list[str] = []
        self.loaded: list[object] = []

    def model_config(self, name: str, version: int = -1) -> object:  # type: ignore[override]
        self.asked.append(f"config {name}")
        return super().model_config(name, version)

    def model_metadata(self, name: str, version: int = -1) -> object:  # type: ignore[override]
        self.asked.append(f"metadata {name}")
        return super().model_metadata(name, version)

    def load_model(self, name, config=None, files=None, versions=()) -> None:
        self.loaded.append((name, config, files))


def request_to(model: str, witness: Witness, values: object = (1.0, 2.0), dtype: object = np.float32) -> InferRequest:
    return InferRequest(model, {"IN": Tensor.from_numpy("IN", np.array(values, dtype))}, witness.sink)


def test_configurations_and_metadata_are_asked_for_once_until_models_change() -> None:
    with ToyEngine() as toy, linked(asked := Asked(toy)) as (_, end):
        for _ in range(2):
            assert end.engine.model_config("repeat") == toy.model_config("repeat")
            assert end.engine.model_metadata("identity") == toy.model_metadata("identity")
        assert asked.asked == ["config repeat", "metadata identity"]
        end.engine.forget()
        end.engine.model_config("repeat")
        assert asked.asked[2:] == ["config repeat"]


def test_a_caller_of_one_answer_is_refused_a_decoupled_model_at_once_and_from_memory() -> None:
    with ToyEngine() as toy, linked(asked := Asked(toy)) as (_, end):
        for _ in range(3):
            with pytest.raises(DecoupledRefused, match="any number of times"):
                end.engine.infer(request_to("repeat", Witness(), [1], np.int32))
        assert asked.asked == ["config repeat"]


def test_what_a_frontend_asks_on_its_own_loop_is_answered_while_the_loop_stands_still() -> None:
    with ToyEngine() as toy, linked(toy) as (_, end):
        assert end.thread.do(end.engine.is_ready) is True
        witness = Witness()
        request = request_to("identity", witness)

        def both() -> bool:
            end.engine.infer(request)
            return end.engine.is_live()  # the answer may come while this waits

        assert end.thread.do(both) is True
        [[response]] = witness.wait(request)
        assert response.outputs[0].numpy().tolist() == [1.0, 2.0]


def test_a_request_that_was_cancelled_before_is_not_sent() -> None:
    with ToyEngine() as toy, linked(toy) as (_, end):
        request = request_to("identity", Witness())
        request.cancel()
        with pytest.raises(Cancelled, match="Request cancelled"):
            end.engine.infer(request)


def test_large_files_of_a_model_travel_as_bytes() -> None:
    content = bytes(range(256)) * 4096
    with ToyEngine() as toy, linked(asked := Asked(toy)) as (_, end):
        end.engine.load_model("m", '{"name": "m"}', {"file:1/a": content, "file:1/empty": b""})
        end.engine.load_model("m")
        assert asked.loaded == [("m", '{"name": "m"}', {"file:1/a": content, "file:1/empty": b""}), ("m", None, None)]


def test_after_an_operation_the_processes_hear_that_models_may_have_changed() -> None:
    with ToyEngine() as toy, linked(toy) as (behind, end):
        end.engine.operate("repeat_thing", OperationCall({"thing": "ball"}, 1))
        assert behind.changes == 1
