from __future__ import annotations

import math
import random

import msgspec
import pytest

from tritonpy_analyzer.goals import Constraint, Metric, parse_goals
from tritonpy_analyzer.measuring import LoadWindow
from tritonpy_analyzer.racing import Race, RateEstimate, rate_step, violates
from tritonpy_load_generator.figures.histogram import make_histogram
from tritonpy_load_generator.options import LoadLevel

from .simulated import toy_space

SPACE = toy_space()
A, B, C = (SPACE.present, *SPACE.adjacent(SPACE.present)[:2])
LIMIT = Constraint(Metric.P99, True, 0.020)
MS = 1_000_000


def window(rate=100.0, latencies=(10,) * 100, **more):
    return LoadWindow(
        candidate="",
        level=LoadLevel(rate, "poisson"),
        seconds=1.0,
        succeeded=int(rate),
        latencies={"toy": make_histogram([round(each * MS) for each in latencies])},
        **more,
    )


def throughput(value):
    return window(value)


def race_of(values, rounds, goals=None, seed=1, noise=0.01, drift=lambda at: 0.0):
    """Race candidates whose throughput is `values`, multiplied by drift and noise."""
    rng = random.Random(seed)
    race = Race(list(values), goals or parse_goals([]), lambda each: 100.0)
    at = 0
    for _ in range(rounds):
        for each in race.order():
            at += 1
            speed = math.exp(rng.gauss(drift(at), noise))
            race.record(each, throughput(values[each] * speed * 1000))
        race.settle()
    return race


def test_the_reference_stands_between_the_challengers_in_reversed_order():
    race = Race([A, B, C], parse_goals([]), lambda each: 1.0)
    assert race.order() == [A, B, C, A]
    race.settle()
    assert race.order() == [A, C, B, A]
    pair = Race([A, B], parse_goals([]), lambda each: 1.0)
    orders = [pair.order()]
    pair.settle()
    orders.append(pair.order())
    assert orders == [[A, B], [B, A]]


def test_the_better_candidate_wins_although_the_machine_becomes_slower():
    race = race_of({A: 1.0, B: 1.1, C: 0.9}, 12, drift=lambda at: -0.02 * at)
    assert race.leader.candidate == B
    assert race.entries[C].out
    gain = race.compare(B, A)
    assert gain.verdict == "better"
    assert gain.low < 1.1 < gain.high


def test_equal_candidates_are_called_the_same():
    race = race_of({A: 1.0, B: 1.0}, 30, noise=0.01)
    assert race.compare(B, A).verdict == "same"
    assert race.decided


def test_two_windows_decide_nothing():
    race = race_of({A: 1.0, B: 1.05}, 1)
    assert race.compare(B, A).verdict == "open"
    assert not race.decided


def test_a_refused_candidate_is_out_with_the_servers_text():
    race = Race([A, B], parse_goals([]), lambda each: 1.0)
    race.record(B, window(invalid="no such file"))
    assert race.entries[B].out == "refused: no such file"
    assert race.alive == []


def test_dropped_windows_do_not_count():
    race = Race([A, B], parse_goals([]), lambda each: 1.0)
    race.record(A, throughput(100))
    race.record(B, window(100, dropped="busy"))
    assert race.entries[B].windows == []
    assert race.entries[B].relative == {}


def test_a_candidate_that_violates_a_constraint_is_out():
    goals = parse_goals(["memory.cpu<100MiB"])
    race = Race([A, B], goals, lambda each: 1.0)
    race.record(A, window(100, memory_cpu=50 << 20))
    race.record(B, window(200, memory_cpu=200 << 20))
    race.settle()
    assert race.entries[B].out == "violates memory.cpu<100 MiB"


def test_failing_requests_are_a_violation():
    race = Race([A, B], parse_goals([]), lambda each: 1.0)
    race.record(A, throughput(100))
    race.record(B, window(100, failed=50, error="no room"))
    race.settle()
    assert race.entries[B].out == "requests fail: no room"


def test_predictions_count_as_much_as_they_agree_with_measurements():
    def raced(predicted):
        rng = random.Random(3)
        race = Race([A, B, C], parse_goals([]), lambda each: 1.0, lambda each: predicted[each])
        for _ in range(2):
            for each in race.order():
                race.record(
                    each,
                    throughput({A: 1.0, B: 1.5, C: 1.5}[each] * 1000 * math.exp(rng.gauss(0, 0.1))),
                )
            race.settle()
        return race.estimates()

    good = raced({A: 10.0, B: 15.0, C: 15.0})
    assert good[B].gain == pytest.approx(math.log(1.5), abs=0.12)
    bad = raced({A: 10.0, B: 1.0, C: 100.0})
    assert bad[B].gain == pytest.approx(math.log(1.5), abs=0.25)


def test_with_two_objectives_only_dominated_candidates_leave():
    goals = parse_goals([], ["rate"], ["memory.cpu"])
    race = Race([A, B, C], goals, lambda each: 1.0)
    rng = random.Random(2)
    for _ in range(8):
        for each in race.order():
            rate, memory = {A: (100, 10), B: (200, 20), C: (90, 30)}[each]
            speed = math.exp(rng.gauss(0, 0.01))
            race.record(each, window(rate * speed * 10, memory_cpu=round(memory * 1e6 * speed)))
        race.settle()
    assert not race.entries[B].out
    assert race.entries[C].out.startswith("worse than")


@pytest.mark.parametrize(
    ("latencies", "sign"),
    [((10,) * 1000, 1), ((30,) * 1000, -1), ((10,) * 900 + (30,) * 100, -1)],
)
def test_a_window_indicates_whether_its_rate_was_too_high(latencies, sign):
    step = rate_step(window(latencies=latencies), (LIMIT,))
    assert math.copysign(1, step) == sign


def test_a_share_at_the_limit_means_the_rate_is_right():
    step = rate_step(window(latencies=(10,) * 1980 + (30,) * 20), (LIMIT,))
    assert step == pytest.approx(0.0, abs=0.01)


def test_an_overload_lowers_the_rate_at_once():
    estimate = RateEstimate(100.0, (LIMIT,))
    assert estimate.add(window(latencies=(900,) * 100, overloaded=True)) is None
    assert estimate.rate < 50
    slow = msgspec.structs.replace(window(latencies=(900,) * 40), succeeded=40)
    assert RateEstimate(100.0, (LIMIT,)).add(slow) is None


def test_a_rate_converges_to_the_one_that_keeps_the_limit():
    """Above 200/s, requests become late steeply."""
    rng = random.Random(5)
    estimate = RateEstimate(40.0, (LIMIT,))
    for _ in range(20):
        late = 1 / (1 + math.exp(-25 * math.log(estimate.rate / 240)))
        estimate.add(window(estimate.rate, [30 if rng.random() < late else 15 for _ in range(400)]))
    assert estimate.rate == pytest.approx(200, rel=0.1)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("p99<5ms", True),
        ("p50<20ms", False),
        ("rate>500", True),
        ("rate>50", False),
        ("errors<1%", False),
    ],
)
def test_constraints_are_checked_with_certainty(text, expected):
    (constraint,) = parse_goals([text]).constraints
    windows = [window(100 + number % 3) for number in range(8)]
    assert violates(windows, constraint, 0.05) is expected
    assert not violates([], constraint, 0.05)
