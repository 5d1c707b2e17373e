from __future__ import annotations

from tritonpy.types import Batch, InferRequest, InferResponse
from tritonpy_testing.recording_sink import RecordingSink


def request_of(rows: int, recorder: RecordingSink) -> InferRequest:
    return InferRequest("m", {}, recorder.sink, batch_size=rows, owner=recorder)


def test_the_size_is_the_sum_of_rows_or_the_number_of_slots() -> None:
    recorder = RecordingSink()
    requests = [request_of(rows, recorder) for rows in (1, 2, 3)]
    assert Batch(requests).size == 6
    assert Batch(requests[:1], slots=[None, requests[0], None]).size == 3


def test_the_first_stamp_ends_input_and_each_later_one_ends_inference() -> None:
    batch = Batch([])
    batch.stamp()
    ended, nothing = batch.input_end_ns, batch.infer_end_ns
    batch.stamp()
    first = batch.infer_end_ns
    batch.stamp()
    assert nothing == 0
    assert 0 < ended == batch.input_end_ns <= first <= batch.infer_end_ns


def test_a_batch_responds_through_the_owner_of_its_requests() -> None:
    recorder = RecordingSink()
    requests = [request_of(1, recorder) for _ in range(3)]
    Batch(requests).respond([InferResponse((), id=str(number)) for number in range(3)])
    assert [recorder.responses(each)[0].id for each in requests] == ["0", "1", "2"]
    Batch([]).respond([])
