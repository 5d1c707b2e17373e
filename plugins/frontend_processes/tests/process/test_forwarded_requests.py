from __future__ import annotations

import numpy as np
import pytest

from plugins.frontend_processes.tests.linked import linked
from plugins.frontend_processes.tests.test_frontend_session import HoldingEngine
from tritonpy_frontend_processes import kinds
from tritonpy_testing.recording_sink import RecordingSink
from tritonpy_testing.toy_engine import ToyEngine
from tritonpy_types import InferRequest, RegionSlice, Tensor
from tritonpy_types.errors import Internal


def request_of(recorder: RecordingSink, elements: int, **fields: object) -> InferRequest:
    return InferRequest(
        "identity",
        {"IN": Tensor.from_numpy("IN", np.ones(elements, np.float32))},
        recorder.sink,
        **fields,
    )  # type: ignore[arg-type]


def test_requests_of_one_loop_iteration_are_one_frame_unless_they_are_large() -> None:
    with ToyEngine() as toy, linked(toy) as (engine, end):
        recorder = RecordingSink()
        # 8 MiB each: a frame ends with the request that exceeds the limit
        for elements, frames in ((16, 1), (1 << 21, 3)):
            before = len([frame for frame in engine.frames if frame.kind == kinds.INFER])
            requests = [request_of(recorder, elements) for _ in range(3)]
            end.thread.do(
                lambda requests=requests: [end.engine.infer(request) for request in requests]
            )
            assert all(responses[0].error is None for responses in recorder.wait(*requests))
            assert (
                len([frame for frame in engine.frames if frame.kind == kinds.INFER]) - before
                == frames
            )


def test_a_request_that_cannot_be_sent_fails_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    with ToyEngine() as toy, linked(toy) as (_, end):
        recorder = RecordingSink()
        good, bad = request_of(recorder, 4), request_of(recorder, 1 << 16)
        end.engine.model_config("identity")
        send = end.connection.send

        def fail(
            kind: int, words: object, rows: list[list[Tensor]] | None = None, *more: object
        ) -> None:
            if any(tensor.nbytes > 1 << 16 for row in rows or () for tensor in row):
                raise OSError(28, "No space left on device")
            send(kind, words, rows, *more)  # type: ignore[arg-type]

        monkeypatch.setattr(end.connection, "send", fail)
        end.thread.do(lambda: (end.engine.infer(good), end.engine.infer(bad)))
        [[finished], [failed]] = recorder.wait(good, bad)
        assert finished.error is None
        assert isinstance(failed.error, Internal)
        assert "no shared memory for the inputs of model 'identity'" in failed.error.message


def test_a_cancellation_follows_its_request() -> None:
    with ToyEngine() as toy, linked(held := HoldingEngine(toy)) as (engine, end):
        recorder = RecordingSink()
        request = request_of(recorder, 4)
        end.engine.model_config("identity")
        end.thread.do(lambda: (end.engine.infer(request), request.cancel()))
        held.wait()
        end.engine.is_live()  # earlier frames have been handled
        assert held.requests[0].cancelled
        assert [frame.kind for frame in engine.frames][-3:-1] == [kinds.INFER, kinds.CANCEL]


def test_cancelling_a_finished_request_does_nothing() -> None:
    with ToyEngine() as toy, linked(toy) as (engine, end):
        recorder = RecordingSink()
        request = request_of(recorder, 4)
        end.engine.infer(request)
        recorder.wait(request)
        request.cancel()
        end.engine.is_live()
        assert kinds.CANCEL not in [frame.kind for frame in engine.frames]


def test_names_of_regions_travel_without_data() -> None:
    with ToyEngine() as toy, linked(held := HoldingEngine(toy)) as (_, end):
        part = RegionSlice("r", 8, 16)
        request = InferRequest(
            "identity",
            {"IN": Tensor("IN", "FP32", (4,), part)},
            RecordingSink().sink,
            uses_regions=True,
        )
        end.engine.infer(request)
        assert held.wait().inputs["IN"].data == part
