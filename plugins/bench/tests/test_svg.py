from __future__ import annotations

import math
from xml.etree import ElementTree as ET

from hypothesis import given
from hypothesis import strategies as st

from tritonpy_bench.report.svg import (
    HEIGHT,
    WIDTH,
    Line,
    line_chart,
    linear_axis,
    nice_step,
    percentile_axis,
    stacked_bars,
)

positive = st.floats(1e-6, 1e9)


def parse_svg(markup):
    return ET.fromstring(f"<div>{markup}</div>")  # noqa: S314  it is our own


@given(positive)
def test_steps_are_round_and_not_too_small(least):
    step = nice_step(least)
    assert least * (1 - 1e-6) <= step <= least * 10.001
    assert round(step / 10 ** math.floor(math.log10(step) + 1e-9), 6) in {1, 2, 5, 10}


@given(st.lists(st.tuples(positive, positive), min_size=1, max_size=20))
def test_every_point_lies_inside_the_drawing(points):
    line = Line("a & b", 0, points, ["<tooltip>"] * len(points))
    across = linear_axis("x", max(x for x, _ in points), str)
    up = linear_axis("y", max(y for _, y in points), str)
    tree = parse_svg(line_chart([line], across, up))
    circles = tree.findall(".//circle")
    assert len(circles) == len(points)
    for circle in circles:
        assert 0 <= float(circle.get("cx")) <= WIDTH
        assert 0 <= float(circle.get("cy")) <= HEIGHT
    assert tree.find(".//title").text == "<tooltip>"


def test_every_nine_has_the_same_width():
    axis = percentile_axis("percentile", 99.99)
    places = [axis.place(percent) for percent in (0, 90, 99, 99.9, 99.99)]
    assert [round(place, 6) for place in places] == [0, 0.25, 0.5, 0.75, 1]
    assert axis.place(100) == 1


def test_empty_charts_are_valid():
    parse_svg(line_chart([], linear_axis("x", 0, str), linear_axis("y", 0, str)))
    parse_svg(line_chart([Line("a", 0, [], [])], percentile_axis("p", 0), linear_axis("y", 0, str)))
    parse_svg(stacked_bars([]))
    parse_svg(stacked_bars([("a", [("queue", 0.0, "none")])]))


def test_segments_of_a_bar_are_adjacent():
    tree = parse_svg(
        stacked_bars([("a", [("q", 1.0, "q"), ("c", 3.0, "c")]), ("b", [("c", 1.0, "c")])])
    )
    first, second, third = tree.findall(".//rect")
    assert float(second.get("x")) == float(first.get("x")) + float(first.get("width"))
    assert float(second.get("width")) == 3 * float(first.get("width"))
    assert second.get("class") == third.get("class") != first.get("class")
