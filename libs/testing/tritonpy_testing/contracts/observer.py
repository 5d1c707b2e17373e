"""The contract of observers."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np

from tritonpy import Batch, InferRequest, InferResponse, Internal, Tensor, now_ns
from tritonpy.metrics import Event, Observer
from tritonpy_testing.contracts.plugin import PluginContract
from tritonpy_testing.recording_sink import RecordingSink


class ObserverContract(PluginContract):
    """The contract of `Observer`. Set `plugin_class` and its `options`."""

    interface = Observer
    hook = "tritonpy_observers"

    def make(self) -> Observer:
        """Return a new observer."""
        observer = self.plugin_class(self.make_options())
        assert isinstance(observer, Observer)
        return observer

    def test_its_events_exist(self) -> None:
        assert self.plugin_class.events, "an observer without events sees nothing"
        assert set(self.plugin_class.events) <= set(Event)

    def test_it_accepts_every_kind_of_response(self) -> None:
        observer = self.make()
        for request, response in _responses():
            observer.responded(request, response, now_ns())
        observer.close()

    def test_it_changes_neither_request_nor_response(self) -> None:
        observer = self.make()
        for request, response in _responses():
            before = [
                tensor.data.tobytes() for tensor in (*request.inputs.values(), *response.outputs)
            ]
            state = (request.finished, request.cancelled, response.final, response.error)
            observer.responded(request, response, now_ns())
            assert before == [
                tensor.data.tobytes() for tensor in (*request.inputs.values(), *response.outputs)
            ]
            assert state == (request.finished, request.cancelled, response.final, response.error)
        observer.close()

    def test_concurrent_calls_are_safe(self) -> None:
        observer = self.make()

        def work(_number: int) -> None:
            for request, response in _responses():
                observer.responded(request, response, now_ns())

        with ThreadPoolExecutor(4) as pool:
            list(pool.map(work, range(20)))
        observer.close()


def _responses() -> list[tuple[InferRequest, InferResponse]]:
    tensor = Tensor.from_numpy("T", np.zeros((1, 2), np.float32))

    def request(executed: bool) -> InferRequest:
        now = now_ns()
        result = InferRequest(
            "model", {"T": tensor}, RecordingSink().sink, 1, "id", received_ns=now, queued_ns=now
        )
        if executed:
            result.batch = Batch([result], start_ns=now, input_end_ns=now, infer_end_ns=now)
        return result

    done, waiting, streamed = (
        request(executed=True),
        request(executed=False),
        request(executed=True),
    )
    return [
        (done, InferResponse([tensor], "model", 1, "id")),
        (waiting, InferResponse.failed(waiting, Internal("it failed before it ran"))),
        (streamed, InferResponse([tensor], "model", 1, "id", final=False)),
        (streamed, InferResponse((), "model", 1, "id", empty=True)),
    ]
