from __future__ import annotations

import pytest

from tritonpy_bench.options import BenchOptions, check_options, make_options
from tritonpy_bench.sweep import LoadRange
from tritonpy_load_generator.options import BadUsage


def test_the_model_is_the_argument_or_the_flag():
    assert make_options({}, "a").model == "a"
    assert make_options({"model": "a"}, None).model == "a"
    assert make_options({"model": "a"}, "a").model == "a"
    for named, model in (({}, None), ({"model": "a"}, "b")):
        with pytest.raises(BadUsage):
            make_options(named, model)


def test_defaults_are_valid():
    check_options(BenchOptions(model="m"))
    assert BenchOptions(model="m").levels == LoadRange(1, 1)


RANGE = LoadRange(1, 4)


@pytest.mark.parametrize(
    ("more", "text"),
    [
        ({"concurrency_range": RANGE, "request_rate_range": RANGE}, "exclude each other"),
        ({"streaming": True}, "-i grpc"),
        (
            {"binary_search": True, "concurrency_range": LoadRange(1, 0), "latency_threshold": 1.0},
            "both ends",
        ),
        ({"binary_search": True, "concurrency_range": RANGE}, "--latency-threshold"),
        ({"concurrency_range": LoadRange(1, 0)}, "--latency-threshold"),
        ({"concurrency_range": LoadRange(1.5, 2)}, "whole numbers"),
        ({"shared_memory": "system", "input_tensor_format": "json"}, "exclude each other"),
        ({"percentile": 100}, "between 1 and 99"),
        ({"max_trials": 0}, "--max-trials"),
        ({"measurement_interval": 0.0}, "--measurement-interval"),
        ({"request_count": -1}, "must not be negative"),
        ({"client_processes": 0}, "--client-processes"),
        ({"sequence_length": 0}, "--sequence-length"),
        ({"sequence_id_range": (0, None)}, "1 <= START"),
        ({"sequence_id_range": (5, 5)}, "1 <= START"),
        (
            {"sequence_id_range": (1, 4), "concurrency_range": LoadRange(1, 8)},
            "fewer ids than the 8 sequences",
        ),
        (
            {
                "sequence_id_range": (1, 9),
                "concurrency_range": LoadRange(1, 0),
                "latency_threshold": 1.0,
            },
            "needs a load range with an end",
        ),
        (
            {"sequence_id_range": (1, 4), "request_rate_range": RANGE},
            "fewer ids than the 4 sequences",
        ),
    ],
)
def test_invalid_options_are_rejected_with_a_hint(more, text):
    with pytest.raises(BadUsage, match=text):
        check_options(BenchOptions(model="m", **more))
