"""The bench of replacements: what it counts as wrong is wrong, and a short run of it finds nothing."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from bench.open_loop import Answer
from bench.reload import Outcome, Stretch
from tests.conftest import ROOT


def outcome(*answers: Answer, switches: tuple[tuple[float, int], ...] = ()) -> Outcome:
    return Outcome("m", answers, [Stretch(0, 10, replaced=False), Stretch(10, 20, replaced=True)], switches)


def answer(sent: float, value: int, took: float = 0.005) -> Answer:
    return Answer("HTTP", sent, sent, sent + took, value)


@pytest.mark.parametrize(
    ("answers", "switches", "wrong"),
    [
        ([answer(1, 0), answer(3, 1)], ((2, 1),), 0),
        ([answer(1, 0), answer(3, 0)], ((2, 1),), 1),
        ([answer(1.999, 0, took=2)], ((2, 1),), 0),  # it was sent before the switch
        ([answer(1, 1), answer(3, 0)], (), 1),  # the new one had answered already
        ([answer(1, 1, took=5), answer(3, 0)], (), 0),
        ([answer(3, 2)], ((2, 1),), 0),
        ([], ((2, 1),), 0),
    ],
)
def test_whoever_is_sent_after_a_switch_may_not_be_answered_by_what_was_before(
    answers: list[Answer], switches: tuple[tuple[float, int], ...], wrong: int
) -> None:
    assert len(outcome(*answers, switches=switches).outdated()) == wrong


def test_a_request_without_an_answer_has_failed_and_is_not_outdated() -> None:
    seen = outcome(answer(1, 0), Answer("gRPC", 3, 3, 4, error="UNAVAILABLE"), switches=((2, 1),))
    assert [each.protocol for each in seen.failed()] == ["gRPC"]
    assert seen.outdated() == []


@pytest.mark.parametrize(("busy_s", "word"), [(0.0075, "met"), (0.02, "short")])
def test_the_verdict_is_the_ratio_of_both_tails(busy_s: float, word: str) -> None:
    quiet = [answer(number / 10, 0) for number in range(100)]
    busy = [answer(10 + number / 10, 0, took=busy_s) for number in range(100)]
    found = outcome(*quiet, *busy)
    assert found.verdict().word == word
    assert found.verdict().ratio == pytest.approx(busy_s / 0.005)
    assert found.good() is (word == "met")


def test_a_short_run_finds_nothing_wrong() -> None:
    command = [
        sys.executable,
        "-m",
        "bench.reload",
        "--only",
        "ONNX",
        "--seconds",
        "2",
        "--replacements",
        "4",
        "--pairs",
        "2",
    ]
    done = subprocess.run(command, check=False, cwd=ROOT, capture_output=True, text=True, timeout=240)
    lines = done.stdout.splitlines()
    assert [line.partition("  ")[0] for line in lines] == ["ONNX, explicit", "ONNX, poll"], done.stderr
    for line in lines:
        assert re.search(r"  4 replacements: 0 failed, 0 of an old version; p50 ", line), line
