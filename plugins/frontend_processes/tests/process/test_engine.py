from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

import numpy as np
import pytest

from plugins.frontend_processes.tests.linked import linked
from tritonpy.api.engine import Engine, OperationCall
from tritonpy.api.router import ForwardingEngine
from tritonpy_testing.contracts.engine import EngineContract
from tritonpy_testing.recording_sink import RecordingSink
from tritonpy_testing.toy_engine import ToyEngine
from tritonpy_types import InferRequest, Tensor
from tritonpy_types.errors import Cancelled, DecoupledRefused


@contextmanager
def connected(engine: Engine) -> Iterator[Engine]:
    with linked(engine) as (_, frontend):
        yield frontend.engine


class TestFrontendEngine(EngineContract):
    def connect(self, engine: Engine) -> AbstractContextManager[Engine]:
        return connected(engine)


class CountingEngine(ForwardingEngine):
    """Counts calls for configurations and metadata."""

    def __init__(self, engine: Engine) -> None:
        super().__init__(engine)
        self.counting: list[str] = []
        self.loaded: list[object] = []

    def model_config(self, name: str, version: int = -1) -> object:  # type: ignore[override]
        self.counting.append(f"config {name}")
        return super().model_config(name, version)

    def model_metadata(self, name: str, version: int = -1) -> object:  # type: ignore[override]
        self.counting.append(f"metadata {name}")
        return super().model_metadata(name, version)

    def load_model(self, name, config=None, files=None, versions=()) -> None:
        self.loaded.append((name, config, files))


def request_to(
    model: str, recorder: RecordingSink, values: object = (1.0, 2.0), dtype: object = np.float32
) -> InferRequest:
    return InferRequest(
        model, {"IN": Tensor.from_numpy("IN", np.array(values, dtype))}, recorder.sink
    )


def test_configurations_and_metadata_are_cached_until_models_change() -> None:
    with ToyEngine() as toy, linked(counting := CountingEngine(toy)) as (_, end):
        for _ in range(2):
            assert end.engine.model_config("repeat") == toy.model_config("repeat")
            assert end.engine.model_metadata("identity") == toy.model_metadata("identity")
        assert counting.counting == ["config repeat", "metadata identity"]
        end.engine.forget()
        end.engine.model_config("repeat")
        assert counting.counting[2:] == ["config repeat"]


def test_a_request_for_one_response_to_a_decoupled_model_is_refused_from_the_cache() -> None:
    with ToyEngine() as toy, linked(counting := CountingEngine(toy)) as (_, end):
        for _ in range(3):
            with pytest.raises(DecoupledRefused, match="is decoupled"):
                end.engine.infer(request_to("repeat", RecordingSink(), [1], np.int32))
        assert counting.counting == ["config repeat"]


def test_a_call_on_the_event_loop_returns_while_the_loop_is_blocked() -> None:
    with ToyEngine() as toy, linked(toy) as (_, end):
        assert end.thread.do(end.engine.is_ready) is True
        recorder = RecordingSink()
        request = request_to("identity", recorder)

        def both() -> bool:
            end.engine.infer(request)
            return end.engine.is_live()  # the response may arrive meanwhile

        assert end.thread.do(both) is True
        [[response]] = recorder.wait(request)
        assert response.outputs[0].numpy().tolist() == [1.0, 2.0]


def test_a_cancelled_request_is_not_sent() -> None:
    with ToyEngine() as toy, linked(toy) as (_, end):
        request = request_to("identity", RecordingSink())
        request.cancel()
        with pytest.raises(Cancelled, match="Request cancelled"):
            end.engine.infer(request)


def test_large_files_of_a_model_travel_as_bytes() -> None:
    content = bytes(range(256)) * 4096
    with ToyEngine() as toy, linked(counting := CountingEngine(toy)) as (_, end):
        end.engine.load_model("m", '{"name": "m"}', {"file:1/a": content, "file:1/empty": b""})
        end.engine.load_model("m")
        assert counting.loaded == [
            ("m", '{"name": "m"}', {"file:1/a": content, "file:1/empty": b""}),
            ("m", None, None),
        ]


def test_processes_are_notified_of_changed_models_after_an_operation() -> None:
    with ToyEngine() as toy, linked(toy) as (behind, end):
        end.engine.operate("repeat_thing", OperationCall({"thing": "ball"}, 1))
        assert behind.changes == 1
