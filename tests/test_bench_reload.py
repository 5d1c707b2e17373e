"""The reload benchmark: it detects outdated responses, and a short run finds none."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from bench.open_loop import Response
from bench.reload import Outcome, Period
from tests.conftest import ROOT


def outcome(*responses: Response, switches: tuple[tuple[float, int], ...] = ()) -> Outcome:
    return Outcome(
        "m", responses, [Period(0, 10, replaced=False), Period(10, 20, replaced=True)], switches
    )


def response(sent: float, value: int, took: float = 0.005) -> Response:
    return Response("HTTP", sent, sent, sent + took, value)


@pytest.mark.parametrize(
    ("responses", "switches", "wrong"),
    [
        ([response(1, 0), response(3, 1)], ((2, 1),), 0),
        ([response(1, 0), response(3, 0)], ((2, 1),), 1),
        ([response(1.999, 0, took=2)], ((2, 1),), 0),  # sent before the switch
        ([response(1, 1), response(3, 0)], (), 1),  # the new version had responded already
        ([response(1, 1, took=5), response(3, 0)], (), 0),
        ([response(3, 2)], ((2, 1),), 0),
        ([], ((2, 1),), 0),
    ],
)
def test_requests_sent_after_a_switch_must_not_get_old_responses(
    responses: list[Response], switches: tuple[tuple[float, int], ...], wrong: int
) -> None:
    assert len(outcome(*responses, switches=switches).outdated()) == wrong


def test_a_request_without_a_response_failed_and_is_not_outdated() -> None:
    seen = outcome(
        response(1, 0), Response("gRPC", 3, 3, 4, error="UNAVAILABLE"), switches=((2, 1),)
    )
    assert [each.protocol for each in seen.failed()] == ["gRPC"]
    assert seen.outdated() == []


@pytest.mark.parametrize(("busy_s", "word"), [(0.0075, "met"), (0.02, "short")])
def test_the_verdict_is_the_ratio_of_both_tails(busy_s: float, word: str) -> None:
    quiet = [response(number / 10, 0) for number in range(100)]
    busy = [response(10 + number / 10, 0, took=busy_s) for number in range(100)]
    found = outcome(*quiet, *busy)
    assert found.verdict().word == word
    assert found.verdict().ratio == pytest.approx(busy_s / 0.005)
    assert found.is_good() is (word == "met")


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
    done = subprocess.run(
        command, check=False, cwd=ROOT, capture_output=True, text=True, timeout=240
    )
    lines = done.stdout.splitlines()
    assert [line.partition("  ")[0] for line in lines] == ["ONNX, explicit", "ONNX, poll"], (
        done.stderr
    )
    for line in lines:
        assert re.search(r"  4 replacements: 0 failed, 0 of an old version; p50 ", line), line
