from __future__ import annotations

import json

import pytest

from tritonpy_bench.generation.connection import TimedExchange
from tritonpy_bench.generation.figures import level_figures, named_figures
from tritonpy_bench.generation.options import GenerationOptions

MS = 1_000_000


def options(**members):
    given = {"model": "m", "endpoint_type": "chat", "streaming": True}
    return GenerationOptions(**{**given, **members})


def stream(sent_ms, first_ms, gap_ms, words, usage=None, wanted=None, due_ms=0):
    """An exchange whose words arrive at known times."""
    done = TimedExchange(wanted or words, due_ms * MS)
    done.sent_ns, done.status = sent_ms * MS, 200
    at = done.sent_ns + first_ms * MS
    for _ in range(words):
        data = json.dumps({"choices": [{"delta": {"content": "w"}}]}).encode()
        done.parts.append((at, b"data: " + data + b"\n\n"))
        at += gap_ms * MS
    if usage:
        data = json.dumps({"choices": [], "usage": usage}).encode()
        done.parts.append((at, b"data: " + data + b"\n\n"))
    done.ended_ns = at
    return done


def figures(*exchanges, tokens_of=None, **members):
    return level_figures("concurrency", 2, exchanges, options(**members), tokens_of)


def test_the_times_of_a_stream_are_those_of_its_tokens():
    level = figures(stream(100, 50, 10, 5), stream(100, 70, 20, 5))
    assert level.figures["ttft"].avg == 60
    assert level.figures["ttft"].at(50) == 60
    assert (level.figures["ttft"].min, level.figures["ttft"].max) == (50, 70)
    assert level.figures["ttst"].avg == 15
    assert level.figures["tpot"].avg == pytest.approx(15)
    assert level.figures["latency"].avg == (50 + 40 + 70 + 80) / 2
    assert level.figures["icl"].count == 8
    assert level.figures["rate_per_user"].avg == pytest.approx((100 + 50) / 2)
    assert level.counted_by == "chunks"
    assert level.output_tokens == 10
    assert level.seconds == pytest.approx(0.17)  # from the first request to the last byte
    assert level.output_tokens_per_s == pytest.approx(10 / 0.17)


def test_parts_are_not_tokens_if_the_server_counts():
    usage = {"prompt_tokens": 30, "completion_tokens": 9}
    level = figures(stream(0, 50, 10, 5, usage))
    assert level.counted_by == "usage"
    assert level.figures["tpot"].avg == 5  # 40 ms for 8 tokens
    assert level.figures["icl"].avg == 10
    assert level.figures["prefill_rate"].avg == 600
    assert level.total_tokens_per_s == pytest.approx(39 / level.seconds)


def test_a_tokenizer_counts_if_the_server_does_not():
    level = figures(stream(0, 50, 10, 5), tokens_of=lambda text: 2 * len(text))
    assert (level.counted_by, level.output_tokens) == ("tokenizer", 10)


def test_what_failed_is_in_no_figure_but_counted():
    failed, cancelled, empty = TimedExchange(5), TimedExchange(5), stream(0, 1, 1, 0)
    failed.status, failed.error, failed.ended_ns = 0, "cannot connect: refused", 10 * MS
    cancelled.is_cancelled = True
    level = figures(stream(0, 50, 10, 5), failed, cancelled, empty, stream(0, 50, 10, 3, wanted=5))
    assert (level.requests, level.failed, level.cancelled, level.empty, level.short) == (
        2,
        1,
        1,
        1,
        1,
    )
    assert level.errors == {"cannot connect: refused": 1}
    assert level.output_tokens == 8


def test_goodput_counts_requests_that_keep_all_limits():
    exchanges = [stream(0, 50, 10, 5), stream(0, 70, 10, 5), stream(0, 50, 30, 5)]
    for limits, kept in (
        ((("ttft", 60.0),), 2),
        ((("ttft", 60.0), ("tpot", 20.0)), 1),
        ((("icl", 20.0),), 2),
        ((("latency", 100.0),), 1),
    ):
        level = figures(*exchanges, goodput=limits)
        assert level.goodput * level.seconds == pytest.approx(kept)
    assert figures(*exchanges).goodput is None


def test_a_response_of_one_token_has_no_time_per_token():
    level = figures(stream(0, 50, 10, 1))
    assert "tpot" not in level.figures
    assert level.figures["ttft"].avg == level.figures["latency"].avg == 50


def test_the_client_was_late_by_the_difference_to_the_schedule():
    assert figures(stream(10, 50, 10, 2, due_ms=7)).late_ms == pytest.approx(3)


def test_the_timeline_has_all_tokens():
    usage = {"prompt_tokens": 1, "completion_tokens": 10}
    level = figures(stream(0, 50, 10, 5, usage), stream(30, 50, 10, 5, usage))
    width = level.seconds / len(level.timeline)
    assert sum(rate * width for _, rate in level.timeline) == pytest.approx(20)


def test_embeddings_have_latencies_only():
    done = TimedExchange(0)
    done.sent_ns, done.ended_ns, done.status = 0, 30 * MS, 200
    done.parts = [(30 * MS, b'{"data": [], "usage": {"prompt_tokens": 3}}')]
    level = figures(done, endpoint_type="embeddings", streaming=False)
    assert level.figures["latency"].avg == 30
    assert level.figures.keys() == {"latency", "isl"}


def test_names_of_aiperf_and_of_vllm():
    usage = {"prompt_tokens": 30, "completion_tokens": 5}
    level = figures(stream(0, 50, 10, 5, usage), goodput=(("ttft", 60.0),))
    aiperf, vllm = named_figures(level, "aiperf"), named_figures(level, "vllm")
    assert aiperf["time_to_first_token"]["avg"] == vllm["mean_ttft_ms"] == 50
    assert aiperf["inter_token_latency"]["p50"] == vllm["median_tpot_ms"] == 10
    assert aiperf["inter_chunk_latency"]["p99"] == vllm["p99_itl_ms"] == 10
    assert aiperf["request_latency"]["unit"] == "ms"
    assert vllm["total_output_tokens"] == 5
    assert aiperf["goodput"]["avg"] == vllm["request_goodput"]
