from __future__ import annotations

import argparse

import pytest

from tritonpy_bench.flags import add_flags, given_options
from tritonpy_bench.generation.options import make_generation_options
from tritonpy_bench.options import make_options
from tritonpy_load_generator.options import BadUsage


def parse(*arguments):
    parser = argparse.ArgumentParser()
    add_flags(parser)
    given = parser.parse_args(["m", "--endpoint-type=chat", *arguments])
    return make_generation_options(given_options(given), given.model_name)


def test_flags_of_genai_perf_and_short_ones_are_the_same():
    short = parse("--isl=9", "--osl=7", "--isl-stddev=2", "--osl-stddev=1")
    long = parse(
        "--synthetic-input-tokens-mean=9", "--output-tokens-mean=7",
        "--synthetic-input-tokens-stddev=2", "--output-tokens-stddev=1",
    )  # fmt: skip
    assert short == long
    assert (short.input_tokens, short.output_tokens) == (9, 7)


@pytest.mark.parametrize(
    ("arguments", "address", "path"),
    [
        ((), "localhost:9000", "/v1/chat/completions"),
        (("--endpoint-type=generate_stream",), "localhost:8000", "/v2/models/m/generate_stream"),
        (("-u", "host"), "host:9000", "/v1/chat/completions"),
        (("-u", "http://host/a", "--endpoint=/x"), "http://host/a", "/x"),
        (("-u", "[::1]:7"), "[::1]:7", "/v1/chat/completions"),
    ],
)
def test_addresses_and_paths(arguments, address, path):
    options = parse(*arguments)
    assert (options.address, options.path) == (address, path)


def test_values_of_flags():
    options = parse(
        "--goodput", "ttft:200 inter_token_latency:50", "--extra-inputs=top_k:5",
        "--extra-inputs=user:ann", "-H", "A: b",
    )  # fmt: skip
    assert options.goodput == (("ttft", 200.0), ("tpot", 50.0))
    assert options.extra_inputs == (("top_k", 5), ("user", "ann"))
    assert options.headers == (("A", "b"),)


@pytest.mark.parametrize(
    ("flags", "text"),
    [
        (["--isl=5"], "--isl needs --endpoint-type"),
        (["--goodput=ttft:5"], "--goodput needs --endpoint-type"),
        (["--request-distribution=gamma"], "--request-distribution gamma needs --endpoint-type"),
    ],
)
def test_flags_of_language_models_are_not_ignored_for_other_models(flags, text):
    parser = argparse.ArgumentParser()
    add_flags(parser)
    given = parser.parse_args(["m", *flags])
    with pytest.raises(BadUsage, match=text):
        make_options(given_options(given), given.model_name)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("--shape=x:3",), "--shape cannot be used with --endpoint-type"),
        (("--concurrency-range=1", "--request-rate-range=1"), "use either"),
        (("--concurrency-range=1:0",), "needs an end"),
        (("--num-sessions=2", "--request-rate-range=1"), "needs --concurrency-range"),
        (("--num-sessions=2", "--endpoint-type=completions"), "needs --endpoint-type chat"),
        (("--fixed-schedule",), "needs --input-file"),
        (("--endpoint-type=embeddings", "--streaming"), "has no streams"),
        (("--prefix-share=1",), "at least 0 and below 1"),
        (("--request-cancellation-rate=101",), "percentage"),
    ],
)
def test_contradictions_are_refused(arguments, text):
    with pytest.raises(BadUsage, match=text):
        parse(*arguments)


@pytest.mark.parametrize(
    "flag",
    [
        "--isl=0",
        "--osl=x",
        "--goodput=speed:3",
        "--goodput=ttft:0",
        "--extra-inputs=a",
        "--burstiness=0",
    ],
)
def test_invalid_values_are_refused(flag, capsys):
    with pytest.raises(SystemExit):
        parse(flag)
    assert flag.partition("=")[2].partition(":")[0] in capsys.readouterr().err
