from __future__ import annotations

from types import SimpleNamespace

import numpy as np

from tritonpy import Batch, CallbackSink, InferRequest, SequenceInfo, Tensor
from tritonpy_backend_python.in_process.batch_requests import requests_of


def request_of(value: int, name: str, sequence: SequenceInfo | None = None) -> InferRequest:
    tensor = Tensor.from_numpy("IN", np.array([[value]], np.int32))
    return InferRequest(
        "m", {"IN": tensor}, CallbackSink(lambda *_: None), id=name, sequence=sequence
    )


def seen(batch: Batch) -> list[tuple[object, ...]]:
    host = SimpleNamespace(decoupled=False, is_cancelled=lambda _: False)
    return [
        (
            each.request_id(),
            each.correlation_id(),
            each.flags(),
            [tensor.as_numpy().tolist() for tensor in each.inputs()],
        )
        for each in requests_of(batch, 5, host, ("OUT",))  # type: ignore[arg-type]
    ]


def test_each_request_has_its_sequence_and_its_row_of_the_controls() -> None:
    ready = Tensor.from_numpy("READY", np.array([[1], [2]], np.int32))
    batch = Batch(
        [request_of(7, "a", SequenceInfo("s", start=True)), request_of(8, "b")], controls=[ready]
    )
    assert seen(batch) == [("a", "s", 1, [[[7]], [[1]]]), ("b", 0, 0, [[[8]], [[2]]])]


def test_a_slot_without_data_gets_a_null_request() -> None:
    ready = Tensor.from_numpy("READY", np.array([[0], [1], [0]], np.int32))
    only = request_of(7, "a", SequenceInfo(3, end=True))
    batch = Batch([only], slots=[None, only, None], controls=[ready])
    nothing = ("", 0, 0, [[[0]], [[0]]])
    assert seen(batch) == [nothing, ("a", 3, 2, [[[7]], [[1]]]), nothing]
