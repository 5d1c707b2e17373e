from __future__ import annotations

import pytest
from google.protobuf import text_format

from tritonpy.errors import Internal, InvalidArgument
from tritonpy.statistics.first_responses import DEFAULT_BUCKETS, FirstResponses, buckets_of
from tritonpy.types import InferRequest, InferResponse
from tritonpy_protos.model_config_pb2 import ModelConfig

MS = 1_000_000


def request() -> InferRequest:
    return InferRequest("m", {}, None, received_ns=5 * MS)


def counts(first: FirstResponses) -> tuple[list[int], int, float]:
    found = first.snapshot()
    return found.counts, found.count, found.sum


def test_it_counts_whole_milliseconds_since_the_arrival() -> None:
    first = FirstResponses([1, 10])
    for answered_ns in (6 * MS, 7 * MS - 1, 8 * MS, 905 * MS):
        first.answered(request(), InferResponse(()), 0, answered_ns)
    assert counts(first) == ([2, 3], 4, 1 + 1 + 3 + 900)


def test_only_the_first_answer_of_a_request_counts() -> None:
    first, streaming = FirstResponses([1, 10]), request()
    for final in (False, False, True):
        first.answered(streaming, InferResponse((), final=final), 0, 8 * MS)
    assert counts(first) == ([0, 1], 1, 3)


def test_an_error_is_an_answer_and_the_bare_end_of_a_stream_is_none() -> None:
    first, failed = FirstResponses([1, 10]), request()
    first.answered(failed, InferResponse.failed(failed, Internal("broken")), 0, 6 * MS)
    first.answered(request(), InferResponse((), empty=True), 0, 6 * MS)
    assert counts(first) == ([1, 1], 1, 1)


def test_an_ended_request_is_forgotten() -> None:
    first, streaming = FirstResponses([1]), request()
    first.answered(streaming, InferResponse((), final=False), 0, 6 * MS)
    first.answered(streaming, InferResponse((), empty=True), 0, 7 * MS)
    assert not first._begun


def test_buckets_that_do_not_ascend_are_refused() -> None:
    with pytest.raises(InvalidArgument, match="strictly sorted"):
        FirstResponses([5, 1])


def test_a_model_chooses_its_buckets_and_is_told_of_families_without_any(caplog: pytest.LogCaptureFixture) -> None:
    control = 'metric_control {{ metric_identifier {{ family: "{}" }} histogram_options {{ buckets: [1, 2.5] }} }}'
    wanted, other = (control.format(family) for family in ("nv_inference_first_response_histogram_ms", "nv_other"))
    config = text_format.Parse(f'name: "m" model_metrics {{ {wanted} {other} }}', ModelConfig())
    assert list(buckets_of(config)) == [1, 2.5]
    assert "model 'm': metric family 'nv_other'" in caplog.text
    assert buckets_of(ModelConfig()) == DEFAULT_BUCKETS
