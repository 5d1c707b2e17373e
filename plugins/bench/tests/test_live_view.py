from __future__ import annotations

import io

from rich.console import Console

from tritonpy_bench.figures.histogram import histogram
from tritonpy_bench.figures.snapshot import Snapshot
from tritonpy_bench.report.live_view import LiveView, spark
from tritonpy_bench.report.plain_view import PlainView

from .facts import INTS, model, options, target
from .results import level


def look(**more):
    return Snapshot(begin_ns=0, end_ns=10**9, latency=histogram([1_000_000] * 5), succeeded=5, **more)


def test_bars_are_as_high_as_their_values():
    assert spark([0, 50, 100]) == "▁▄█"
    assert spark([0, 0]) == "▁▁"
    assert spark([]) == ""


def test_a_terminal_sees_what_is_measured_and_keeps_the_results():
    out = io.StringIO()
    view = LiveView(Console(file=out, force_terminal=True, width=120), options())
    view.begin(target(model(INTS)), ["no statistics"])
    view.look(4, 0, look())
    view.look(4, 2, look(errors={"[red]no room[/red]": 3}, in_flight=9))
    view.measured(level(4.0))
    view.look(5, 1, look())
    view.end()
    drawn = out.getvalue()
    assert "warming up" in drawn
    assert "window 2 of at most 10" in drawn
    assert "3 x [red]no room[/red]" in drawn  # a server's text is no markup
    kept = drawn[drawn.rindex("note: no statistics") :]
    assert "concurrency 4: stable" in kept
    assert "1,234 requests/s" in kept


def test_without_a_terminal_each_level_is_told_when_it_is_done():
    out = io.StringIO()
    view = PlainView(out)
    view.begin(target(model(INTS)), ["no statistics"])
    view.look(1, 1, look(errors={"no": 2}))
    view.measured(level())
    view.end()
    assert out.getvalue().startswith("model m on toy 1\nnote: no statistics\nconcurrency 1: stable")
    assert "\x1b" not in out.getvalue()
