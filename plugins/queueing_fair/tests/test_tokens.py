from __future__ import annotations

import numpy as np
import pytest

from tritonpy import CallbackSink, InferRequest, InferResponse, ResourceExhausted, Tensor
from tritonpy_queueing_fair.tokens import TokenCounter

from .test_fair_sharing import SharingHarness

SINK = CallbackSink(lambda *_: None)


def text(name, value):
    return Tensor.from_numpy(name, np.array([value], np.object_))


def request(prompt=b"x" * 10):
    return InferRequest("m", {"text_input": text("text_input", prompt)}, SINK)


def response(given, generated=None, prompt=None, written=b"abcde"):
    counts = {"num_output_tokens": generated, "num_input_tokens": prompt}
    tensors = [
        Tensor.from_numpy(name, np.array([value], np.uint32))
        for name, value in counts.items()
        if value is not None
    ]
    return InferResponse([text("text_output", written), *tensors], "m", 1, given.id)


def test_reported_tokens_are_counted_and_those_of_the_prompt_once():
    counter, given = TokenCounter(), request()
    assert counter.count(given, response(given, 3, 0)) == (0, 3)
    assert counter.count(given, response(given, 2, 7)) == (7, 2)
    assert counter.count(given, response(given, 2, 7)) == (0, 2)
    counter.forget(given)
    assert counter.count(given, response(given, 2, 7)) == (7, 2)


def test_unreported_tokens_are_estimated():
    counter, given = TokenCounter(), request()
    assert counter.count(given, response(given)) == (3, 2)  # 10 and 5 bytes
    assert counter.count(given, response(given)) == (0, 2)


def test_other_models_have_no_tokens():
    counter = TokenCounter()
    given = InferRequest("m", {}, SINK)
    tensor = Tensor.from_numpy("y", np.zeros(5, np.float32))
    assert counter.count(given, InferResponse([tensor], "m", 1, "")) == (0, 0)
    assert counter.count(given, InferResponse((), "m", 1, "", empty=True)) == (0, 0)


def test_a_tenant_beyond_its_tokens_is_refused_until_its_average_is_kept():
    bench = SharingHarness(
        default={"output_tokens_per_s": 10, "token_burst_s": 1}, tenants={"free": {}}
    )
    assert bench.sharing.counts_responses
    first = bench.admit("a")
    bench.sharing.responded(first, response(first, 40, 5))
    bench.sharing.ended(first)
    with pytest.raises(ResourceExhausted, match="quota of 10 output tokens per second") as refused:
        bench.admit("a")
    assert refused.value.retry_after_s == 3
    bench.admit("b")
    free = bench.admit("free")
    bench.sharing.responded(free, response(free, 10_000, 5))
    bench.admit("free")
    bench.now = 3 * 10**9
    bench.admit("a")


def test_responses_are_counted_only_for_quotas_of_tokens():
    assert not SharingHarness(default={"requests_per_s": 1}).sharing.counts_responses
