from __future__ import annotations

import pytest
from google.protobuf import text_format

from tritonpy.errors import Internal, InvalidArgument
from tritonpy.statistics.first_responses import DEFAULT_BUCKETS, FirstResponseHistogram, configured_buckets
from tritonpy.types import InferRequest, InferResponse
from tritonpy_protos.model_config_pb2 import ModelConfig

MS = 1_000_000


def request() -> InferRequest:
    return InferRequest("m", {}, None, received_ns=5 * MS)


def counts(first: FirstResponseHistogram) -> tuple[list[int], int, float]:
    found = first.snapshot()
    return found.counts, found.count, found.sum


def test_it_counts_whole_milliseconds_since_the_arrival() -> None:
    first = FirstResponseHistogram([1, 10])
    for responded_ns in (6 * MS, 7 * MS - 1, 8 * MS, 905 * MS):
        first.responded(request(), InferResponse(()), 0, responded_ns)
    assert counts(first) == ([2, 3], 4, 1 + 1 + 3 + 900)


def test_only_the_first_response_of_a_request_counts() -> None:
    first, streaming = FirstResponseHistogram([1, 10]), request()
    for final in (False, False, True):
        first.responded(streaming, InferResponse((), final=final), 0, 8 * MS)
    assert counts(first) == ([0, 1], 1, 3)


def test_an_error_counts_and_an_empty_final_response_does_not() -> None:
    first, failed = FirstResponseHistogram([1, 10]), request()
    first.responded(failed, InferResponse.failed(failed, Internal("broken")), 0, 6 * MS)
    first.responded(request(), InferResponse((), empty=True), 0, 6 * MS)
    assert counts(first) == ([1, 1], 1, 1)


def test_an_ended_request_is_forgotten() -> None:
    first, streaming = FirstResponseHistogram([1]), request()
    first.responded(streaming, InferResponse((), final=False), 0, 6 * MS)
    first.responded(streaming, InferResponse((), empty=True), 0, 7 * MS)
    assert not first._started


def test_buckets_that_do_not_ascend_are_refused() -> None:
    with pytest.raises(InvalidArgument, match="strictly sorted"):
        FirstResponseHistogram([5, 1])


def test_a_model_configures_its_buckets_and_is_warned_of_families_without_any(caplog: pytest.LogCaptureFixture) -> None:
    control = 'metric_control {{ metric_identifier {{ family: "{}" }} histogram_options {{ buckets: [1, 2.5] }} }}'
    expected, other = (control.format(family) for family in ("nv_inference_first_response_histogram_ms", "nv_other"))
    config = text_format.Parse(f'name: "m" model_metrics {{ {expected} {other} }}', ModelConfig())
    assert list(configured_buckets(config)) == [1, 2.5]
    assert "model 'm': metric family 'nv_other'" in caplog.text
    assert configured_buckets(ModelConfig()) == DEFAULT_BUCKETS
