from __future__ import annotations

import pytest

from tritonpy_analyzer.goals import Constraint, Metric, Objective, parse_goals, value_text
from tritonpy_load_generator.options import BadUsage


@pytest.mark.parametrize(
    ("text", "metric", "upper", "limit"),
    [
        ("p99<20ms", Metric.P99, True, 0.020),
        ("p99.9 <= 1.5 s", Metric.P999, True, 1.5),
        ("p50<800us", Metric.P50, True, 0.0008),
        ("mean<5", Metric.MEAN, True, 0.005),
        ("rate>1e3", Metric.RATE, False, 1000.0),
        ("rate>=50/s", Metric.RATE, False, 50.0),
        ("memory.gpu<4GiB", Metric.MEMORY_GPU, True, 4 * 2**30),
        ("memory.cpu<1GB", Metric.MEMORY_CPU, True, 1e9),
        ("errors<0.1%", Metric.ERRORS, True, 0.001),
        ("ttft<200ms", Metric.TTFT, True, 0.2),
    ],
)
def test_a_constraint_has_a_metric_a_direction_and_a_limit(text, metric, upper, limit):
    (found,) = parse_goals([text]).constraints
    assert (found.metric, found.upper, found.limit) == (metric, upper, pytest.approx(limit))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("p98<20ms", "'p98' is no metric; use one of rate, p50"),
        ("p99<20MiB", "'MiB' is no unit of p99; use ns, us"),
        ("p99=20ms", "'p99=20ms' is not a constraint: write METRIC<VALUE, such as p99<20ms"),
        ("p99<0ms", "the limit must be greater than 0"),
        ("rate>1.2.3", "'1.2.3' is not a number"),
    ],
)
def test_a_wrong_constraint_is_explained(text, message):
    with pytest.raises(BadUsage, match=message.replace("(", r"\(").replace(".", r"\.")):
        parse_goals([text])


def test_constraints_may_be_joined_and_the_rate_is_maximized_by_default():
    goals = parse_goals(["p99<20ms, rate>100"])
    assert [str(each) for each in goals.constraints] == ["p99<20 ms", "rate>100/s"]
    assert goals.objectives == (Objective(Metric.RATE, True),)
    assert goals.finds_rate


def test_the_rate_is_searched_only_if_it_is_the_first_objective_and_latency_is_limited():
    assert not parse_goals(["rate>100"]).finds_rate
    assert not parse_goals(["p99<20ms"], minimize=["memory.cpu"]).finds_rate
    assert not parse_goals(["mean<20ms"]).finds_rate


def test_a_violation_is_relative_to_the_limit():
    below = Constraint(Metric.P99, True, 0.020)
    assert below.violation(0.030) == pytest.approx(0.5)
    assert below.violation(0.010) < 0
    assert Constraint(Metric.RATE, False, 100.0).violation(80.0) == pytest.approx(0.2)


@pytest.mark.parametrize(
    ("metric", "value", "text"),
    [
        (Metric.P99, 0.0195, "19.5 ms"),
        (Metric.P99, 0.00002, "20 us"),
        (Metric.RATE, 1234.5, "1,234/s"),
        (Metric.MEMORY_CPU, 1536.0, "1.5 KiB"),
        (Metric.ERRORS, 0.001, "0.10%"),
    ],
)
def test_values_have_units(metric, value, text):
    assert value_text(metric, value) == text
